#include "client/core/accumulator.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/core/error.h"
#include "model/partitioner.h"

namespace mq::client {
namespace {

constexpr std::size_t kCallbackBytes = 128;  // what a function costs besides the record
constexpr std::uint32_t kDefaultBatchLimit = std::uint32_t{1} << 20;

model::Codec to_codec(Compression compression) {
  switch (compression) {
    case Compression::none:
      return model::Codec::none;
    case Compression::lz4:
      return model::Codec::lz4;
    case Compression::zstd:
      return model::Codec::zstd;
  }
  return model::Codec::none;
}

/// Of one record, before it is written: at most what it will take.
std::size_t estimate(const AppendRequest& request) {
  constexpr std::size_t kAround = 48;  // lengths, offset, time
  std::size_t bytes =
      kAround + (request.callback == nullptr ? sizeof(std::uint64_t) : kCallbackBytes);
  if (request.record.key) bytes += request.record.key->size();
  if (request.record.value) bytes += request.record.value->size();
  if (!request.record.headers.empty()) [[unlikely]]
    bytes += model::RecordBatchBuilder::record_bytes_max(request.record);
  return bytes;
}

Error too_large(const ProducerTopic& topic, std::size_t bytes) {
  return make_error(
      Errc::record_too_large,
      fmt::format("a record for topic '{}' needs a batch of {} bytes; the topic takes {} bytes",
                  topic.name, bytes, topic.batch_bytes_max));
}

}  // namespace

Accumulator::Accumulator(base::Runtime& runtime, const ProducerConfig& config)
    : runtime_(runtime),
      config_(config),
      codec_(to_codec(config.compression)),
      pool_(base::BufferPool::shared()) {}

Appended Accumulator::append(ProducerTopic& topic, AppendRequest& request,
                             std::optional<Error>& refusal) {
  if (!request.timestamp_given) request.record.timestamp_ms = runtime_.coarse_wall_clock_ms();
  bool wake = false;
  Appended outcome;
  {
    const std::lock_guard lock(mutex_);
    outcome = append_locked(topic, request, refusal, wake);
  }
  if (wake) wake_sender_();
  return outcome;
}

Appended Accumulator::append_locked(ProducerTopic& topic, const AppendRequest& request,
                                    std::optional<Error>& refusal, bool& wake) {
  if (closed_ || topic.gone || topic.owner != this) [[unlikely]]
    return refuse(topic, refusal);
  // CLI-4
  if (buffered_bytes_ > 0 && buffered_bytes_ + estimate(request) > config_.buffer_bytes)
      [[unlikely]]
    return Appended::full;

  while (true) {
    ProducerPartition* partition = choose(topic, request);
    if (partition == nullptr) [[unlikely]] {
      refusal = make_error(Errc::unknown_partition,
                           fmt::format("topic '{}' has no partition {}; it has {}", topic.name,
                                       *request.partition, topic.numbers.size()));
      return Appended::refused;
    }
    const bool opened = !partition->open;
    if (opened) open_batch(*partition);
    ProduceBatch& batch = *partition->open;
    const std::size_t before = batch.builder->batch_bytes();
    if (batch.builder->append(request.record)) [[likely]] {
      accept(batch, request, batch.builder->batch_bytes() - before);
      if (opened) announce(*partition, wake);
      return Appended::accepted;
    }
    if (opened) {  // alone, and still too large for an ordinary batch
      unresolved_[batch.flush_epoch]--;
      partition->open.reset();
      return append_large(*partition, request, refusal, wake);
    }
    seal(*partition);
    announce(*partition, wake);
  }
}

Appended Accumulator::refuse(const ProducerTopic& topic, std::optional<Error>& refusal) const {
  if (topic.owner != this) {
    refusal = make_error(Errc::invalid_argument, "the topic handle belongs to another producer");
  } else if (closed_) {
    refusal = make_error(Errc::closed, "the producer is closed");
  } else {
    refusal = make_error(Errc::unknown_topic_id, fmt::format("topic '{}' was deleted", topic.name));
  }
  return Appended::refused;
}

/// A record above batch_bytes goes alone, as long as what is sent is within the topic's limit.
Appended Accumulator::append_large(ProducerPartition& partition, const AppendRequest& request,
                                   std::optional<Error>& refusal, bool& wake) {
  const ProducerTopic& topic = *partition.topic;
  const std::size_t bytes = model::RecordBatchBuilder::record_bytes_max(request.record) +
                            model::batch_format::kHeaderBytes;
  const std::uint32_t limit =
      codec_ == model::Codec::none ? topic.batch_bytes_max : model::batch_format::kBatchBytesMax;
  ProduceBatchPtr batch = new_batch(partition);
  batch->builder.emplace(pool_, limit,
                         static_cast<std::uint32_t>(std::min<std::size_t>(bytes, limit)));
  const bool fits = batch->builder->append(request.record);
  if (fits) batch->finish(codec_);
  if (!fits || batch->bytes.bytes.size() > topic.batch_bytes_max) {
    refusal = too_large(topic, fits ? batch->bytes.bytes.size() : bytes);
    unresolved_[batch->flush_epoch]--;
    return Appended::refused;
  }
  accept(*batch, request, batch->bytes.bytes.size());
  partition.sealed.push_back(std::move(batch));
  announce(partition, wake);
  return Appended::accepted;
}

// CLI-3
ProducerPartition* Accumulator::choose(ProducerTopic& topic, const AppendRequest& request) const {
  if (request.partition) {
    const auto found = std::ranges::lower_bound(topic.numbers, *request.partition);
    if (found == topic.numbers.end() || *found != *request.partition) return nullptr;
    return topic.partitions[static_cast<std::size_t>(found - topic.numbers.begin())].get();
  }
  if (!request.record.key) return topic.partitions[topic.sticky].get();
  return topic.partitions[model::key_slot(*request.record.key, topic.partitions.size())].get();
}

void Accumulator::accept(ProduceBatch& batch, const AppendRequest& request, std::size_t bytes) {
  if (request.callback != nullptr) {
    batch.callbacks.push_back(
        RecordCallback{batch.record_count, std::move(*request.callback), request.immediate});
    bytes += kCallbackBytes;
  }
  if (config_.on_delivery) {
    batch.cookies.push_back(request.cookie);
    bytes += sizeof(std::uint64_t);
  }
  ++batch.record_count;
  batch.buffered_bytes += bytes;
  buffered_bytes_ += bytes;
  ++pending_records_;
  ++accepted_records_;
}

ProduceBatchPtr Accumulator::new_batch(ProducerPartition& partition) {
  auto batch = std::make_shared<ProduceBatch>();
  batch->partition = &partition;
  batch->created = runtime_.now();
  batch->deadline = batch->created + config_.delivery_timeout;
  batch->flush_epoch = flush_epoch_;
  ++unresolved_[flush_epoch_];
  return batch;
}

void Accumulator::open_batch(ProducerPartition& partition) {
  partition.open = new_batch(partition);
  const auto limit = static_cast<std::uint32_t>(
      std::min<std::size_t>(config_.batch_bytes, partition.topic->batch_bytes_max));
  partition.open->builder.emplace(pool_, limit, partition.expected_bytes);
  if (config_.on_delivery) partition.open->cookies.reserve(partition.expected_records);
}

/// The open batch takes no more records. Records without key go on to the next partition.
void Accumulator::seal(ProducerPartition& partition) {
  ProduceBatch& batch = *partition.open;
  partition.expected_bytes = batch.builder->batch_bytes();
  // A batch that was full makes room for a full one; a power of two spares the copies on the way
  // there.
  partition.expected_bytes += partition.expected_bytes / 8;
  partition.expected_records = batch.record_count + batch.record_count / 8;
  partition.sealed.push_back(std::move(partition.open));
  ProducerTopic& topic = *partition.topic;
  if (topic.partitions[topic.sticky].get() == &partition)
    topic.sticky = (topic.sticky + 1) % topic.partitions.size();
}

void Accumulator::announce(ProducerPartition& partition, bool& wake) {
  if (!partition.dirty) {
    partition.dirty = true;
    news_.push_back(&partition);
  }
  if (scheduled_ || quiet_.load(std::memory_order_acquire)) return;
  scheduled_ = true;
  wake = true;
}

void Accumulator::take_news(std::vector<ProducerPartition*>& news) {
  const std::lock_guard lock(mutex_);
  scheduled_ = false;
  news.swap(news_);
  for (ProducerPartition* partition : news) {
    partition->dirty = false;
    for (ProduceBatchPtr& batch : partition->sealed) partition->queue.push_back(std::move(batch));
    partition->sealed.clear();
  }
}

base::TimePoint Accumulator::take_open(ProducerPartition& partition, bool at_once,
                                       base::TimePoint created_until) {
  const std::lock_guard lock(mutex_);
  if (!partition.sealed.empty()) {  // sealed since the news were taken; the open one is behind it
    for (ProduceBatchPtr& batch : partition.sealed) partition.queue.push_back(std::move(batch));
    partition.sealed.clear();
    return base::TimePoint::max();
  }
  if (!partition.open) return base::TimePoint::max();
  if (!at_once && partition.open->created > created_until) return partition.open->created;
  seal(partition);
  partition.queue.push_back(std::move(partition.sealed.back()));
  partition.sealed.clear();
  return base::TimePoint::max();
}

void Accumulator::count_split(const ProduceBatch& half) {
  const std::lock_guard lock(mutex_);
  ++unresolved_[half.flush_epoch];
}

void Accumulator::resolve(const std::vector<ProduceBatchPtr>& batches) {
  const std::lock_guard lock(mutex_);
  for (const ProduceBatchPtr& batch : batches) {
    buffered_bytes_ -= batch->buffered_bytes;
    pending_records_ -= batch->record_count;
    --unresolved_[batch->flush_epoch];
  }
  while (!unresolved_.empty() && unresolved_.begin()->second == 0 &&
         unresolved_.begin()->first < flush_epoch_) {
    unresolved_.erase(unresolved_.begin());
  }
}

ProducerTopicPtr Accumulator::topic(const TopicInfo& info) {
  const std::lock_guard lock(mutex_);
  for (const ProducerTopicPtr& known : topics_) {
    if (known->id == info.id) return known;
  }
  auto topic = std::make_shared<ProducerTopic>();
  topic->name = info.name;
  topic->id = info.id;
  topic->owner = this;
  topic->batch_bytes_max = info.batch_bytes_max == 0 ? kDefaultBatchLimit : info.batch_bytes_max;
  for (const auto& partition : info.partitions) add_partition(*topic, partition.partition);
  if (!topic->partitions.empty()) topic->sticky = runtime_.random() % topic->partitions.size();
  topics_.push_back(topic);
  return topic;
}

void Accumulator::extend(ProducerTopic& topic, const TopicInfo& info) {
  const std::lock_guard lock(mutex_);
  for (const auto& partition : info.partitions) {
    // New ones have higher numbers than all before.
    if (topic.numbers.empty() || partition.partition > topic.numbers.back())
      add_partition(topic, partition.partition);
  }
}

void Accumulator::add_partition(ProducerTopic& topic, std::int32_t number) {
  auto partition = std::make_unique<ProducerPartition>();
  partition->topic = &topic;
  partition->id = model::PartitionId{topic.id, number};
  topic.numbers.push_back(number);
  topic.partitions.push_back(std::move(partition));
  topic.partition_count.store(topic.partitions.size(), std::memory_order_relaxed);
}

void Accumulator::mark_gone(ProducerTopic& topic) {
  const std::lock_guard lock(mutex_);
  topic.gone = true;
}

bool Accumulator::gone(const ProducerTopic& topic) const {
  const std::lock_guard lock(mutex_);
  return topic.gone;
}

std::vector<ProducerTopicPtr> Accumulator::topics() const {
  const std::lock_guard lock(mutex_);
  return topics_;
}

std::uint64_t Accumulator::begin_flush() {
  bool wake = false;
  std::uint64_t flush = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const ProducerTopicPtr& topic : topics_) {
      for (const auto& partition : topic->partitions) {
        if (!partition->open) continue;
        seal(*partition);
        announce(*partition, wake);
      }
    }
    flush = flush_epoch_++;
    while (!unresolved_.empty() && unresolved_.begin()->second == 0)
      unresolved_.erase(unresolved_.begin());
  }
  if (wake) wake_sender_();
  return flush;
}

bool Accumulator::flushed(std::uint64_t flush) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [epoch, batches] : unresolved_) {
    if (epoch > flush) break;
    if (batches > 0) return false;
  }
  return true;
}

void Accumulator::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

std::size_t Accumulator::pending_records() const {
  const std::lock_guard lock(mutex_);
  return pending_records_;
}

std::size_t Accumulator::buffered_bytes() const {
  const std::lock_guard lock(mutex_);
  return buffered_bytes_;
}

std::uint64_t Accumulator::accepted_records() const {
  const std::lock_guard lock(mutex_);
  return accepted_records_;
}

}  // namespace mq::client
