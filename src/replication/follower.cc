#include "replication/follower.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "base/mutants.h"
#include "storage/batch_head.h"

namespace mq::replication {

using model::LeaderEpoch;
using model::Offset;
using storage::StorageErrc;

namespace {

constexpr base::Duration kPauseMin = std::chrono::milliseconds(20);
constexpr base::Duration kPauseMax = std::chrono::seconds(1);
/// Until there may be memory, or space, again.
constexpr base::Duration kPauseForRoom = std::chrono::milliseconds(100);

/// The first batch of `batches`, alone.
Result<base::Bytes> first_batch(base::Bytes batches) {
  MQ_TRY(const std::uint32_t bytes, model::peek_batch_bytes(batches));
  if (bytes > batches.size()) return make_error_code(StorageErrc::corrupt_batch);
  return batches.first(bytes);
}

}  // namespace

FollowedPartition::FollowedPartition(base::Runtime& runtime, storage::PartitionLog& log,
                                     base::Counters& counters, net::MemoryBudget& memory,
                                     Following following)
    : runtime_(runtime),
      log_(log),
      counters_(counters),
      memory_(memory),
      following_(following),
      batches_(counters.get("replica_batches_total")),
      visits_ended_(runtime) {
  high_watermark_ =
      std::clamp(log_.high_watermark_hint(), log_.log_start_offset(), log_.log_end_offset());
  log_.set_retention_limit(Offset(0));  // REP-4: its leader decides what goes
  log_.on_changed([this] { log_changed(); });
}

FollowedPartition::~FollowedPartition() {
  close();
  MQ_CHECK(visits_ == 0, "{} pieces of work on {} still run", visits_, id().text());
}

Error FollowedPartition::failure() const {
  if (closed_) return ReplicationErrc::closed;
  return log_.failure();
}

std::optional<protocol::ReplicaSubscribe> FollowedPartition::subscribe(std::uint32_t number) {
  if (state_ != State::due || appending_later_) return std::nullopt;
  if (MQ_MUTANT("truncate_to_high_watermark") && number_ == 0 &&
      high_watermark_ < log_.log_end_offset()) {
    state_ = State::cutting;
    number_ = number;
    begin_visit();
    runtime_.spawn("cut of a follower", cut(shared_from_this(), high_watermark_));
    return std::nullopt;
  }
  protocol::ReplicaSubscribe subscribe;
  subscribe.partition = id();
  subscribe.number = number_ = number;
  subscribe.leader_epoch = following_.leader_epoch;
  subscribe.last_epoch = log_.last_batch_epoch();
  subscribe.log_start = told_log_start_ = log_.log_start_offset();
  subscribe.appended = told_appended_ = log_.log_end_offset();
  subscribe.durable = told_durable_ = log_.durable_offset();
  told_confirmed_ = log_.confirmed_end();
  state_ = State::subscribed;
  pausing_ = heard_ = false;
  unsubscribe_ = false;
  return subscribe;
}

bool FollowedPartition::take_unsubscribe() { return std::exchange(unsubscribe_, false); }

std::optional<protocol::ReplicaPosition> FollowedPartition::take_position() {
  if (state_ != State::subscribed || pausing_) return std::nullopt;
  protocol::ReplicaPosition position;
  position.partition = id();
  position.number = number_;
  position.appended = log_.log_end_offset();
  position.durable = log_.durable_offset();
  position.log_start = log_.log_start_offset();
  if (position.appended == told_appended_ && position.durable == told_durable_ &&
      position.log_start == told_log_start_)
    return std::nullopt;
  told_log_start_ = position.log_start;
  told_appended_ = position.appended;
  told_durable_ = position.durable;
  told_confirmed_ = log_.confirmed_end();
  return position;
}

bool FollowedPartition::has_urgent_position() const {
  return state_ == State::subscribed && !pausing_ &&
         (log_.confirmed_end() != told_confirmed_ || log_.log_start_offset() != told_log_start_);
}

void FollowedPartition::take(const protocol::ReplicaFetchResult& result, const base::Buffer& owner,
                             base::Bytes batches) {
  // REP-1: what was asked for before a cut, in another epoch or on another connection is not taken.
  const bool late = result.number != number_ || result.leader_epoch != following_.leader_epoch;
  const bool taken_late = late && MQ_MUTANT("late_replica_answers_taken");
  if (state_ != State::subscribed || (result.number != number_ && !taken_late))
    return counters_.get("replica_answers_dropped_total").add();
  if (!result.status.ok()) return refused(result);
  if (late && !taken_late) return back_off();
  leader_log_start_ = std::max(leader_log_start_, result.log_start);
  if (result.diverging)
    return begin_cut(EpochEnd{result.diverging->epoch, result.diverging->end_offset});
  heard_ = true;
  leader_high_watermark_ = std::max(leader_high_watermark_, result.high_watermark);
  append(owner, batches);
  if (state_ != State::subscribed) return;
  if (!appending_later_) pause_ = {};
  raise_high_watermark();
  follow_log_start();
  if (!in_sync_ && !pausing_ && log_.write_back_lags()) pause_for_disk();
}

/// Those in sync need the disk more. What the leader has sent already is taken.
void FollowedPartition::pause_for_disk() {
  counters_.get("replica_pauses_for_disk_total").add();
  pausing_ = unsubscribe_ = true;
  wait_for_disk();
  tell(true);
}

void FollowedPartition::wait_for_disk() {
  unschedule();
  timer_ = runtime_.start_timer(runtime_.now() + kPauseForRoom, [this] {
    timer_ = 0;
    if (state_ != State::subscribed) return;  // something else has ended the pause
    if (log_.write_back_lags() && !in_sync_) return wait_for_disk();
    subscribe_again({});
  });
}

void FollowedPartition::append(const base::Buffer& owner, base::Bytes batches) {
  while (!batches.empty()) {
    if (appending_later_ || !log_.appends_inline()) return append_later(batches);
    const auto batch = first_batch(batches);
    if (!batch) return append_failed(batch.error());
    const auto info = log_.append_replicated(owner, *batch);
    if (!info) return append_failed(info.error(), *batch);
    batches = batches.subspan(batch->size());
    appended();
  }
}

/// The disk is behind. What waits is a copy, so that little waiting does not hold whole answers.
void FollowedPartition::append_later(base::Bytes batches) {
  const std::size_t bytes = std::min(batches.size(), memory_.limit());
  if (!memory_.try_take(bytes)) {
    // The leader keeps it for us.
    unsubscribe_ = true;
    return subscribe_again(kPauseForRoom);
  }
  Waiting waiting;
  waiting.lease = net::Lease(memory_, bytes);
  waiting.owner = base::BufferPool::shared().take(batches.size());
  std::memcpy(waiting.owner.data(), batches.data(), batches.size());
  waiting.batches = base::Bytes(waiting.owner.data(), batches.size());
  waiting_.push_back(std::move(waiting));
  counters_.get("replica_appends_delayed_total").add();
  if (std::exchange(appending_later_, true)) return;
  begin_visit();
  runtime_.spawn("appends of a follower", append_those_later(shared_from_this()));
}

asio::awaitable<void> FollowedPartition::append_those_later(
    std::shared_ptr<FollowedPartition> self) {
  while (!self->waiting_.empty()) {
    Waiting next = std::move(self->waiting_.front());
    self->waiting_.pop_front();
    const bool taken = co_await self->append_waiting(std::move(next));
    if (!taken) self->waiting_.clear();
  }
  self->appending_later_ = false;
  self->tell(true);  // a subscription may have waited for this
  self->end_visit();
}

/// False when the rest is for nothing.
asio::awaitable<bool> FollowedPartition::append_waiting(Waiting waiting) {
  const std::uint32_t number = number_;
  base::Bytes rest = waiting.batches;
  while (!rest.empty()) {
    if (closed_ || state_ != State::subscribed || number != number_) co_return false;
    const auto batch = first_batch(rest);
    if (!batch) {
      append_failed(batch.error());
      co_return false;
    }
    const auto info = co_await log_.append_replicated_later(waiting.owner, *batch);
    if (closed_) co_return false;
    if (!info) {
      append_failed(info.error(), *batch);
      co_return false;
    }
    rest = rest.subspan(batch->size());
    appended();
    tell(has_urgent_position());
  }
  co_return true;
}

void FollowedPartition::appended() {
  pause_ = {};
  batches_.add();
  raise_high_watermark();
}

/// Nothing of that batch was appended. Whatever it was, the log says from where on to ask again.
void FollowedPartition::append_failed(Error error, base::Bytes batch) {
  if (log_.failure()) return fail();
  if (error == make_error_code(StorageErrc::storage_full) ||
      error == make_error_code(StorageErrc::io_failed)) {
    unsubscribe_ = true;
    return subscribe_again(kPauseMax);
  }
  counters_.get("replica_batches_refused_total").add();
  const bool elsewhere = error == make_error_code(StorageErrc::offset_out_of_range);
  if (elsewhere && empty() && storage::head_at(batch.data()).base < log_.log_end_offset()) {
    needs_another_log_ = true;
    return fail("it begins inside a batch of its leader's");
  }
  base::log_warning("replication", "{}: a batch of broker {} at offset {} is not taken: {}",
                    id().text(), following_.leader, log_.log_end_offset(), error.message());
  unsubscribe_ = true;
  back_off();
}

/// The subscription has ended at the leader.
void FollowedPartition::refused(const protocol::ReplicaFetchResult& result) {
  const bool out_of_range = result.status.error() == protocol::WireError::offset_out_of_range;
  const Offset end = log_.log_end_offset();
  if (out_of_range && (result.log_start > end || (result.log_start == end && !empty()))) {
    // May lie below the leader's log start, where the batch begins in which that is.
    leader_log_start_ = result.log_start;
    return begin_restart();
  }
  leader_log_start_ = std::max(leader_log_start_, result.log_start);
  back_off();
}

void FollowedPartition::begin_cut(const EpochEnd& answer) {
  // REP-2
  const Offset to = cut_for(log_.epoch_starts(), log_.log_end_offset(), answer);
  if (to >= log_.log_end_offset() && log_.last_batch_epoch() != LeaderEpoch()) {
    base::log_error("replication",
                    "{}: broker {} says that the logs part in epoch {} at {}, which is no cut here",
                    id().text(), following_.leader, answer.epoch, answer.end_offset);
    return back_off();
  }
  if (to < log_.log_start_offset() || to >= log_.log_end_offset()) return begin_restart();
  state_ = State::cutting;
  begin_visit();
  runtime_.spawn("cut of a follower", cut(shared_from_this(), to));
}

asio::awaitable<void> FollowedPartition::cut(std::shared_ptr<FollowedPartition> self, Offset to) {
  const Offset end_before = self->log_.log_end_offset();
  const auto outcome = co_await self->cut_off(to);
  self->log_was_cut(outcome, end_before);
  self->end_visit();
}

/// REP-6
asio::awaitable<Result<void>> FollowedPartition::cut_off(Offset to) {
  const bool lost = keeps_what_is_cut_ || to < high_watermark_;
  if (lost) {
    MQ_CO_TRY_VOID(co_await log_.keep_aside(to));
    if (closed_) co_return make_error_code(StorageErrc::closed);
  }
  co_return co_await log_.truncate(to, following_.leader_epoch);
}

/// Nothing here goes on where the leader's log begins.
void FollowedPartition::begin_restart() {
  const Offset start = std::max(leader_log_start_, Offset(0));
  if (start < log_.log_start_offset()) {
    needs_another_log_ = true;
    return fail("its leader's log begins below this one, and the two have nothing in common");
  }
  state_ = State::cutting;
  begin_visit();
  base::log_warning("replication",
                    "{}: the log [{}, {}) has nothing in common with that of broker {}, which "
                    "begins at {}; it begins anew there",
                    id().text(), log_.log_start_offset(), log_.log_end_offset(), following_.leader,
                    start);
  runtime_.spawn("restart of a follower", restart(shared_from_this(), start));
}

asio::awaitable<void> FollowedPartition::restart(std::shared_ptr<FollowedPartition> self,
                                                 Offset start) {
  const Offset end_before = self->log_.log_end_offset();
  const LeaderEpoch epoch = self->following_.leader_epoch;
  Result<void> emptied;
  if (start < end_before) emptied = co_await self->cut_off(self->log_.log_start_offset());
  if (!emptied) {
    self->log_was_cut(emptied, end_before);
    co_return self->end_visit();
  }
  const auto outcome = co_await self->log_.restart_at(start, epoch);
  self->log_was_cut(outcome, end_before);
  self->end_visit();
}

void FollowedPartition::log_was_cut(const Result<void>& outcome, Offset end_before) {
  if (closed_) return;
  if (log_.failure()) return fail();
  const Offset end = log_.log_end_offset();
  if (end < high_watermark_) {
    // What was readable is gone: no clean election does that.
    counters_.get("records_truncated_below_high_watermark_total")
        .add(high_watermark_.value() - end.value());
    base::log_error("replication",
                    "{}: cut from {} back to {}, below its high watermark {}, because the log of "
                    "broker {} in epoch {} has nothing else",
                    id().text(), end_before, end, high_watermark_, following_.leader,
                    following_.leader_epoch);
    high_watermark_ = end;
    log_.set_high_watermark_hint(end);
  }
  high_watermark_ = std::max(high_watermark_, log_.log_start_offset());
  if (!outcome) {
    base::log_warning("replication", "{}: cannot be cut: {}", id().text(),
                      outcome.error().message());
    return back_off();
  }
  counters_.get("replica_cuts_total").add();
  subscribe_again({});
}

/// REP-4: what the leader has removed goes here too, as far as it is confirmed.
void FollowedPartition::follow_log_start() {
  const Offset to = std::min({leader_log_start_, log_.confirmed_end(), high_watermark_});
  if (trimming_ || to <= log_.log_start_offset()) return;
  trimming_ = true;
  begin_visit();
  runtime_.spawn("trim of a follower", trim(shared_from_this(), to));
}

asio::awaitable<void> FollowedPartition::trim(std::shared_ptr<FollowedPartition> self, Offset to) {
  const auto outcome = co_await self->log_.trim(to);
  self->trimming_ = false;
  if (!outcome && !self->closed_ && !self->log_.failure()) {
    base::log_warning("replication", "{}: the log start {} of the leader cannot be taken over: {}",
                      self->id().text(), to, outcome.error().message());
  }
  self->tell(self->has_urgent_position());
  self->end_visit();
}

void FollowedPartition::raise_high_watermark() {
  const Offset reached = std::min(leader_high_watermark_, log_.log_end_offset());
  if (reached <= high_watermark_) return;
  high_watermark_ = reached;
  log_.set_high_watermark_hint(high_watermark_);
  readers_.wake_below(high_watermark_);
}

void FollowedPartition::set_in_sync(bool in_sync) {
  if (std::exchange(in_sync_, in_sync) != in_sync) readers_.wake_all();
}

Error FollowedPartition::unreadable() const {
  if (closed_ || log_.failure()) return failure();
  if (state_ == State::subscribed && heard_ && in_sync_) return {};
  return ReplicationErrc::offset_not_available;
}

/// False: there is nothing at `from` yet. What lies outside of this log may be in the leader's.
Result<bool> FollowedPartition::look_for_reader(Offset from) const {
  if (const Error why = unreadable()) return Result<bool>(boost::system::in_place_error, why);
  if (from < log_.log_start_offset() || from > log_.log_end_offset()) {
    return Result<bool>(boost::system::in_place_error,
                        make_error_code(ReplicationErrc::offset_not_available));
  }
  return from < high_watermark_;
}

Result<storage::ReadResult> FollowedPartition::read(Offset from, std::size_t bytes_max) {
  MQ_TRY(const bool there, look_for_reader(from));
  const Offset limit =
      MQ_MUTANT("follower_reads_pass_the_high_watermark") ? log_.log_end_offset() : high_watermark_;
  if (there) return log_.read(from, limit, bytes_max);  // PAR-3
  storage::ReadResult nothing;
  nothing.end_offset = from;
  return nothing;
}

asio::awaitable<Result<storage::ReadResult>> FollowedPartition::read_from_disk(
    Offset from, std::size_t bytes_max) {
  MQ_CO_TRY(const bool there, look_for_reader(from));
  if (!there) {
    storage::ReadResult nothing;
    nothing.end_offset = from;
    co_return nothing;
  }
  begin_visit();
  auto result = co_await log_.read_from_disk(from, high_watermark_, bytes_max);
  end_visit();
  if (const Error why = unreadable()) co_return why;
  co_return result;
}

void FollowedPartition::log_changed() {
  if (log_.failure()) return fail();
  if (state_ != State::subscribed) return;
  follow_log_start();
  tell(has_urgent_position());
}

void FollowedPartition::disconnected() {
  unsubscribe_ = false;
  if (state_ == State::subscribed || state_ == State::due) subscribe_again({});
}

void FollowedPartition::back_off() {
  pause_ = std::clamp(2 * pause_, kPauseMin, kPauseMax);
  subscribe_again(pause_);
}

/// What still comes under the present number is not taken.
void FollowedPartition::subscribe_again(base::Duration pause) {
  if (closed_) return;
  unschedule();
  waiting_.clear();
  pausing_ = heard_ = false;
  readers_.wake_all();
  state_ = pause > base::Duration() ? State::waiting : State::due;
  if (state_ == State::waiting) {
    timer_ = runtime_.start_timer(runtime_.now() + pause, [this] {
      timer_ = 0;
      state_ = State::due;
      tell(true);
    });
  }
  if (state_ == State::due || unsubscribe_) tell(true);
}

void FollowedPartition::fail() { fail(log_.failure().message()); }

void FollowedPartition::fail(const std::string& why) {
  if (state_ == State::failed || closed_) return;
  unschedule();
  waiting_.clear();
  unsubscribe_ = state_ == State::subscribed;
  state_ = State::failed;
  readers_.wake_all();
  base::log_error("replication", "{}: following broker {} ends: {}", id().text(), following_.leader,
                  why);
  tell(true);
}

void FollowedPartition::unschedule() {
  if (timer_ != 0) runtime_.cancel_timer(std::exchange(timer_, 0));
}

void FollowedPartition::tell(bool urgent) {
  if (news_ && !closed_) news_(urgent);
}

void FollowedPartition::close() {
  if (std::exchange(closed_, true)) return;
  log_.on_changed({});
  news_ = nullptr;
  state_ = State::failed;
  unschedule();
  waiting_.clear();
  readers_.wake_all();
}

asio::awaitable<void> FollowedPartition::closed() {
  while (visits_ > 0) co_await visits_ended_.wait();
}

void FollowedPartition::end_visit() {
  if (--visits_ == 0) visits_ended_.notify_all();
}

}  // namespace mq::replication
