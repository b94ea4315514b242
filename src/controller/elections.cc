#include "controller/elections.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include "base/log.h"
#include "base/mutants.h"

namespace mq::controller {
namespace {

using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using model::LeaderEpoch;
using protocol::WireError;
using MemberList = std::vector<IsrMember>;

constexpr std::int32_t kEpochMax = std::numeric_limits<std::int32_t>::max();

/// Null: not in it. Constant like the list.
template <class List>
auto* find_member(List& members, BrokerId broker) {
  const auto found = std::ranges::find(members, broker, &IsrMember::broker);
  return found == members.end() ? nullptr : &*found;
}

void remove_member(MemberList& members, BrokerId broker) {
  std::erase_if(members, [&](const IsrMember& member) { return member.broker == broker; });
}

/// One above both. At the end of the numbers there is none, and the partition stays without leader.
std::optional<LeaderEpoch> next_epoch(LeaderEpoch stored, LeaderEpoch in_log = LeaderEpoch()) {
  const auto highest = std::max(stored.value(), in_log.value());
  if (highest >= kEpochMax) return std::nullopt;
  return LeaderEpoch(highest + 1);
}

bool same(const PartitionState& one, const PartitionState& other) {
  return one.leader == other.leader && one.leader_epoch == other.leader_epoch &&
         one.isr == other.isr && one.elr == other.elr &&
         one.last_known_elr == other.last_known_elr && one.min_isr == other.min_isr &&
         one.loss_epoch == other.loss_epoch && one.loss_start == other.loss_start &&
         one.loss_end == other.loss_end;
}

/// Nothing where it is as before.
std::optional<PartitionState> unless_same(PartitionState changed, const PartitionState& before) {
  if (same(changed, before)) return std::nullopt;
  return changed;
}

/// It has lost nothing since it stood in ISR or ELR as that member.
bool is_intact(const IsrMember& member, const protocol::ReplicaReport& report) {
  return report.intact_since.value() >= 0 && report.intact_since <= member.epoch;
}

// Who leads

std::optional<IsrMember> first_that_stays(const MemberList& members,
                                          const std::vector<BrokerId>& replicas,
                                          const LiveBrokers& brokers) {
  for (const BrokerId replica : replicas) {
    const auto* const member = find_member(members, replica);
    if (member != nullptr && brokers.stays(*member)) return *member;
  }
  return std::nullopt;
}

std::optional<IsrMember> next_leader(const PartitionState& state,
                                     const std::vector<BrokerId>& replicas,
                                     const LiveBrokers& brokers) {
  const auto next = first_that_stays(state.isr, replicas, brokers);
  return next ? next : first_that_stays(state.elr, replicas, brokers);
}

std::optional<PartitionState> without_leader(PartitionState state) {
  const auto next = next_epoch(state.leader_epoch);
  if (state.leader == BrokerId() || !next) return std::nullopt;
  state.leader = BrokerId();
  state.leader_epoch = *next;
  return state;
}

std::optional<PartitionState> led_by(const PartitionState& state, const IsrMember& leader,
                                     const LiveBrokers& brokers) {
  const auto next = next_epoch(state.leader_epoch);
  if (!next) return std::nullopt;
  MemberList isr;
  for (const auto& member : state.isr) {
    if (member == leader || brokers.stays(member)) isr.push_back(member);
  }
  if (find_member(isr, leader.broker) == nullptr) isr.push_back(leader);
  auto changed = with_isr(state, std::move(isr));
  changed.leader = leader.broker;
  changed.leader_epoch = *next;
  return changed;
}

std::optional<PartitionState> without_lost_members(const PartitionState& state,
                                                   const LiveBrokers& brokers) {
  MemberList isr;
  for (const auto& member : state.isr) {
    if (member.broker == state.leader || brokers.stays(member)) isr.push_back(member);
  }
  if (isr.size() == state.isr.size()) return std::nullopt;
  return with_isr(state, std::move(isr));
}

// Reports

void say_that_the_log_is_ahead(const PartitionState& state, const protocol::ReplicaReport& report) {
  if (report.last_leader_epoch <= state.leader_epoch) return;
  base::log_warning("controller",
                    "{}: the log has seen leader epoch {}, the metadata only {}; was the metadata "
                    "store restored from a backup?",
                    report.partition.text(), report.last_leader_epoch, state.leader_epoch);
}

void say_that_it_may_have_lost(BrokerId broker, const protocol::ReplicaReport& report,
                               std::string_view which) {
  base::log_warning("controller",
                    "{}: the {} replica may have lost its newest records: broker {} cannot say "
                    "that nothing is missing",
                    report.partition.text(), which, broker);
}

/// Up to here a log is known to be as it was confirmed: what stands above may be what its broker
/// appended as a leader and nobody confirmed.
model::Offset certain_end(model::Offset log_end, model::Offset high_watermark) {
  if (MQ_MUTANT("loss_told_from_the_start")) return model::Offset(0);
  const bool told = high_watermark.value() >= 0 && !MQ_MUTANT("loss_told_from_the_end");
  return told ? std::min(log_end, high_watermark) : log_end;
}

/// In that epoch it is led by a log that ends there, and may lack what came behind. Of two losses
/// that nobody has acknowledged the range is that of both.
void mark_loss(PartitionState& state, LeaderEpoch epoch, model::Offset start) {
  const bool another = state.loss_epoch != LeaderEpoch();
  if (!another) state.loss_end = {};
  state.loss_start =
      another && state.loss_start.value() >= 0 ? std::min(state.loss_start, start) : start;
  state.loss_epoch = epoch;
}

/// A leader that was elected whatever it has says what that is.
void note_lost_start(PartitionState& state, BrokerId broker, const protocol::ReplicaReport& report,
                     bool sole) {
  if (state.leader != broker || state.loss_epoch != state.leader_epoch) return;
  if (report.state == protocol::ReplicaState::failed || state.loss_start.value() >= 0) return;
  // What the only replica has is what was confirmed.
  state.loss_start =
      sole ? report.log_end_offset : certain_end(report.log_end_offset, report.high_watermark);
}

/// Somebody who had more comes back: it will be cut to what the leader has.
void note_lost_end(PartitionState& state, BrokerId broker, const protocol::ReplicaReport& report) {
  if (MQ_MUTANT("lost_end_not_noted")) return;
  if (state.loss_epoch == LeaderEpoch() || state.loss_start.value() < 0) return;
  if (report.state == protocol::ReplicaState::failed) return;
  const bool has_new_records =
      report.last_leader_epoch >= state.loss_epoch && !MQ_MUTANT("new_records_told_as_lost");
  if (has_new_records || find_member(state.isr, broker) != nullptr) return;
  if (report.log_end_offset <= std::max(state.loss_start, state.loss_end)) return;
  state.loss_end = report.log_end_offset;
  if (MQ_MUTANT("loss_told_too_far")) state.loss_end = model::advance(state.loss_end, 1);
  base::log_warning("controller",
                    "{}: broker {} has had records from offset {} up to {}, which were lost with "
                    "leader epoch {}",
                    report.partition.text(), broker, state.loss_start, state.loss_end,
                    state.loss_epoch);
}

/// The first with the highest (leader epoch, end). Null: none of them is there.
const Remains* best_of(const std::vector<Remains>& remains, const LiveBrokers& brokers) {
  const Remains* best = nullptr;
  for (const auto& one : remains) {
    if (!brokers.stays(one.member)) continue;
    if (best == nullptr ||
        std::tie(one.last_leader_epoch, one.end) > std::tie(best->last_leader_epoch, best->end))
      best = &one;
  }
  return best;
}

/// It alone counts from now on.
std::optional<PartitionState> led_with_loss(const PartitionState& state, const Remains& best) {
  const auto next = next_epoch(state.leader_epoch, best.last_leader_epoch);
  if (!next) return std::nullopt;
  auto changed = state;
  changed.isr = {best.member};
  changed.elr.clear();
  changed.last_known_elr.clear();
  changed.leader = best.member.broker;
  changed.leader_epoch = *next;
  mark_loss(changed, *next, certain_end(best.end, best.high_watermark));
  return changed;
}

/// Who was known to have everything.
std::string text_of(const PartitionState& state) {
  std::string text;
  for (const auto* list : {&state.isr, &state.elr, &state.last_known_elr}) {
    for (const auto& member : *list)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", member.broker);
  }
  return text;
}

/// It was shown as leader of an epoch that it had begun before, and has stopped since.
bool needs_epoch(const PartitionState& state, const protocol::ReplicaReport& report) {
  return report.state == protocol::ReplicaState::needs_epoch &&
         report.last_leader_epoch >= state.leader_epoch;
}

/// It may be in the ISR again once it has caught up as a follower. As it was, where nobody else can
/// lead.
PartitionState without_leader_that_resigns(const PartitionState& state,
                                           const std::vector<BrokerId>& replicas,
                                           const LiveBrokers& brokers, const IsrMember& leader,
                                           const std::vector<BrokerId>& unfit) {
  const auto* const member = find_member(state.isr, leader.broker);
  if (state.leader != leader.broker || member == nullptr || *member != leader) return state;
  auto others = replicas;
  std::erase_if(others, [&](BrokerId other) {
    return other == leader.broker || std::ranges::count(unfit, other) > 0;
  });
  const auto next = next_leader(state, others, brokers);
  auto changed = next ? led_by(state, *next, brokers) : std::nullopt;
  if (!changed) return state;
  auto isr = changed->isr;
  remove_member(isr, leader.broker);
  // What was confirmed stays with as many as before, as long as that is asked for.
  if (isr.size() < changed->min_isr) return *std::move(changed);
  return with_isr(std::move(*changed), std::move(isr));
}

std::optional<PartitionState> with_sole_replica(const PartitionState& before, BrokerId broker,
                                                BrokerEpoch epoch,
                                                const protocol::ReplicaReport& report) {
  auto state = before;
  note_lost_start(state, broker, report, true);
  const auto* const known = find_member(state.isr, broker);
  const bool leads = state.leader == broker && known != nullptr && known->epoch == epoch;
  const bool done = !needs_epoch(state, report) && report.last_leader_epoch <= state.leader_epoch;
  if (leads && done) return unless_same(std::move(state), before);
  const auto next = next_epoch(state.leader_epoch, report.last_leader_epoch);
  if (!next) return std::nullopt;
  say_that_the_log_is_ahead(state, report);
  const bool intact = known != nullptr && is_intact(*known, report);
  auto changed = state;
  if (report.state != protocol::ReplicaState::failed && !intact) {
    say_that_it_may_have_lost(broker, report, "only");
    mark_loss(changed, *next, report.log_end_offset);
  }
  changed.leader = broker;
  changed.leader_epoch = *next;
  changed.isr = {{broker, epoch}};
  return changed;
}

/// Nobody else is known to have as much as this one had.
bool is_last(const PartitionState& state, BrokerId broker) {
  const auto other = [&](const IsrMember& member) { return member.broker != broker; };
  return std::ranges::none_of(state.isr, other) && std::ranges::none_of(state.elr, other) &&
         std::ranges::none_of(state.last_known_elr, other);
}

/// It stood in ISR or ELR as `member`, and is not what it was.
void take_out_suspect(PartitionState& state, IsrMember member, BrokerEpoch epoch,
                      const protocol::ReplicaReport& report) {
  if (is_last(state, member.broker)) {
    say_that_it_may_have_lost(member.broker, report, "last known");
    state.elr.clear();
    state.isr = {{member.broker, epoch}};
    mark_loss(state, next_epoch(state.leader_epoch).value_or(state.leader_epoch),
              report.log_end_offset);
    return;
  }
  remove_member(state.isr, member.broker);
  remove_member(state.elr, member.broker);
  if (state.isr.size() < state.min_isr) state.last_known_elr.push_back(member);
}

/// Under the registration of the report nobody has elected it yet, and it is complete.
void take_in_opened(PartitionState& state, BrokerId broker, BrokerEpoch epoch,
                    const protocol::ReplicaReport& report) {
  auto* member = find_member(state.isr, broker);
  if (member == nullptr) member = find_member(state.elr, broker);
  if (member == nullptr || member->epoch == epoch) return;
  if (is_intact(*member, report))
    member->epoch = epoch;
  else
    take_out_suspect(state, *member, epoch, report);
}

/// What it had counts as of before this registration, so that a report of a later one takes it in
/// again where nothing was lost.
void take_out_failed(PartitionState& state, BrokerId broker, BrokerEpoch epoch) {
  auto* member = find_member(state.isr, broker);
  if (member == nullptr) member = find_member(state.elr, broker);
  if (member != nullptr && member->epoch == epoch) member->epoch = BrokerEpoch(epoch.value() - 1);
}

/// What a leader has heard of a log that is going to be another one counts in no later epoch:
/// REP-5.
void end_epoch_that_knows(PartitionState& state, const protocol::ReplicaReport& report) {
  if (MQ_MUTANT("replaced_in_the_same_epoch")) return;
  if (report.state != protocol::ReplicaState::failed || state.leader == BrokerId()) return;
  if (report.last_leader_epoch != state.leader_epoch) return;
  state.leader_epoch = next_epoch(state.leader_epoch).value_or(state.leader_epoch);
}

void raise_epoch(PartitionState& state, const protocol::ReplicaReport& report) {
  if (report.last_leader_epoch <= state.leader_epoch) return;
  say_that_the_log_is_ahead(state, report);
  const auto next = next_epoch(state.leader_epoch, report.last_leader_epoch);
  if (next) state.leader_epoch = *next;
}

}  // namespace

std::optional<PartitionState> settled(const PartitionState& state,
                                      const std::vector<BrokerId>& replicas,
                                      const LiveBrokers& brokers) {
  const auto* const leader =
      state.leader == BrokerId() ? nullptr : find_member(state.isr, state.leader);
  if (leader != nullptr && brokers.stays(*leader)) return without_lost_members(state, brokers);
  if (const auto next = next_leader(state, replicas, brokers)) return led_by(state, *next, brokers);
  // About to stop, and nobody can take its place.
  if (leader != nullptr && brokers.has(*leader)) return without_lost_members(state, brokers);
  return without_leader(state);
}

std::optional<PartitionState> with_reported_replica(const PartitionState& state,
                                                    const std::vector<BrokerId>& replicas,
                                                    const LiveBrokers& brokers, BrokerId broker,
                                                    BrokerEpoch epoch,
                                                    const protocol::ReplicaReport& report,
                                                    const std::vector<BrokerId>& unfit) {
  if (std::ranges::count(replicas, broker) == 0) return std::nullopt;
  if (replicas.size() == 1) return with_sole_replica(state, broker, epoch, report);
  auto changed = state;
  // It led under an earlier registration: whatever it reports, it begins anew.
  const auto* const leader = find_member(state.isr, broker);
  const bool led_before = state.leader == broker && (leader == nullptr || leader->epoch != epoch ||
                                                     needs_epoch(state, report));
  if (led_before) {
    auto none = without_leader(std::move(changed));
    if (!none) return std::nullopt;
    changed = std::move(*none);
  }
  if (report.state == protocol::ReplicaState::failed)
    take_out_failed(changed, broker, epoch);
  else
    take_in_opened(changed, broker, epoch, report);
  if (report.state == protocol::ReplicaState::resigns)
    changed = without_leader_that_resigns(changed, replicas, brokers, {broker, epoch}, unfit);
  raise_epoch(changed, report);
  note_lost_start(changed, broker, report, false);
  note_lost_end(changed, broker, report);
  if (auto next = settled(changed, replicas, brokers)) changed = std::move(*next);
  end_epoch_that_knows(changed, report);
  return unless_same(std::move(changed), state);
}

std::optional<PartitionState> with_best_remains(const PartitionState& state,
                                                const LiveBrokers& brokers,
                                                const model::PartitionId& partition,
                                                const std::vector<Remains>& remains) {
  if (state.leader != BrokerId() || !state.isr.empty() || !state.elr.empty()) return std::nullopt;
  const auto known = std::ranges::count_if(remains, [&](const Remains& one) {
    return brokers.stays(one.member) &&
           find_member(state.last_known_elr, one.member.broker) != nullptr;
  });
  const auto* const best = best_of(remains, brokers);
  if (best == nullptr || static_cast<std::size_t>(known) < state.last_known_elr.size())
    return std::nullopt;
  base::log_warning("controller",
                    "{}: all replicas may have lost their newest records; broker {}, whose log "
                    "goes to offset {} of leader epoch {}, has most and leads",
                    partition.text(), best->member.broker, best->end, best->last_leader_epoch);
  return led_with_loss(state, *best);
}

std::optional<PartitionState> with_unclean_leader(const PartitionState& state,
                                                  const std::vector<BrokerId>& replicas,
                                                  const LiveBrokers& brokers,
                                                  const model::PartitionId& partition,
                                                  const std::vector<Remains>& remains) {
  if (state.leader != BrokerId() || next_leader(state, replicas, brokers)) return std::nullopt;
  std::vector<Remains> fresh;
  std::ranges::copy_if(remains, std::back_inserter(fresh), [&](const Remains& one) {
    return (one.reported_in == state.leader_epoch || MQ_MUTANT("unclean_everywhere")) &&
           std::ranges::count(replicas, one.member.broker) > 0;
  });
  const auto* const best = best_of(fresh, brokers);
  if (best == nullptr) return std::nullopt;
  auto led = led_with_loss(state, *best);
  if (!led) return std::nullopt;
  base::log_warning("controller",
                    "{}: nobody who has all records is there, and unclean_election is on: broker "
                    "{} leads, and what was confirmed from offset {} on is lost (its log goes to "
                    "{}, in leader epoch {}); in sync were {}",
                    partition.text(), best->member.broker, led->loss_start, best->end,
                    best->last_leader_epoch, text_of(state));
  return led;
}

std::optional<IsrRefusal> check_proposal(const PartitionState& state,
                                         model::PartitionVersion version,
                                         const std::vector<BrokerId>& replicas,
                                         const LiveBrokers& brokers, IsrMember leader,
                                         const protocol::IsrProposal& proposal) {
  const auto* const leading = find_member(state.isr, leader.broker);
  if (state.leader != leader.broker || leading == nullptr || *leading != leader)
    return IsrRefusal{WireError::not_leader,
                      fmt::format("broker {} does not lead it under broker epoch {}", leader.broker,
                                  leader.epoch)};
  if (proposal.leader_epoch != state.leader_epoch)
    return IsrRefusal{
        proposal.leader_epoch < state.leader_epoch ? WireError::fenced_leader_epoch
                                                   : WireError::unknown_leader_epoch,
        fmt::format("leader epoch {}: it is {}", proposal.leader_epoch, state.leader_epoch)};
  if (proposal.version != version)
    return IsrRefusal{WireError::invalid_request,
                      fmt::format("partition version {}: it is {}", proposal.version, version)};
  for (const auto& member : proposal.isr) {
    const auto times = std::ranges::count(proposal.isr, member.broker, &IsrMember::broker);
    const bool eligible = member == leader || brokers.stays(member);
    if (std::ranges::count(replicas, member.broker) == 0 || times > 1 || !eligible)
      return IsrRefusal{WireError::invalid_request,
                        fmt::format("broker {} under broker epoch {} cannot be in the ISR",
                                    member.broker, member.epoch)};
  }
  if (std::ranges::count(proposal.isr, leader) == 0)
    return IsrRefusal{WireError::invalid_request, "the leader is not in the ISR it asks for"};
  return std::nullopt;
}

PartitionState with_isr(PartitionState state, std::vector<IsrMember> isr) {
  MemberList left;
  for (const auto* list : {&state.isr, &state.elr}) {
    for (const auto& member : *list) {
      if (find_member(isr, member.broker) == nullptr) left.push_back(member);
    }
  }
  for (const auto& member : isr) remove_member(state.last_known_elr, member.broker);
  state.isr = std::move(isr);
  state.elr = std::move(left);
  const auto min_isr = state.min_isr;
  return with_min_isr(std::move(state), min_isr);
}

PartitionState with_min_isr(PartitionState state, std::uint32_t min_isr) {
  state.min_isr = min_isr;
  if (state.isr.size() >= min_isr) {
    state.elr.clear();
    state.last_known_elr.clear();
  }
  return state;
}

std::optional<PartitionState> with_leader(const PartitionState& state,
                                          const std::vector<BrokerId>& replicas,
                                          const LiveBrokers& brokers, BrokerId wanted) {
  const std::vector<BrokerId> order =
      wanted == BrokerId() ? replicas : std::vector<BrokerId>{wanted};
  const auto next = first_that_stays(state.isr, order, brokers);
  if (!next) return std::nullopt;
  if (next->broker == state.leader) return state;
  return led_by(state, *next, brokers);
}

LossyElection with_leader_despite_loss(const PartitionState& state,
                                       const std::vector<BrokerId>& replicas,
                                       const LiveBrokers& brokers, IsrMember chosen,
                                       const std::vector<BrokerId>& damaged) {
  if (std::ranges::count(replicas, chosen.broker) == 0)
    return {{}, fmt::format("broker {} keeps no replica of it", chosen.broker)};
  if (!brokers.stays(chosen)) return {{}, fmt::format("broker {} is away", chosen.broker)};
  const bool sole = replicas.size() == 1 && state.leader == chosen.broker;
  const bool led_damaged = std::ranges::count(damaged, state.leader) > 0;
  if (state.leader != BrokerId() && !led_damaged)
    return {{}, fmt::format("broker {} leads it; nothing has to be given up", state.leader)};
  auto sound = replicas;
  std::erase_if(sound, [&](BrokerId one) { return std::ranges::count(damaged, one) > 0; });
  const auto next = sole ? std::nullopt : next_leader(state, sound, brokers);
  if (next && state.leader != BrokerId())
    return {{},
            fmt::format("broker {} is in sync, and nothing is known to be damaged there: it can "
                        "lead without --accept-loss",
                        next->broker)};
  if (next)
    return {{}, fmt::format("broker {} has all records and is about to lead it", next->broker)};
  // The new range is that of this election alone, and its start is for its leader to say.
  if (state.loss_start.value() >= 0)
    return {{},
            fmt::format("records may be lost already since leader epoch {}: that has to be "
                        "acknowledged first",
                        state.loss_epoch)};
  const auto epoch = next_epoch(state.leader_epoch);
  if (!epoch) return {{}, "its leader epochs are used up"};
  auto changed = state;
  changed.isr = {chosen};
  changed.elr.clear();
  changed.last_known_elr.clear();
  changed.leader = chosen.broker;
  changed.leader_epoch = *epoch;
  changed.loss_epoch = *epoch;
  return {std::move(changed), {}};
}

PartitionState first_state(const std::vector<IsrMember>& live, std::uint32_t min_isr) {
  PartitionState state;
  state.leader_epoch = LeaderEpoch(0);
  if (!live.empty()) state.leader = live.front().broker;
  state.isr = live;
  state.min_isr = min_isr;
  return state;
}

std::vector<IsrMember> added_members(const std::vector<IsrMember>& before,
                                     const std::vector<IsrMember>& after) {
  MemberList added;
  for (const auto& member : after) {
    if (std::ranges::count(before, member) == 0) added.push_back(member);
  }
  return added;
}

}  // namespace mq::controller
