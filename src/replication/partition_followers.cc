// What a partition does for its followers and with what they say.
#include "base/mutants.h"
#include "replication/partition.h"

namespace mq::replication {

void Partition::take_role(LeaderRole role) {
  isr_.emplace(Isr::Setup{role.self, std::move(role.replicas), std::move(role.state),
                          log_.log_end_offset(), role.limits},
               runtime_.now());
  // What was seen of it before; proves nothing, so that acknowledgements do not go by it.
  const Offset hint = std::max(log_.log_start_offset(), log_.high_watermark_hint());
  high_watermark_ = std::min(hint, log_.confirmed_end());
  confirmed_by_isr_ = log_.log_start_offset();
  log_.set_retention_limit(high_watermark_);  // LOG-10
  advance_replicated();
}

LeaderLog Partition::leader_log() const {
  return {log_.log_end_offset(), log_.confirmed_end(), log_.settings().durability};
}

void Partition::advance_replicated() {
  if (!leader_ack_waiters_.empty())
    complete_acknowledged(leader_ack_waiters_, log_.confirmed_end());
  const auto confirmed = isr_->high_watermark(leader_log());
  if (!confirmed || *confirmed <= confirmed_by_isr_) return;
  // PAR-1
  if (!keeps(*confirmed <= log_.confirmed_end(), "PAR-1")) return;
  confirmed_by_isr_ = *confirmed;
  const bool rises = confirmed_by_isr_ > high_watermark_;
  if (rises) {
    high_watermark_ = confirmed_by_isr_;
    log_.set_high_watermark_hint(high_watermark_);
    log_.set_retention_limit(high_watermark_);
  }
  complete_acknowledged(ack_waiters_, confirmed_by_isr_);
  if (rises) fetch_waiters_.wake_below(high_watermark_);
}

void Partition::take_state(const IsrState& state) {
  if (failure() || !isr_->take_state(state, runtime_.now())) return;
  trims_.notify_all();
  advance_replicated();
  isr_may_change();
}

std::optional<protocol::IsrProposal> Partition::isr_request(const Isr::Registered& registered) {
  // Whose own disk has failed asks for nothing: the others may be the ones that work.
  if (failure()) return std::nullopt;
  auto proposal = isr_->request(leader_log(), high_watermark_, registered, runtime_.now());
  if (proposal) proposal->partition = id();
  return proposal;
}

void Partition::isr_answered(const std::optional<IsrState>& state) {
  isr_->answered();
  if (state) take_state(*state);
}

void Partition::isr_may_change() {
  if (isr_wanted_ && isr_->somebody_caught_up(leader_log(), high_watermark_)) isr_wanted_();
}

Result<Partition::Subscribed> Partition::subscribe(IsrMember follower,
                                                   const protocol::ReplicaSubscribe& from) {
  if (const Error failed = failure()) return failed;
  if (!isr_) return make_error_code(ReplicationErrc::not_a_replica);
  if (from.leader_epoch < isr_->leader_epoch() && !MQ_MUTANT("older_epoch_fetches_count"))
    return make_error_code(ReplicationErrc::fenced_leader_epoch);
  if (from.leader_epoch > isr_->leader_epoch())
    return make_error_code(ReplicationErrc::unknown_leader_epoch);
  if (from.appended < log_.log_start_offset())
    return make_error_code(ReplicationErrc::offset_out_of_range);
  // ISR-6: before anything of it counts.
  const auto leaves =
      divergence(log_.epoch_starts(), log_.log_end_offset(), from.last_epoch, from.appended);
  if (leaves) return Subscribed{leaves};
  const auto subscription = isr_->subscribed(follower, from.leader_epoch, runtime_.now());
  if (!subscription) return make_error_code(ReplicationErrc::not_a_replica);
  follower_has(
      {follower, *subscription, from.leader_epoch, from.appended, from.durable, from.log_start});
  return Subscribed{std::nullopt, *subscription};
}

std::optional<BrokerId> Partition::reader_near(Offset from,
                                               const std::function<bool(BrokerId)>& near) const {
  if (!isr_) return std::nullopt;
  for (const IsrMember& member : isr_->state().isr) {
    if (near(member.broker) && isr_->has(member, from)) return member.broker;
  }
  return std::nullopt;
}

void Partition::follower_has(const Isr::Report& report) {
  if (failure() || !isr_) return;
  // Nobody has what was never sent.
  if (report.appended > log_.log_end_offset() || report.durable > report.appended) return;
  if (!isr_->progressed(report, leader_log(), runtime_.now())) return;
  trims_.notify_all();
  advance_replicated();
  isr_may_change();
}

Result<storage::ReadResult> Partition::read_for_follower(Offset from, std::size_t bytes_max) {
  if (const Error failed = failure()) return failed;
  if (from < log_.log_start_offset() || from > log_.log_end_offset())
    return make_error_code(ReplicationErrc::offset_out_of_range);
  return log_.read(from, log_.log_end_offset(), bytes_max);
}

asio::awaitable<Result<storage::ReadResult>> Partition::read_from_disk_for_follower(
    Offset from, std::size_t bytes_max) {
  if (const Error failed = failure()) co_return failed;
  if (from < log_.log_start_offset() || from > log_.log_end_offset())
    co_return make_error_code(ReplicationErrc::offset_out_of_range);
  ++disk_visits_;
  auto result = co_await log_.read_from_disk(from, log_.log_end_offset(), bytes_max);
  if (--disk_visits_ == 0) disk_visits_ended_.notify_all();
  if (const Error failed = failure()) co_return failed;
  co_return result;
}

void Partition::log_start_moved() {
  if (std::exchange(told_log_start_, log_.log_start_offset()) == log_.log_start_offset()) return;
  tell_listeners();
}

void Partition::tell_listeners() {
  for (auto next = listeners_.begin(); next != listeners_.end();) {
    LogListener& listener = *next++;
    listener.log_moved();
  }
}

bool Partition::stands_still() {
  const auto confirmed = log_.confirmed_end();
  const bool waits = appending_later_ || confirmed < log_.log_end_offset();
  if (!isr_ || failure() || !waits) {
    still_.reset();
    return false;
  }
  const auto now = runtime_.now();
  if (!still_ || still_->first != confirmed) still_.emplace(confirmed, now);
  return now - still_->second >= isr_->limits().lag_time;
}

std::vector<Isr::Follower> Partition::followers() const {
  return isr_ ? isr_->followers(leader_log()) : std::vector<Isr::Follower>();
}

}  // namespace mq::replication
