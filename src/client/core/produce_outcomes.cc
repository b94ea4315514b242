// What becomes of batches: answers, refusals, time that is over.

#include <fmt/format.h>

#include <algorithm>

#include "client/core/error.h"
#include "client/core/produce_sender.h"
#include "client/core/request.h"

namespace mq::client {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBackOffMin{20};
constexpr milliseconds kBackOffMax{1000};
/// So often a producer that gets no answers looks whether partitions were added.
constexpr std::chrono::seconds kUnanswered{3};
/// For so long a leader surely knows a batch again that it may have appended.
constexpr std::chrono::minutes kRepeatable{5};

std::string partition_text(const ProducerPartition& partition) {
  return fmt::format("{}/{}", partition.topic->name, partition.id.partition);
}

/// Of a batch behind one that was given up: what this leader lacks another replica may have, which
/// led before and may lead again.
Error left_behind(const ProducerPartition& partition) {
  Error error = make_error(
      Errc::delivery_timed_out,
      fmt::format("{}: one before it was given up, and no answer to this one said whether it was "
                  "appended",
                  partition_text(partition)));
  error.maybe_applied = true;
  return error;
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
    case protocol::WireError::unknown_topic_id:
    case protocol::WireError::unknown_partition:
      return !status.advice.maybe_applied;
    default:
      return false;
  }
}

}  // namespace

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

void ProduceSender::answered(const SentPtr& sent, base::Result<net::Frame> frame) {
  if (stopped_) return;
  --sent->link->in_flight;
  if (!frame) {
    give_up_under_way(*sent, from_transport(frame.error(), sent->where));
  } else if (config_.acks == Acks::none) {
    for (const Entry& entry : sent->entries) {
      settle_entry(entry, {}, sent->where);
      core_.metadata.refresh_older_than(entry.partition->id.topic, kUnanswered);
    }
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
  Error error = core_.metadata.error_of(status, partition.id, where);
  if (!error.retriable) return finish(*entry.batch, std::move(error));
  partition.trouble = to_string(error);
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
  // A gap: one before it was given up and never came there. Only a batch whose every try was
  // refused is surely nowhere.
  const bool is_gap = status.error() == protocol::WireError::out_of_order_sequence;
  const bool surely_absent = batch.unanswered == 0;
  if (is_gap && !surely_absent) return finish(batch, left_behind(partition));
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

/// All that is left gets new sequences, from 0. None of it may be in a log (CLI-5): what might be
/// in that of any replica has its outcome now. The leader refuses what still comes in the epoch
/// before.
void ProduceSender::begin_epoch(ProducerPartition& partition) {
  partition.new_epoch = false;
  ++partition.producer_epoch;
  partition.next_sequence = 0;
  for (const ProduceBatchPtr& batch : partition.queue) {
    batch->base_sequence = -1;
    batch->named = false;
    if (batch->unanswered > 0) finish(*batch, left_behind(partition));
  }
  collect(partition);
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
