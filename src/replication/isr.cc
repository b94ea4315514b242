#include "replication/isr.h"

#include <algorithm>

#include "base/mutants.h"

namespace mq::replication {
namespace {

bool contains(const std::vector<IsrMember>& members, const IsrMember& member) {
  return std::ranges::find(members, member) != members.end();
}

bool same_members(const std::vector<IsrMember>& left, const std::vector<IsrMember>& right) {
  return left.size() == right.size() &&
         std::ranges::all_of(left, [&](const IsrMember& each) { return contains(right, each); });
}

}  // namespace

Isr::Isr(Setup setup, base::TimePoint now) : setup_(std::move(setup)), looked_at_(now) {
  for (const BrokerId broker : setup_.replicas) {
    if (broker == setup_.self.broker) continue;
    Progress follower;
    follower.broker = broker;
    follower.caught_up_at = follower.progressed_at = follower.mark_at = now;
    followers_.push_back(follower);
  }
}

const Isr::Progress* Isr::find(BrokerId broker) const {
  const auto found = std::ranges::find(followers_, broker, &Progress::broker);
  return found == followers_.end() ? nullptr : &*found;
}

Isr::Progress* Isr::find(BrokerId broker) {
  const auto found = std::ranges::find(followers_, broker, &Progress::broker);
  return found == followers_.end() ? nullptr : &*found;
}

bool Isr::enough() const noexcept {
  return setup_.state.isr.size() >= setup_.state.min_isr || MQ_MUTANT("min_isr_ignored");
}

bool Isr::take_state(const IsrState& state, base::TimePoint now) {
  if (state.leader_epoch != setup_.state.leader_epoch) return false;
  // ISR-2: only a higher version shows that nothing that was asked for can still come to be.
  if (MQ_MUTANT("isr_union_dropped_early") && state.version == setup_.state.version) asked_.clear();
  if (state.version <= setup_.state.version) return false;
  for (Progress& follower : followers_) {
    const auto is_it = [&](const IsrMember& each) { return each.broker == follower.broker; };
    const bool was_in = std::ranges::any_of(setup_.state.isr, is_it);
    // Somebody else has put it there: it gets its time.
    if (!was_in && std::ranges::any_of(state.isr, is_it)) follower.caught_up_at = now;
  }
  setup_.state = state;
  asked_.clear();
  return true;
}

std::optional<std::uint64_t> Isr::subscribed(IsrMember member, LeaderEpoch epoch,
                                             base::TimePoint now) {
  Progress* follower = find(member.broker);
  const bool counts = epoch == leader_epoch() || MQ_MUTANT("older_epoch_fetches_count");
  if (!follower || !counts) return std::nullopt;
  if (follower->epoch != member.epoch) {
    // What an earlier registration said does not count for this one.
    follower->epoch = member.epoch;
    follower->appended = follower->durable = follower->log_start = Offset();
    follower->progressed_at = follower->mark_at = now;
    follower->mark_end = Offset();
  }
  follower->subscription = ++subscriptions_;
  return follower->subscription;
}

Offset Isr::confirmed(const Progress& follower, const LeaderLog& own) {
  if (own.durability == model::Durability::memory || MQ_MUTANT("isr_goes_by_log_end"))
    return follower.appended;
  return follower.durable;
}

bool Isr::progressed(const Report& report, const LeaderLog& own, base::TimePoint now) {
  Progress* follower = find(report.follower.broker);
  if (!follower || follower->epoch != report.follower.epoch) return false;
  if (follower->subscription != report.subscription) return false;
  // ISR-3: under another leader epoch the offsets may be those of other records.
  if (report.leader_epoch != leader_epoch() && !MQ_MUTANT("older_epoch_fetches_count"))
    return false;
  const Offset before = confirmed(*follower, own);
  follower->appended = report.appended;
  follower->durable = report.durable;
  follower->log_start = report.log_start;
  const Offset has = confirmed(*follower, own);
  if (has > before) follower->progressed_at = now;
  // Whoever has by now what the leader had at the mark was caught up with it then.
  if (follower->mark_end != Offset() && has >= follower->mark_end)
    follower->caught_up_at = std::max(follower->caught_up_at, follower->mark_at);
  if (follower->mark_end == Offset() || has >= follower->mark_end) {
    follower->mark_at = now;
    follower->mark_end = own.log_end;
  }
  if (has >= own.log_end) follower->caught_up_at = now;
  return true;
}

void Isr::appended(Offset end_before, const LeaderLog& own, base::TimePoint now) {
  for (Progress& follower : followers_) {
    if (follower.epoch == BrokerEpoch() || confirmed(follower, own) < end_before) continue;
    // Until now it had everything.
    follower.caught_up_at = follower.progressed_at = now;
  }
}

std::vector<IsrMember> Isr::maximal() const {
  if (MQ_MUTANT("isr_shrink_counts_early") && under_way_ && !asked_.empty()) return asked_;
  std::vector<IsrMember> all = setup_.state.isr;
  for (const IsrMember& member : asked_) {
    if (!contains(all, member)) all.push_back(member);
  }
  return all;
}

std::vector<BrokerId> Isr::begins_lower(Offset start) const {
  std::vector<BrokerId> lower;
  for (const IsrMember& member : maximal()) {
    if (member.broker == setup_.self.broker) continue;
    const Progress* const follower = find(member.broker);
    const bool known = follower != nullptr && follower->epoch == member.epoch;
    if (!known || follower->log_start < start) lower.push_back(member.broker);
  }
  return lower;
}

bool Isr::has(const IsrMember& member, Offset end) const noexcept {
  const Progress* const follower = find(member.broker);
  return follower != nullptr && follower->epoch == member.epoch && follower->appended >= end;
}

bool Isr::counts(const IsrMember& member) const noexcept {
  return contains(setup_.state.isr, member) || contains(asked_, member);
}

std::vector<Isr::Follower> Isr::followers(const LeaderLog& own) const {
  std::vector<Follower> all;
  for (const Progress& one : followers_) {
    const bool fetches = one.epoch != BrokerEpoch();
    all.push_back({one.broker, fetches ? confirmed(one, own) : Offset(), one.caught_up_at});
  }
  return all;
}

std::optional<Offset> Isr::high_watermark(const LeaderLog& own) const {
  if (!enough()) return std::nullopt;  // ISR-7
  Offset lowest = own.confirmed_end;
  for (const IsrMember& member : maximal()) {
    if (member.broker == setup_.self.broker) continue;
    const Progress* follower = find(member.broker);
    // ISR-1: a fetch counts only under the registration that the ISR names.
    if (!follower || follower->epoch != member.epoch) return std::nullopt;
    const Offset has = confirmed(*follower, own);
    if (has == Offset()) return std::nullopt;
    lowest = std::min(lowest, has);
  }
  return lowest;
}

/// ISR-4: it has everything that was ever readable, and all of the epochs before this one.
bool Isr::caught_up(const Progress& follower, const LeaderLog& own, Offset high_watermark) const {
  if (follower.epoch == BrokerEpoch()) return false;
  const Offset has = confirmed(follower, own);
  if (has < high_watermark) return false;
  return has >= setup_.epoch_start || MQ_MUTANT("isr_grows_before_epoch_start");
}

bool Isr::lags(const Progress& follower, const LeaderLog& own, base::TimePoint now) const {
  const Offset has = confirmed(follower, own);
  const bool known = follower.epoch != BrokerEpoch();
  if (known && has >= own.log_end) return false;
  if (now - follower.caught_up_at >= setup_.limits.lag_time) return true;
  return own.log_end.value() - has.value() > setup_.limits.lag_records &&
         now - follower.progressed_at >= setup_.limits.lag_time / 2;
}

bool Isr::somebody_caught_up(const LeaderLog& own, Offset high_watermark) const {
  return std::ranges::any_of(followers_, [&](const Progress& follower) {
    return caught_up(follower, own, high_watermark) &&
           !contains(setup_.state.isr, {follower.broker, follower.epoch});
  });
}

/// A leader that was held up itself (stopped, or without a processor) has not heard of its
/// followers in the meantime; they get the time to speak.
void Isr::forgive_absence(base::TimePoint now) {
  if (now - std::exchange(looked_at_, now) <= setup_.limits.lag_time) return;
  const auto earliest = now - setup_.limits.lag_time / 2;
  for (Progress& follower : followers_) {
    follower.caught_up_at = std::max(follower.caught_up_at, earliest);
    follower.progressed_at = now;
  }
}

void Isr::grow(const Progress& follower, const LeaderLog& own, Offset high_watermark,
               const Registered& registered, std::vector<IsrMember>& isr) const {
  if (!caught_up(follower, own, high_watermark)) return;
  auto epoch = registered(follower.broker);
  if (MQ_MUTANT("isr_grows_by_any_registration") && !epoch) epoch = follower.epoch;
  const bool same = epoch == follower.epoch || MQ_MUTANT("isr_grows_by_any_registration");
  if (!epoch || !same) return;
  std::erase_if(isr, [&](const IsrMember& each) { return each.broker == follower.broker; });
  isr.push_back({follower.broker, *epoch});
}

std::vector<IsrMember> Isr::wanted(const LeaderLog& own, Offset high_watermark,
                                   const Registered& registered, base::TimePoint now) const {
  std::vector<IsrMember> isr;
  for (const IsrMember& member : setup_.state.isr) {
    const Progress* follower = find(member.broker);
    // ISR-5: never without itself.
    if (member.broker == setup_.self.broker || (follower && !lags(*follower, own, now)))
      isr.push_back(member);
  }
  for (const Progress& follower : followers_) {
    const IsrMember member{follower.broker, follower.epoch};
    if (!contains(setup_.state.isr, member) && !lags(follower, own, now))
      grow(follower, own, high_watermark, registered, isr);
  }
  return isr;
}

std::optional<protocol::IsrProposal> Isr::request(const LeaderLog& own, Offset high_watermark,
                                                  const Registered& registered,
                                                  base::TimePoint now) {
  forgive_absence(now);
  if (under_way_) return std::nullopt;
  auto isr = wanted(own, high_watermark, registered, now);
  // What was asked for and is not wanted any more is given up by asking for what there is: that
  // raises the version, and the request before can come to nothing.
  if (same_members(isr, setup_.state.isr) && asked_.empty()) return std::nullopt;
  for (const IsrMember& member : isr) {
    if (!contains(asked_, member)) asked_.push_back(member);
  }
  under_way_ = true;
  protocol::IsrProposal proposal;
  proposal.leader_epoch = setup_.state.leader_epoch;
  proposal.version = setup_.state.version;
  proposal.isr = std::move(isr);
  return proposal;
}

}  // namespace mq::replication
