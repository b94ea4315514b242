#include "client/core/fetcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/core/error.h"
#include "client/core/request.h"
#include "model/record_batch.h"

namespace mq::client {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBackOffMin{20};
constexpr milliseconds kBackOffMax{1000};
/// After a nearer replica has failed.
constexpr milliseconds kAtLeader{10'000};

std::string partition_text(const ReadPartition& partition) {
  return fmt::format("{}/{}", partition.name.topic, partition.name.partition);
}

/// End offset of the last of the whole batches in `bytes`; the stamps are checked, the bodies are
/// the reader's business.
base::Result<model::Offset> end_of(base::Bytes bytes) {
  model::Offset end;
  while (!bytes.empty()) {
    MQ_TRY(const std::uint32_t size, model::peek_batch_bytes(bytes));
    if (size > bytes.size()) return make_error_code(model::ModelErrc::incomplete_batch);
    MQ_TRY(const auto header, model::RecordBatchView::parse_header(bytes.first(size)));
    end = header.end_offset();
    bytes = bytes.subspan(size);
  }
  return end;
}

}  // namespace

Fetcher::Fetcher(ClientCore& core, const ConsumerConfig& config, FetchBuffer& buffer)
    : core_(core), config_(config), buffer_(buffer) {
  core_.pool.on_change([this] { wake(); });
  core_.metadata.on_update([this] { wake(); });
}

Fetcher::~Fetcher() {
  if (wake_timer_ != 0) core_.runtime.cancel_timer(wake_timer_);
}

void Fetcher::wake() {
  waking_.run([this] {
    if (!stopped_) wake_once();
  });
}

void Fetcher::wake_once() {
  std::map<std::int32_t, std::vector<ReadPartitionPtr>> ready;
  for (const ReadPartitionPtr& partition : buffer_.all()) {
    if (partition->in_flight) continue;
    const FetchBuffer::Wanted wanted = buffer_.wanted(*partition);
    if (!wanted.fetch) continue;
    if (partition->fetch_generation != wanted.generation) {
      partition->fetch_generation = wanted.generation;
      partition->fetch_offset = wanted.position;
      partition->retry_at = {};
    }
    if (partition->retry_at > core_.runtime.now()) {
      wake_at(partition->retry_at);
      continue;
    }
    if (core_.metadata.gone(partition->id.topic)) {
      buffer_.put_error(*partition, partition->fetch_generation,
                        make_error(Errc::unknown_topic_id,
                                   fmt::format("topic '{}' was deleted", partition->name.topic)));
      continue;
    }
    ready[broker_for(*partition)].push_back(partition);
  }
  if (ready.empty() || !buffer_.has_room()) return;
  for (const auto& [broker, partitions] : ready) {
    const std::span<const ReadPartitionPtr> all(partitions);
    for (std::size_t i = 0; i < all.size(); i += kEntriesAtOnce)
      fetch(broker, all.subspan(i, std::min(kEntriesAtOnce, all.size() - i)));
  }
}

std::int32_t Fetcher::broker_for(ReadPartition& partition) {
  const auto replica = partition.nearer_replica;
  if (replica >= 0) {
    if (core_.pool.find(replica)) return replica;
    if (core_.pool.trouble(replica)) {
      back_to_leader(partition);
    } else {
      core_.pool.want(replica);  // until then the leader serves
    }
  }
  return core_.metadata.leader(partition.id);
}

void Fetcher::go_to(ReadPartition& partition, std::int32_t replica) {
  if (partition.nearer_replica >= 0 || core_.runtime.now() < partition.leader_until) return;
  partition.nearer_replica = replica;
  core_.pool.want(replica);
}

void Fetcher::back_to_leader(ReadPartition& partition) {
  partition.nearer_replica = -1;
  partition.leader_until = core_.runtime.now() + kAtLeader;
}

void Fetcher::fetch(std::int32_t broker, std::span<const ReadPartitionPtr> partitions) {
  if (broker < 0) {
    set_trouble(make_error(Errc::partition_offline,
                           fmt::format("{} has no leader", partition_text(*partitions.front()))));
    for (const auto& partition : partitions) core_.metadata.refresh_soon(partition->id.topic);
    return;
  }
  const ConnectionPtr connection = core_.pool.find(broker);
  if (!connection) {
    if (auto trouble = core_.pool.trouble(broker)) {
      set_trouble(std::move(trouble));
      // The leader may be another one by now.
      for (const auto& partition : partitions) core_.metadata.refresh_soon(partition->id.topic);
    }
    core_.pool.want(broker);
    return;
  }
  auto fetch = std::make_shared<Fetch>();
  fetch->where = where(*connection);
  protocol::FetchRequest request;
  const base::TimePoint deadline =
      core_.runtime.now() + config_.fetch_wait + config_.request_timeout;
  fill_envelope(request.envelope, config_, core_.runtime.now(), deadline);
  const auto bytes_max = static_cast<std::uint32_t>(config_.fetch_bytes);
  request.wait_ms = static_cast<std::uint32_t>(config_.fetch_wait.count());
  request.bytes_max = bytes_max;
  request.rack = config_.rack;
  for (const ReadPartitionPtr& partition : partitions) {
    const bool nearer = partition->nearer_replica == broker;
    auto& entry = request.entries.emplace_back();
    entry.partition = partition->id;
    entry.offset = model::Offset(partition->fetch_offset);
    entry.bytes_max = bytes_max;
    // It has named one that cannot be asked yet, or was of no use.
    entry.of_leader = !nearer && (partition->nearer_replica >= 0 ||
                                  core_.runtime.now() < partition->leader_until);
    const bool leads = core_.metadata.leader(partition->id) == broker;
    fetch->asked.emplace(partition->id, Asked{partition, partition->fetch_generation,
                                              partition->fetch_offset, false, leads || !nearer});
    partition->in_flight = true;
  }
  net::ClientRequest message;
  message.api = protocol::ApiKey::fetch;
  message.header = protocol::encode(request);
  message.deadline = deadline;
  const bool sent = connection->send(
      std::move(message),
      [this, fetch](base::Result<net::Frame> frame) { answered(fetch, std::move(frame)); });
  if (sent) return;
  for (const ReadPartitionPtr& partition : partitions) partition->in_flight = false;
}

void Fetcher::answered(const FetchPtr& fetch, base::Result<net::Frame> frame) {
  if (stopped_) return;
  if (!frame) {
    set_trouble(from_transport(frame.error(), fetch->where));
    for (const auto& [id, asked] : fetch->asked) {
      if (!asked.of_leader) back_to_leader(*asked.partition);
      core_.metadata.refresh_soon(id.topic);
    }
    ended(fetch);
    return;
  }
  take(fetch, *frame);
  if ((frame->head.flags & protocol::kFrameMoreFollows) == 0) ended(fetch);
}

void Fetcher::ended(const FetchPtr& fetch) {
  for (auto& [id, asked] : fetch->asked) asked.partition->in_flight = false;
  wake();
}

void Fetcher::take(const FetchPtr& fetch, const net::Frame& frame) {
  const auto response = read_response(frame, &protocol::decode_fetch_response, fetch->where);
  if (!response) {
    set_trouble(response.error());
    for (auto& [id, asked] : fetch->asked) {
      if (!asked.of_leader) back_to_leader(*asked.partition);
      back_off(*asked.partition);
      if (response.error().retriable) core_.metadata.refresh_soon(id.topic);
    }
    return;
  }
  set_trouble(std::nullopt);
  core_.metadata.note_version(response->envelope.metadata_version);
  base::Bytes payload = frame.payload;
  for (const protocol::FetchResult& result : response->results) {
    const auto found = fetch->asked.find(result.partition);
    if (result.payload_bytes > payload.size() || found == fetch->asked.end()) {
      set_trouble(make_error(Errc::protocol_violation, "a fetch answer does not fit its payload",
                             fetch->where));
      for (auto& [id, asked] : fetch->asked) back_off(*asked.partition);
      return;
    }
    const base::Bytes batches = payload.first(result.payload_bytes);
    payload = payload.subspan(result.payload_bytes);
    if (!result.status.ok()) {
      refused(found->second, result, fetch->where);
    } else if (!batches.empty()) {
      take_data(found->second, FetchedChunk{frame.body, batches}, fetch->where);
    } else {
      found->second.partition->failures = 0;
    }
    if (result.nearer_replica >= 0 && result.status.ok())
      go_to(*found->second.partition, result.nearer_replica);
  }
}

void Fetcher::take_data(Asked& asked, FetchedChunk chunk, const std::string& where) {
  ReadPartition& partition = *asked.partition;
  const auto end = end_of(chunk.batches);
  if (!end || end->value() <= asked.offset) {
    Error error = make_error(
        Errc::corrupt_batch,
        fmt::format("{}: what was fetched at offset {} is damaged: {}", partition_text(partition),
                    asked.offset, end ? "it ends below that" : end.error().message()),
        where);
    error.retriable = false;
    buffer_.put_error(partition, asked.generation, std::move(error));
    return;
  }
  partition.failures = 0;
  partition.from_start = false;
  if (partition.fetch_generation == asked.generation) partition.fetch_offset = end->value();
  buffer_.put(partition, asked.generation, std::move(chunk));
}

void Fetcher::refused(Asked& asked, const protocol::FetchResult& result, const std::string& where) {
  ReadPartition& partition = *asked.partition;
  // What it cannot serve the leader can, or it knows better why not.
  if (!asked.of_leader) return back_to_leader(partition);
  const bool out_of_range = result.status.error() == protocol::WireError::offset_out_of_range;
  const bool to_start = partition.from_start || config_.on_out_of_range == OnOutOfRange::earliest;
  if (out_of_range && (to_start || config_.on_out_of_range != OnOutOfRange::fail)) {
    const std::int64_t offset =
        to_start ? result.log_start_offset.value() : result.high_watermark.value();
    if (offset >= 0 && offset != asked.offset) {
      core_.log.line(LogLevel::warning,
                     fmt::format("{}: offset {} is out of range; going on at {}",
                                 partition_text(partition), asked.offset, offset));
      if (buffer_.jump(partition, asked.generation, offset)) partition.fetch_offset = offset;
      partition.from_start = false;
      return;
    }
  }
  if (result.status.advice.refresh_metadata) core_.metadata.refresh_soon(partition.id.topic);
  Error error = core_.metadata.error_of(result.status, partition.id, where);
  if (!error.retriable) {
    error.message =
        fmt::format("{} at offset {}: {}", partition_text(partition), asked.offset, error.message);
    buffer_.put_error(partition, asked.generation, std::move(error));
    return;
  }
  core_.log.warning(
      partition_text(partition),
      fmt::format("{}: {}; trying again", partition_text(partition), to_string(error)));
  set_trouble(std::move(error));
  back_off(partition);
}

void Fetcher::back_off(ReadPartition& partition) {
  const int doublings = std::min(partition.failures, 10);
  ++partition.failures;
  const auto delay = std::min(kBackOffMax, kBackOffMin * (1 << doublings));
  const auto per_mille = static_cast<std::int64_t>(750 + core_.runtime.random() % 501);
  partition.retry_at = core_.runtime.now() + std::chrono::microseconds(delay.count() * per_mille);
}

void Fetcher::wake_at(base::TimePoint due) {
  if (due >= wake_due_) return;
  if (wake_timer_ != 0) core_.runtime.cancel_timer(wake_timer_);
  wake_due_ = due;
  wake_timer_ = core_.runtime.start_timer(due, [this] {
    wake_timer_ = 0;
    wake_due_ = base::TimePoint::max();
    wake();
  });
}

void Fetcher::set_trouble(std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  if (!error && !trouble_) return;
  trouble_ = std::move(error);
}

std::optional<Error> Fetcher::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace mq::client
