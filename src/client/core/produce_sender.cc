#include "client/core/produce_sender.h"

#include <algorithm>

#include "client/core/error.h"
#include "client/core/request.h"

namespace mq::client {
namespace {

constexpr std::size_t kRequestsInFlight = 5;
/// A request takes further partitions' batches up to here.
constexpr std::size_t kRequestBytes = std::size_t{1} << 20;
constexpr std::size_t kEntriesMax = 1000;
constexpr Duration kLingerWhileBusy{1};

model::Codec codec_of(Compression compression) {
  return static_cast<model::Codec>(static_cast<std::uint8_t>(compression));
}
static_assert(static_cast<int>(model::Codec::lz4) == static_cast<int>(Compression::lz4));
static_assert(static_cast<int>(model::Codec::zstd) == static_cast<int>(Compression::zstd));

protocol::Acks wire_acks(Acks acks) {
  switch (acks) {
    case Acks::none:
      return protocol::Acks::none;
    case Acks::leader:
      return protocol::Acks::leader;
    case Acks::all:
      return protocol::Acks::all;
  }
  return protocol::Acks::all;
}

}  // namespace

ProduceSender::ProduceSender(ClientCore& core, const ProducerConfig& config,
                             Accumulator& accumulator)
    : core_(core),
      config_(config),
      accumulator_(accumulator),
      codec_(codec_of(config.compression)),
      idempotent_(config.enable_idempotence && config.acks != Acks::none),
      producer_id_(core) {
  producer_id_.on_change([this] { drain(); });
  core_.pool.on_change([this] { drain(); });
  core_.metadata.on_update([this] { metadata_changed(); });
}

ProduceSender::~ProduceSender() {
  if (wake_timer_ != 0) core_.runtime.cancel_timer(wake_timer_);
  if (expiry_timer_ != 0) core_.runtime.cancel_timer(expiry_timer_);
}

ProducerStats ProduceSender::stats() const noexcept {
  ProducerStats stats;
  stats.records_delivered = stats_.records_delivered;
  stats.records_failed = stats_.records_failed;
  stats.batches_sent = stats_.batches_sent;
  stats.requests_sent = stats_.requests_sent;
  stats.batches_retried = stats_.batches_retried;
  stats.bytes_sent = stats_.bytes_sent;
  return stats;
}

void ProduceSender::drain() {
  draining_.run([this] {
    if (!stopped_) drain_once();
  });
}

void ProduceSender::drain_once() {
  // Before the news are taken: what is appended from now on wakes this again.
  accumulator_.set_quiet(false);
  accumulator_.take_news(news_);
  for (ProducerPartition* partition : news_) activate(*partition);
  news_.clear();
  bool saturated = true;
  bool any = false;
  for (auto& [broker, link] : links_) {
    if (link->active.empty()) continue;
    pump(*link);
    any = true;
    saturated = saturated && link->in_flight >= kRequestsInFlight;
  }
  accumulator_.set_quiet(any && saturated);
  report();
}

void ProduceSender::activate(ProducerPartition& partition) {
  if (partition.link != nullptr) return;
  partition.link = &link_of(core_.metadata.leader(partition.id));
  partition.link->active.push_back(&partition);
  watch_deadlines();
}

ProduceLink& ProduceSender::link_of(std::int32_t broker) {
  auto& link = links_[broker];
  if (!link) {
    link = std::make_unique<ProduceLink>();
    link->broker = broker;
  }
  return *link;
}

/// Partitions whose leader moved follow it, as soon as nothing of them is under way at the old one.
void ProduceSender::relink() {
  std::vector<std::pair<ProducerPartition*, std::int32_t>> moving;
  for (auto& [broker, link] : links_) {
    for (ProducerPartition* partition : link->active) {
      const std::int32_t leader = core_.metadata.leader(partition->id);
      if (partition->in_flight == 0 && leader != broker) moving.emplace_back(partition, leader);
    }
  }
  for (const auto& [partition, leader] : moving) {
    std::erase(partition->link->active, partition);
    partition->link = &link_of(leader);
    partition->link->active.push_back(partition);
  }
}

void ProduceSender::pump(ProduceLink& link) {
  if (link.broker < 0) {
    drop_idle(link);
    for (auto* partition : link.active) {
      partition->trouble = "it has no leader";
      core_.metadata.refresh_soon(partition->id.topic);
    }
    return;
  }
  const ConnectionPtr connection = core_.pool.find(link.broker);
  if (!connection) {
    core_.pool.want(link.broker);
    if (const auto trouble = core_.pool.trouble(link.broker)) {
      for (ProducerPartition* partition : link.active) {
        partition->trouble = to_string(*trouble);
        core_.metadata.refresh_soon(partition->id.topic);  // the leader may be another one by now
      }
    }
    return;
  }
  if (!may_send(link)) return drop_idle(link);
  while (link.in_flight < kRequestsInFlight) {
    const SentPtr sent = gather(link, *connection);
    if (sent->entries.empty() || !dispatch(*connection, sent)) break;
  }
  drop_idle(link);
}

/// An idempotent producer sends nothing before it has its id.
bool ProduceSender::may_send(ProduceLink& link) {
  if (!idempotent_ || producer_id_.get()) return true;
  if (const auto refusal = producer_id_.take_refusal()) {
    for (ProducerPartition* partition : link.active) {
      accumulator_.take_open(*partition, true, {});
      accumulator_.take_open(*partition, true, {});  // the first may have found sealed ones only
      for (const ProduceBatchPtr& batch : partition->queue) finish(*batch, *refusal);
      collect(*partition);
    }
    return false;
  }
  // For whoever has just something to send, and not for an idle link.
  if (!link.active.empty()) producer_id_.want();
  if (!producer_id_.trouble().empty()) {
    for (ProducerPartition* partition : link.active) partition->trouble = producer_id_.trouble();
  }
  return false;
}

/// Gives the batch its sequence if it has none, and makes its bytes.
void ProduceSender::name(ProducerPartition& partition, ProduceBatch& batch) {
  if (batch.base_sequence < 0) {
    if (partition.producer_epoch < 0) partition.producer_epoch = producer_id_.get()->epoch;
    batch.producer_epoch = partition.producer_epoch;
    batch.base_sequence = partition.next_sequence;
    partition.next_sequence = model::advance_sequence(partition.next_sequence, batch.record_count);
  }
  batch.finish_named(producer_id_.get()->id, codec_, base::BufferPool::shared());
}

void ProduceSender::drop_idle(ProduceLink& link) {
  std::erase_if(link.active, [&](ProducerPartition* partition) {
    const bool idle = partition->queue.empty() && partition->in_flight == 0 &&
                      accumulator_.take_open(*partition, false, base::TimePoint::min()) ==
                          base::TimePoint::max() &&
                      partition->queue.empty();
    if (idle) partition->link = nullptr;
    return idle;
  });
}

/// Whether the partition may send a batch now; takes its open one when its time has come.
bool ProduceSender::ready(ProduceLink& link, ProducerPartition& partition) {
  const base::TimePoint now = core_.runtime.now();
  if (partition.restart) {
    if (partition.in_flight > 0) return false;
    partition.restart = false;
    partition.alone = true;
    partition.next = 0;
    partition.sequence = 0;
    collect(partition);
    if (partition.new_epoch) begin_epoch(partition);
  }
  // CLI-2: were the first one refused again, the second would have a number that the leader may be
  // waiting for since before the restart, and would overtake it.
  if (partition.alone && partition.in_flight > 0) return false;
  if (partition.retry_at > now) {
    wake_at(partition.retry_at);
    return false;
  }
  while (partition.next < partition.queue.size() && partition.queue[partition.next]->done)
    ++partition.next;
  if (partition.next < partition.queue.size()) return true;
  // While few requests are under way a batch goes at once; otherwise it collects company until an
  // answer comes or its time is over, so that a burst becomes a batch.
  const std::size_t few = config_.linger > Duration::zero() ? 1 : 2;
  const Duration linger = std::max(config_.linger, kLingerWhileBusy);
  const base::TimePoint created =
      accumulator_.take_open(partition, link.in_flight < few, now - linger);
  if (created != base::TimePoint::max()) wake_at(created + linger);
  return partition.next < partition.queue.size();
}

ProduceSender::SentPtr ProduceSender::gather(ProduceLink& link,
                                             const net::ClientConnection& connection) {
  auto sent = std::make_shared<Sent>();
  sent->link = &link;
  const std::size_t limit =
      std::min<std::size_t>(kRequestBytes, connection.hello().frame_bytes_max / 2);
  std::size_t bytes = 0;
  const std::size_t count = link.active.size();
  for (std::size_t i = 0; i < count && sent->entries.size() < kEntriesMax; ++i) {
    const std::size_t at = (link.cursor + i) % count;
    ProducerPartition& partition = *link.active[at];
    if (!ready(link, partition)) continue;
    const ProduceBatchPtr& batch = partition.queue[partition.next];
    if (idempotent_) {
      name(partition, *batch);
    } else if (batch->builder) {
      batch->finish(codec_);
    }
    if (!sent->entries.empty() && bytes + batch->bytes.bytes.size() > limit) {
      link.cursor = at;
      break;
    }
    bytes += batch->bytes.bytes.size();
    if (partition.connection != connection.number()) {
      partition.connection = connection.number();
      partition.sequence = 0;
    }
    sent->entries.push_back(Entry{&partition, batch});
  }
  return sent;
}

bool ProduceSender::dispatch(net::ClientConnection& connection, const SentPtr& sent) {
  const base::TimePoint now = core_.runtime.now();
  const base::TimePoint deadline = now + config_.request_timeout;
  protocol::ProduceRequest request;
  fill_envelope(request.envelope, config_, now, deadline);
  request.acks = wire_acks(config_.acks);
  net::ClientRequest message;
  message.api = protocol::ApiKey::produce;
  message.deadline = deadline;
  for (const Entry& entry : sent->entries) {
    const auto bytes = static_cast<std::uint32_t>(entry.batch->bytes.bytes.size());
    request.entries.push_back(
        protocol::ProduceEntry{entry.partition->id, bytes, entry.partition->sequence});
    message.payload.push_back(entry.batch->bytes);
    stats_.bytes_sent += bytes;
  }
  message.header = protocol::encode(request);
  sent->where = where(connection);

  // First the books: the answer to an earlier request cannot come in between, but a failure of this
  // one can.
  ++sent->link->in_flight;
  ++stats_.requests_sent;
  for (const Entry& entry : sent->entries) {
    ++entry.partition->in_flight;
    ++entry.partition->next;
    ++entry.partition->sequence;
    ++stats_.batches_sent;
    if (entry.batch->attempts++ > 0) ++stats_.batches_retried;
    if (entry.batch->unanswered++ == 0) entry.batch->doubtful_since = now;
  }
  const bool accepted =
      config_.acks == Acks::none
          ? connection.send_unanswered(std::move(message),
                                       [this, sent](base::Result<void> written) {
                                         if (written) {
                                           answered(sent, net::Frame{});
                                         } else {
                                           answered(sent, written.error());
                                         }
                                       })
          : connection.send(std::move(message), [this, sent](base::Result<net::Frame> frame) {
              answered(sent, std::move(frame));
            });
  if (!accepted) {
    --sent->link->in_flight;
    for (const Entry& entry : sent->entries) --entry.batch->unanswered;  // nothing was sent
    give_up_under_way(*sent, make_error(Errc::connection_lost, ""));
  }
  return accepted;
}

void ProduceSender::wake_at(base::TimePoint due) {
  if (due >= wake_due_) return;
  if (wake_timer_ != 0) core_.runtime.cancel_timer(wake_timer_);
  wake_due_ = due;
  wake_timer_ = core_.runtime.start_timer(due, [this] {
    wake_timer_ = 0;
    wake_due_ = base::TimePoint::max();
    drain();
  });
}

}  // namespace mq::client
