#include "replication/partition.h"

#include <algorithm>

#include "base/check.h"
#include "base/mutants.h"
#include "replication/sequence_rule.h"

namespace mq::replication {

Partition::Partition(base::Runtime& runtime, storage::PartitionLog& log, base::Counters& counters,
                     std::optional<LeaderRole> role)
    : runtime_(runtime),
      log_(log),
      counters_(counters),
      told_log_start_(log.log_start_offset()),
      trims_(runtime),
      disk_visits_ended_(runtime) {
  high_watermark_ = log_.confirmed_end();
  log_.set_retention_limit(Offset());
  if (role) take_role(*std::move(role));
  log_.on_changed([this] { confirmed_end_moved(); });
}

Partition::~Partition() {
  close();
  MQ_CHECK(disk_visits_ == 0, "{} reads or trims of {} still run", disk_visits_, id().text());
}

Error Partition::failure() const { return own_failure_ ? own_failure_ : log_.failure(); }

Result<storage::AppendInfo> Partition::append(base::Buffer owner, base::MutableBytes batch,
                                              const BatchOrigin& origin, Acks acks) {
  MQ_TRY(const Admitted admitted, admit(batch, origin, acks));
  if (admitted.repeat) return *admitted.repeat;
  const Offset end_before = log_.log_end_offset();
  return appended(log_.append(std::move(owner), batch, admitted.parsed), end_before, origin);
}

Result<Partition::Admitted> Partition::admit(base::MutableBytes batch, const BatchOrigin& origin,
                                             Acks acks) {
  if (const Error failed = failure()) return failed;
  // PAR-5, PRO-3: a batch out of its turn is refused before the log sees it.
  if (const Error refused = order_.check(origin)) return refused;
  order_.tried(origin);
  // Checksums before anything in it is believed; the topic's own limit after repeats are known.
  MQ_TRY(const auto parsed, model::parse_produced(batch, model::batch_format::kBatchBytesMax));
  // ISR-7. Not asked of a repeat: what is in the log already is not refused.
  const bool too_few = acks == Acks::all && isr_ && !isr_->enough();
  if (!parsed.producer().known()) {
    if (too_few) return make_error_code(ReplicationErrc::not_enough_replicas);
    return Admitted{parsed, std::nullopt};
  }
  // IDM-1, IDM-3: before size and space are asked for; a repeat of what is in the log must not
  // fail.
  const auto* const known = log_.find_producer(parsed.producer_id());
  const auto verdict = check_sequence(known, parsed);
  if (verdict.refusal) {
    order_.takes_over(origin);  // else what its client does about it could come second
    return verdict.refusal;
  }
  if (verdict.repeat_of) {
    order_.appended(origin);
    const auto& repeated = *verdict.repeat_of;
    const storage::AppendInfo repeat{repeated.base_offset, repeated.end_offset(),
                                     log_.leader_epoch(), repeated.append_time_ms, true};
    return Admitted{parsed, repeat};
  }
  if (too_few) return make_error_code(ReplicationErrc::not_enough_replicas);
  // IDM-6: whom the log would forget for this one may have a batch to repeat.
  if (known == nullptr && !log_.has_room_for_a_producer() &&
      !MQ_MUTANT("producers_forgotten_for_new_ones"))
    return make_error_code(ReplicationErrc::too_many_producers);
  return Admitted{parsed, std::nullopt};
}

Result<storage::AppendInfo> Partition::appended(const Result<storage::AppendInfo>& info,
                                                Offset end_before, const BatchOrigin& origin) {
  if (!info) return info.error();
  // LOG-1
  if (!keeps(info->base_offset == end_before && info->end_offset > end_before, "LOG-1"))
    return own_failure_;
  order_.appended(origin);
  if (isr_) isr_->appended(end_before, leader_log(), runtime_.now());
  advance_high_watermark();
  if (!listeners_.empty()) tell_listeners();
  return *info;
}

std::uint64_t Partition::append_later(base::Buffer owner, base::MutableBytes batch,
                                      const BatchOrigin& origin, Acks acks, Appended done) {
  Later later{++later_number_, std::move(owner), batch, origin, acks, std::move(done)};
  later_.push_back(std::move(later));
  if (!std::exchange(appending_later_, true)) {
    ++disk_visits_;
    runtime_.spawn("appends that wait", append_those_later());
  }
  return later_number_;
}

bool Partition::give_up(std::uint64_t later) {
  return std::erase_if(later_, [&](const Later& each) { return each.number == later; }) > 0;
}

/// PAR-7: one after the other, in the order they came. After a close each is told so.
asio::awaitable<void> Partition::append_those_later() {
  while (!later_.empty()) {
    Later next = std::move(later_.front());
    later_.pop_front();
    const Appended done = std::move(next.done);
    const auto outcome = co_await append_one(std::move(next));
    done(outcome);
  }
  appending_later_ = false;
  if (--disk_visits_ == 0) disk_visits_ended_.notify_all();
}

asio::awaitable<Result<storage::AppendInfo>> Partition::append_one(Later later) {
  MQ_CO_TRY(const Admitted admitted, admit(later.batch, later.origin, later.acks));
  if (admitted.repeat) co_return *admitted.repeat;
  const Offset end_before = log_.log_end_offset();
  const auto info =
      co_await log_.append_later(std::move(later.owner), later.batch, admitted.parsed);
  if (const Error failed = failure()) co_return failed;
  co_return appended(info, end_before, later.origin);
}

bool Partition::is_acknowledged(const storage::AppendInfo& appended, Acks acks) const {
  if (MQ_MUTANT("ack_before_confirmed")) return true;
  return acks == Acks::none || (appended.end_offset <= acknowledged_end(acks) &&  // PAR-2
                                appended.leader_epoch == log_.leader_epoch() && !failure());
}

Offset Partition::acknowledged_end(Acks acks) const {
  // With one replica acks=leader and acks=all wait for the same end.
  return isr_ && acks == Acks::all ? confirmed_by_isr_ : log_.confirmed_end();
}

void Partition::when_acknowledged(const storage::AppendInfo& appended, Acks acks,
                                  Acknowledged done) {
  if (failure() || appended.end_offset <= acknowledged_end(acks)) {
    // Rare: the caller missed the moment. Not from within this call.
    Error outcome = failure();
    if (!outcome && appended.leader_epoch != log_.leader_epoch())
      outcome = ReplicationErrc::epoch_changed;
    runtime_.post([done = std::move(done), outcome] { done(outcome); });
    return;
  }
  auto& waiters = isr_ && acks != Acks::all ? leader_ack_waiters_ : ack_waiters_;
  // A repeat may wait for less than those who came before it.
  const auto place =
      std::ranges::upper_bound(waiters, appended.end_offset, {}, &AckWaiter::end_offset);
  waiters.insert(place, {appended.end_offset, appended.leader_epoch, std::move(done)});
}

asio::awaitable<Result<void>> Partition::acknowledged(storage::AppendInfo appended, Acks acks,
                                                      base::TimePoint deadline) {
  if (is_acknowledged(appended, acks)) co_return Result<void>{};
  struct State {
    explicit State(base::Runtime& runtime) : ended(runtime) {}
    base::WaitList ended;
    bool done = false;
    Error outcome;
  };
  const auto state = std::make_shared<State>(runtime_);
  Acknowledged callback = [state](Error outcome) {
    state->done = true;
    state->outcome = outcome;
    state->ended.notify_all();
  };
  when_acknowledged(appended, acks, std::move(callback));
  while (!state->done) {
    const bool notified = co_await state->ended.wait_until(deadline);
    if (!notified && !state->done) co_return make_error_code(ReplicationErrc::timed_out);
  }
  if (state->outcome) co_return state->outcome;
  co_return Result<void>{};
}

Result<void> Partition::check_readable(Offset from) const {
  if (const Error failed = failure()) return failed;
  // LOG-11, PAR-3
  if (from < log_.log_start_offset()) return make_error_code(ReplicationErrc::offset_out_of_range);
  if (from <= high_watermark_) return {};
  // PAR-8: it may have been readable at the leader before this one.
  if (knows_its_end()) return make_error_code(ReplicationErrc::offset_out_of_range);
  if (from <= isr_->epoch_start()) return {};
  return make_error_code(ReplicationErrc::offset_not_available);
}

bool Partition::knows_its_end() const { return !isr_ || high_watermark_ >= isr_->epoch_start(); }

Result<Offset> Partition::latest() const {
  if (const Error failed = failure()) return failed;
  if (!knows_its_end()) return make_error_code(ReplicationErrc::offset_not_available);
  return high_watermark_;
}

Result<storage::ReadResult> Partition::read(Offset from, std::size_t bytes_max) {
  MQ_TRY_VOID(check_readable(from));
  if (from >= high_watermark_) {
    storage::ReadResult nothing;
    nothing.end_offset = from;
    return nothing;
  }
  const Offset limit = MQ_MUTANT("reads_pass_the_high_watermark") ? log_.log_end_offset()
                                                                  : high_watermark_;  // PAR-3
  return log_.read(from, limit, bytes_max);
}

asio::awaitable<Result<storage::ReadResult>> Partition::read_from_disk(Offset from,
                                                                       std::size_t bytes_max) {
  MQ_CO_TRY_VOID(check_readable(from));
  if (from >= high_watermark_) {
    storage::ReadResult nothing;
    nothing.end_offset = from;
    co_return nothing;
  }
  ++disk_visits_;
  auto result = co_await log_.read_from_disk(from, high_watermark_, bytes_max);
  if (--disk_visits_ == 0) disk_visits_ended_.notify_all();
  if (const Error failed = failure()) co_return failed;
  co_return result;
}

asio::awaitable<Result<storage::TimeLookup>> Partition::find_time(std::int64_t time_ms) {
  if (const Error failed = failure()) co_return failed;
  ++disk_visits_;
  auto found = co_await log_.find_time(time_ms);
  if (--disk_visits_ == 0) disk_visits_ended_.notify_all();
  if (const Error failed = failure()) co_return failed;
  if (found && found->offset >= high_watermark_) {  // PAR-3
    if (!knows_its_end()) co_return make_error_code(ReplicationErrc::offset_not_available);
    found->offset = high_watermark_;
    found->append_time_ms = -1;
  }
  co_return found;
}

asio::awaitable<Result<Offset>> Partition::trim(Offset to) {
  if (const Error failed = failure()) co_return failed;
  // LOG-10: what nobody may have read yet stays.
  if (to > high_watermark_) {
    co_return make_error_code(knows_its_end() ? ReplicationErrc::offset_out_of_range
                                              : ReplicationErrc::offset_not_available);
  }
  ++disk_visits_;
  const auto trimmed = co_await log_.trim(to);
  if (--disk_visits_ == 0) disk_visits_ended_.notify_all();
  if (const Error failed = failure()) co_return failed;
  if (!trimmed) co_return trimmed.error();
  log_start_moved();
  co_return log_.log_start_offset();
}

asio::awaitable<Result<void>> Partition::trimmed_everywhere(Offset start,
                                                            base::TimePoint deadline) {
  ++disk_visits_;
  bool in_time = true;
  while (in_time && !failure() && !not_trimmed(start).empty())
    in_time = co_await trims_.wait_until(deadline);
  const bool done = not_trimmed(start).empty();
  if (--disk_visits_ == 0) disk_visits_ended_.notify_all();
  if (const Error failed = failure()) co_return failed;
  if (!done) co_return make_error_code(ReplicationErrc::timed_out);
  co_return Result<void>();
}

void Partition::close() {
  // Once: whoever has the log next may be there before the last user of this one lets go.
  if (!std::exchange(closed_, true)) log_.on_changed({});
  if (!own_failure_) own_failure_ = ReplicationErrc::closed;
  fail_waiters(own_failure_);
}

asio::awaitable<void> Partition::closed() {
  while (disk_visits_ > 0) co_await disk_visits_ended_.wait();
}

bool Partition::keeps(bool held, std::string_view rule) {
  if (held) [[likely]]
    return true;
  counters_.invariant(false, rule, id().text());
  own_failure_ = ReplicationErrc::invariant_broken;
  fail_waiters(own_failure_);
  return false;
}

void Partition::confirmed_end_moved() {
  if (const Error failed = failure()) return fail_waiters(failed);
  advance_high_watermark();
  log_start_moved();
}

void Partition::advance_high_watermark() {
  if (isr_) return advance_replicated();
  const Offset confirmed =
      MQ_MUTANT("high_watermark_at_log_end") ? log_.log_end_offset() : log_.confirmed_end();
  if (confirmed == high_watermark_) return;
  // PAR-1
  if (!keeps(confirmed > high_watermark_, "PAR-1")) return;
  high_watermark_ = confirmed;
  complete_acknowledged(ack_waiters_, high_watermark_);
  fetch_waiters_.wake_below(high_watermark_);
}

void Partition::complete_acknowledged(std::deque<AckWaiter>& waiters, Offset end) {
  while (!waiters.empty() && waiters.front().end_offset <= end) {
    const AckWaiter waiter = std::move(waiters.front());
    waiters.pop_front();
    Error outcome;
    if (waiter.leader_epoch != log_.leader_epoch()) outcome = ReplicationErrc::epoch_changed;
    waiter.done(outcome);
  }
}

void Partition::fail_waiters(Error why) {
  for (auto* waiters : {&ack_waiters_, &leader_ack_waiters_}) {
    while (!waiters->empty()) {
      const AckWaiter waiter = std::move(waiters->front());
      waiters->pop_front();
      waiter.done(why);
    }
  }
  fetch_waiters_.wake_all();
  trims_.notify_all();
  tell_listeners();
}

}  // namespace mq::replication
