#include "client/core/produce_sender.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/core/error.h"
#include "client/core/request.h"

namespace mq::client {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kRequestsInFlight = 5;
/// A request takes further partitions' batches up to here.
constexpr std::size_t kRequestBytes = std::size_t{1} << 20;
constexpr std::size_t kEntriesMax = 1000;
constexpr Duration kLingerWhileBusy{1};
constexpr milliseconds kBackOffMin{20};
constexpr milliseconds kBackOffMax{1000};
/// For so long a leader surely knows a batch again that it may have appended.
constexpr std::chrono::minutes kRepeatable{5};

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

std::string partition_text(const ProducerPartition& partition) {
  return fmt::format("{}/{}", partition.topic->name, partition.id.partition);
}

/// Refused for what these errors mean, nothing of a batch was appended; others may come after that.
bool refused_before_append(const protocol::Status& status) {
  switch (status.error()) {
    case protocol::WireError::storage_full:
    case protocol::WireError::overloaded:
    case protocol::WireError::out_of_order:
    case protocol::WireError::batch_too_large:
    case protocol::WireError::corrupt_batch:
    case protocol::WireError::corrupt_frame:
    case protocol::WireError::unknown_producer:
    case protocol::WireError::out_of_order_sequence:
    case protocol::WireError::producer_fenced:
    case protocol::WireError::too_many_producers:
    case protocol::WireError::not_enough_replicas:
      return !status.advice.maybe_applied;
    default:
      return false;
  }
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

void ProduceSender::metadata_changed() {
  if (stopped_) return;
  for (const ProducerTopicPtr& topic : accumulator_.topics()) {
    if (!core_.metadata.gone(topic->id)) {
      if (const auto info = core_.metadata.find(topic->id)) accumulator_.extend(*topic, *info);
      continue;
    }
    accumulator_.mark_gone(*topic);
    for (const auto& partition : topic->partitions) {
      accumulator_.take_open(*partition, true, {});
      accumulator_.take_open(*partition, true, {});  // the first may have found sealed ones only
      for (const ProduceBatchPtr& batch : partition->queue)
        finish(*batch, make_error(Errc::unknown_topic_id,
                                  fmt::format("topic '{}' was deleted", topic->name)));
      collect(*partition);
    }
  }
  relink();
  drain();
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

/// All that is left gets new sequences, from 0. None of it may be in the log (CLI-5): what might be
/// has had its outcome before. The leader refuses what still comes in the epoch before.
void ProduceSender::begin_epoch(ProducerPartition& partition) {
  partition.new_epoch = false;
  ++partition.producer_epoch;
  partition.next_sequence = 0;
  for (const ProduceBatchPtr& batch : partition.queue) {
    batch->base_sequence = -1;
    batch->named = false;
  }
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

void ProduceSender::answered(const SentPtr& sent, base::Result<net::Frame> frame) {
  if (stopped_) return;
  --sent->link->in_flight;
  if (!frame) {
    give_up_under_way(*sent, from_transport(frame.error(), sent->where));
  } else if (config_.acks == Acks::none) {
    for (const Entry& entry : sent->entries) settle_entry(entry, {}, sent->where);
  } else {
    settle(sent, read_response(*frame, &protocol::decode_produce_response, sent->where));
  }
  drain();
  const auto at_rest = [](const auto& link) { return link.second->active.empty(); };
  if (idle_ && std::ranges::all_of(links_, at_rest)) idle_();
}

void ProduceSender::settle(const SentPtr& sent, const Result<protocol::ProduceResponse>& response) {
  if (response) core_.metadata.note_version(response->envelope.metadata_version);
  if (response && response->results.size() == sent->entries.size()) {
    for (std::size_t i = 0; i < sent->entries.size(); ++i)
      settle_entry(sent->entries[i], response->results[i], sent->where);
    return;
  }
  protocol::ProduceResult all;
  if (response) {
    all.status = protocol::Status::of(protocol::WireError::protocol_violation,
                                      "a produce answer has the wrong number of results");
    all.status.advice.maybe_applied = true;
  } else {
    const Error& error = response.error();
    all.status.code = static_cast<std::int32_t>(error.code);
    all.status.text = error.message;
    all.status.advice.retriable = error.retriable;
    all.status.advice.fatal = error.fatal;
    all.status.advice.maybe_applied = error.maybe_applied || error.code == Errc::protocol_violation;
    all.status.advice.refresh_metadata = error.retriable;
  }
  for (const Entry& entry : sent->entries) settle_entry(entry, all, sent->where);
}

void ProduceSender::settle_entry(const Entry& entry, const protocol::ProduceResult& result,
                                 const std::string& where) {
  ProducerPartition& partition = *entry.partition;
  --partition.in_flight;
  if (!result.status.ok()) {
    partition.restart = true;
    if (refused_before_append(result.status)) --entry.batch->unanswered;
    if (!entry.batch->done) refused(entry, result.status, where);
  } else if (!entry.batch->done) {
    entry.batch->base_offset = result.base_offset.value();
    entry.batch->append_time_ms = result.append_time_ms;
    partition.failures = 0;
    partition.alone = false;
    partition.trouble.clear();
    finish(*entry.batch, {});
  }
  collect(partition);
}

void ProduceSender::refused(const Entry& entry, const protocol::Status& status,
                            const std::string& where) {
  ProducerPartition& partition = *entry.partition;
  // The batch before this one failed, and that is what decides about the pause.
  if (status.error() == protocol::WireError::out_of_order) return;
  if (status.error() == protocol::WireError::stale_connection) leave_connection(partition);
  if (status.error() == protocol::WireError::batch_too_large)
    return refused_too_large(entry, where);
  switch (status.error()) {
    case protocol::WireError::unknown_producer:
    case protocol::WireError::out_of_order_sequence:
    case protocol::WireError::duplicate_sequence:
      return refused_by_sequence(entry, status, where);
    default:
      break;
  }
  if (status.advice.refresh_metadata) core_.metadata.refresh_soon(partition.id.topic);
  if (!status.advice.retriable) return finish(*entry.batch, from_status(status, where));
  partition.trouble = to_string(from_status(status, where));
  core_.log.warning(
      partition_text(partition),
      fmt::format("{}: {}; trying again", partition_text(partition), partition.trouble));
  back_off(partition);
}

/// A newer connection of this client has appended there: only one that is newer still can.
void ProduceSender::leave_connection(const ProducerPartition& partition) {
  const ConnectionPtr connection = core_.pool.find(partition.link->broker);
  if (!connection || connection->number() != partition.connection) return;
  core_.runtime.post([connection] { connection->close(); });  // not in the middle of its answer
}

/// The leader does not take the batch under its sequence. CLI-5: it goes again, under a new epoch,
/// only if it is certain that it is not in the log, and then nothing behind it is either.
void ProduceSender::refused_by_sequence(const Entry& entry, const protocol::Status& status,
                                        const std::string& where) {
  ProducerPartition& partition = *entry.partition;
  ProduceBatch& batch = *entry.batch;
  const auto first = std::ranges::find(partition.queue, false, &ProduceBatch::done);
  if (first == partition.queue.end() || *first != entry.batch) return;  // it goes again in its turn
  // A gap: one before it was given up and never came there. Otherwise the leader cannot tell, and
  // only a batch whose every try was refused is surely not there.
  const bool is_gap = status.error() == protocol::WireError::out_of_order_sequence;
  const bool surely_absent = is_gap || batch.unanswered == 0;
  if (!surely_absent || batch.base_sequence == 0) {
    Error error = from_status(status, where);
    error.maybe_applied = !surely_absent;
    return finish(batch, std::move(error));
  }
  partition.new_epoch = true;
  core_.log.warning(partition_text(partition),
                    fmt::format("{}: {}; beginning a new producer epoch", partition_text(partition),
                                to_string(from_status(status, where))));
}

/// The topic takes less than this client thought: smaller batches, and only a record that is too
/// large alone fails.
void ProduceSender::refused_too_large(const Entry& entry, const std::string& where) {
  ProducerPartition& partition = *entry.partition;
  ProduceBatch& batch = *entry.batch;
  const auto at = std::ranges::find(partition.queue, entry.batch);
  std::vector<ProduceBatchPtr> halves = split(batch, base::BufferPool::shared(), codec_);
  if (halves.size() == 2 && at != partition.queue.end()) {
    accumulator_.count_split(*halves[1]);
    *at = halves[0];
    partition.queue.insert(std::next(at), halves[1]);
    batch.done = true;  // the halves have taken everything over
    return;
  }
  const auto topic_limit = partition.topic->batch_bytes_max;
  finish(batch,
         make_error(Errc::record_too_large,
                    fmt::format("{}: a record needs a batch of {} bytes, more than the "
                                "topic takes ({} bytes when it was looked up)",
                                partition_text(partition), batch.bytes.bytes.size(), topic_limit),
                    where));
}

/// The connection ended under this request.
void ProduceSender::give_up_under_way(const Sent& sent, const Error& error) {
  for (const Entry& entry : sent.entries) {
    --entry.partition->in_flight;
    entry.partition->restart = true;
    entry.partition->trouble = to_string(error);
    core_.metadata.refresh_soon(entry.partition->id.topic);
    collect(*entry.partition);
  }
}

void ProduceSender::back_off(ProducerPartition& partition) {
  const int doublings = std::min(partition.failures, 10);
  ++partition.failures;
  const auto delay = std::min(kBackOffMax, kBackOffMin * (1 << doublings));
  const auto per_mille = static_cast<std::int64_t>(750 + core_.runtime.random() % 501);
  partition.retry_at = core_.runtime.now() + std::chrono::microseconds(delay.count() * per_mille);
}

void ProduceSender::finish(ProduceBatch& batch, Error error) {
  if (batch.done) return;
  batch.done = true;
  batch.error = std::move(error);
}

/// Takes batches that have their outcome from the front: results come in the order of the records.
void ProduceSender::collect(ProducerPartition& partition) {
  while (!partition.queue.empty() && partition.queue.front()->done) {
    ProduceBatchPtr batch = std::move(partition.queue.front());
    partition.queue.pop_front();
    if (partition.next > 0) --partition.next;
    batch->bytes = {};
    batch->builder.reset();
    auto& count = batch->error.code == Errc::ok ? stats_.records_delivered : stats_.records_failed;
    count += batch->record_count;
    outcomes_.push_back(std::move(batch));
  }
}

void ProduceSender::report() {
  if (outcomes_.empty()) return;
  std::vector<ProduceBatchPtr> outcomes;
  outcomes.swap(outcomes_);
  accumulator_.resolve(outcomes);
  if (sink_) sink_(std::move(outcomes));
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

void ProduceSender::watch_deadlines() {
  if (expiry_timer_ != 0) return;
  const auto period =
      std::clamp<milliseconds>(config_.delivery_timeout / 20, milliseconds(10), milliseconds(1000));
  expiry_timer_ = core_.runtime.start_timer(core_.runtime.now() + period, [this] {
    expiry_timer_ = 0;
    expire();
  });
}

void ProduceSender::expire() {
  bool work = false;
  for (auto& [broker, link] : links_) {
    for (ProducerPartition* partition : link->active) expire(*partition);
    work = work || !link->active.empty();
  }
  if (work) watch_deadlines();
  relink();
  drain();
}

void ProduceSender::expire(ProducerPartition& partition) {
  const base::TimePoint now = core_.runtime.now();
  accumulator_.take_open(partition, false, now - config_.delivery_timeout);
  for (const ProduceBatchPtr& batch : partition.queue) {
    if (batch->deadline > now && batch->attempts == 0) break;
    // CLI-5: later the leader might take it for new.
    const bool repeatable =
        !idempotent_ || batch->unanswered == 0 || now - batch->doubtful_since < kRepeatable;
    if (batch->done || (batch->deadline > now && repeatable)) continue;
    const auto limit = std::min<milliseconds>(
        config_.delivery_timeout, repeatable ? milliseconds::max() : milliseconds(kRepeatable));
    std::string text =
        fmt::format("{}: not acknowledged within {} ms", partition_text(partition), limit.count());
    if (!partition.trouble.empty()) text += ": " + partition.trouble;
    Error error = make_error(Errc::delivery_timed_out, std::move(text));
    error.maybe_applied = batch->unanswered > 0;
    if (!error.maybe_applied) error.hint = "it was not stored, and may be sent again: mqctl status";
    finish(*batch, std::move(error));
  }
  collect(partition);
}

void ProduceSender::fail_all(const Error& error) {
  stopped_ = true;
  accumulator_.take_news(news_);
  news_.clear();
  for (const ProducerTopicPtr& topic : accumulator_.topics()) {
    for (const auto& partition : topic->partitions) {
      accumulator_.take_open(*partition, true, {});
      for (const ProduceBatchPtr& batch : partition->queue) {
        Error mine = error;
        mine.maybe_applied = batch->unanswered > 0;
        finish(*batch, std::move(mine));
      }
      collect(*partition);
    }
  }
  report();
}

}  // namespace mq::client
