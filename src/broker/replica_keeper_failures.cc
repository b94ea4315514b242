// Replicas whose log fails or is damaged: who is told, who leads instead, and how it is made anew.
#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "broker/damaged.h"
#include "broker/hop.h"
#include "broker/placed.h"
#include "broker/replica_keeper.h"
#include "broker/replica_order.h"
#include "broker/worker.h"

namespace mq::broker {

using metadata::PartitionAssignment;
using protocol::WireError;

namespace {

constexpr base::Duration kResignAgain = std::chrono::seconds(10);
constexpr base::Duration kGiveWayAgainMin = std::chrono::seconds(10);
constexpr base::Duration kGiveWayAgainMax = std::chrono::minutes(10);
/// Whoever asked for that, and leads later than this, has to stay.
constexpr base::Duration kLedElsewhereIn = std::chrono::seconds(3);
/// Led here again so often within one pause, the others are damaged too, each in another place.
constexpr int kGivenBackMax = 3;
constexpr base::Duration kReplaceAgainMin = std::chrono::seconds(1);
constexpr base::Duration kReplaceAgainMax = std::chrono::seconds(60);

bool is_there(const metadata::ClusterImage& image, const model::IsrMember& member) {
  const auto* const broker = image.find_broker(member.broker);
  return broker != nullptr && broker->alive;
}

/// Those who have all records, as far as that is known.
bool all_are_there(const metadata::ClusterImage& image, const PartitionAssignment& assignment) {
  const auto there = [&](const model::IsrMember& member) { return is_there(image, member); };
  return std::ranges::all_of(assignment.isr, there) && std::ranges::all_of(assignment.elr, there);
}

/// Those of them that could lead instead.
std::vector<model::IsrMember> complete_and_there(const metadata::ClusterImage& image,
                                                 const PartitionAssignment& assignment,
                                                 model::BrokerId self) {
  auto others = complete_elsewhere(assignment, self);
  std::erase_if(others, [&](const model::IsrMember& other) { return !is_there(image, other); });
  return others;
}

}  // namespace

/// A replica whose log fails while it is served: the others are to go on without it.
asio::awaitable<void> ReplicaKeeper::look_for_failures() {
  const auto look = ++looks_begun_;
  look_for_failures_at_ =
      looks_regularly_ ? home_.now() + kLookForFailures : base::TimePoint::max();
  std::vector<model::PartitionId> aside;
  std::vector<ReplicaOutcome> told;
  std::set<model::PartitionId> spoilt;
  for (const auto& worker : core_.workers) {
    co_await look_for_stalled(*worker);
    std::vector<ReplicaOutcome> failed;
    std::vector<model::PartitionId> staying;
    co_await run_on(worker->runtime(), find_failed_replicas(*worker, failed));
    for (const auto& outcome : failed) {
      if (failed_.contains(outcome.id)) continue;
      if (outcome.serves && !may_stand_aside(outcome.id)) {
        spoilt.insert(outcome.id);
        tell_damage(outcome);
        if (!give_way(outcome.id)) staying.push_back(outcome.id);
        continue;
      }
      if (!outcome.foreign) failed_.insert(outcome.id);
      if (outcome.serves) aside.push_back(outcome.id);
      told.push_back(outcome);
    }
    if (!staying.empty()) co_await run_on(worker->runtime(), stay_with(*worker, staying));
  }
  forget_mended(spoilt);
  // First, so that no leader hears from it behind its failure, and takes it in again.
  co_await stand_aside(std::move(aside));
  for (const auto& outcome : told) note(outcome);
  looks_ended_ = look;
  changed_.notify_all();
}

/// A disk that stands still makes every producer wait, and another broker may have one that works.
asio::awaitable<void> ReplicaKeeper::look_for_stalled(Worker& worker) {
  std::vector<model::PartitionId> stalled;
  co_await run_on(worker.runtime(), find_stalled_leaders(worker, stalled));
  std::erase_if(resigned_at_,
                [this](const auto& one) { return home_.now() - one.second >= kResignAgain; });
  for (const auto& id : stalled) {
    if (!resigned_at_.emplace(id, home_.now()).second) continue;
    base::log_warning(
        "partition",
        "{}: appends wait, and the disk has confirmed none for {} s: another replica "
        "is asked to lead",
        core_.partition_name(id),
        std::chrono::duration_cast<std::chrono::seconds>(core_.limits.isr.lag_time).count());
    reporter_.ask(id, protocol::ReplicaState::resigns);
  }
}

/// Without a replica that is damaged in places enough others are in the ISR.
bool ReplicaKeeper::may_stand_aside(const model::PartitionId& id) const {
  const auto [topic, assignment] = placed(applied_, id);
  if (!assignment || assignment->leader == model::BrokerId()) return false;
  const auto others = std::ranges::count_if(
      assignment->isr, [&](const auto& member) { return member.broker != core_.id; });
  return others >= std::max<std::int64_t>(assignment->min_isr, 1);
}

/// Of a damaged leader that the ISR cannot spare: another one in it or in the ELR leads at least,
/// so that what is whole there can be read, and copied by those that are not in sync. False: all
/// who could lead are there, were asked lately, and do not, or have given it back again and again.
bool ReplicaKeeper::give_way(const model::PartitionId& id) {
  const auto [topic, assignment] = placed(applied_, id);
  if (!assignment || assignment->leader != core_.id) return true;
  auto& spoilt = spoilt_.at(id);
  const auto others = complete_and_there(*applied_, *assignment, core_.id);
  if (others.empty()) return true;
  const bool due = home_.now() >= spoilt.asked_at + spoilt.pause;
  const bool is_new = std::ranges::any_of(others, [&](const model::IsrMember& other) {
    return std::ranges::count(spoilt.asked, other) == 0;
  });
  // Another one has led meanwhile, and may be as good as it was: people may have put this one back.
  const bool given_back =
      assignment->leader_epoch > spoilt.asked_in && spoilt.given_back < kGivenBackMax;
  if (!due && !is_new && !given_back) {
    const bool answered = reporter_.left() == 0 && applied_version_ >= reporter_.taken_version();
    return !answered || home_.now() < spoilt.asked_at + kLedElsewhereIn ||
           !all_are_there(*applied_, *assignment);
  }
  spoilt.given_back = due ? 0 : spoilt.given_back + (given_back ? 1 : 0);
  if (due) {
    spoilt.pause = std::clamp(2 * spoilt.pause, kGiveWayAgainMin, kGiveWayAgainMax);
    spoilt.asked.clear();
  }
  spoilt.asked.insert(spoilt.asked.end(), others.begin(), others.end());
  spoilt.asked_at = home_.now();
  spoilt.asked_in = assignment->leader_epoch;
  base::log_warning("partition",
                    "{}-{}: its log is damaged here, and too few others are in sync: another one "
                    "that is complete is asked to lead",
                    topic->name, id.partition);
  reporter_.ask(id, protocol::ReplicaState::resigns);
  return true;
}

/// The controller goes by it when it looks for a leader, and people see it.
void ReplicaKeeper::tell_damage(const ReplicaOutcome& outcome) {
  spoilt_.try_emplace(outcome.id);
  reporter_.damaged(outcome.id, outcome.places,
                    core_.status(WireError::partition_corrupt, outcome.reason));
}

/// What was damaged has been replaced meanwhile, or is gone with the old end of the log.
void ReplicaKeeper::forget_mended(const std::set<model::PartitionId>& damaged) {
  std::erase_if(spoilt_, [&](const auto& one) {
    if (damaged.contains(one.first)) return false;
    reporter_.damaged(one.first, {}, {});
    return true;
  });
}

/// They are not followed any more; one that is led here goes on until another broker leads it.
asio::awaitable<void> ReplicaKeeper::stand_aside(std::vector<model::PartitionId> ids) {
  Orders orders;
  for (const auto& id : ids) {
    const auto [topic, assignment] = placed(applied_, id);
    if (!assignment) continue;
    base::log_warning("partition",
                      "{}-{}: its log is damaged here; it leaves the ISR and is made anew from the "
                      "damaged segment on",
                      topic->name, id.partition);
    if (assignment->leader != core_.id) give_order(*topic, *assignment, orders);
  }
  co_await carry_out(std::move(orders));
}

/// Of a damaged log: nobody counts on it any more, and there is a leader that can fill it; or it is
/// to be the leader's, with what is left.
bool ReplicaKeeper::can_be_replaced(const model::PartitionId& id, const Damaged& damaged) const {
  const auto [topic, assignment] = placed(applied_, id);
  if (core_.stopping || !assignment || assignment->leader == model::BrokerId()) return false;
  if (assignment->leader == core_.id) return leads_with_loss(*assignment);
  // The controller knows of the failure, and this is what follows from it: nobody is let in again.
  if (reporter_.left() > 0 || applied_version_ < reporter_.taken_version()) return false;
  // What is left must not be taken for what this registration stands for there; the failure, once
  // it is reported, has made it an earlier one.
  const model::IsrMember self{core_.id, model::BrokerEpoch(core_.broker_epoch)};
  // REP-5: nor can whoever has heard of it before let it in for what it was.
  const bool unheard_of =
      assignment->leader_epoch > damaged.heard_of_in || MQ_MUTANT("replaced_in_the_same_epoch");
  return unheard_of && !in_isr(*assignment, core_.id) &&
         std::ranges::count(assignment->elr, self) == 0;
}

/// This leader epoch began with this leader, whatever it has, and what that is has yet to be said:
/// nobody else counts, and nothing was confirmed in it.
bool ReplicaKeeper::leads_with_loss(const PartitionAssignment& assignment) const {
  return assignment.leader == core_.id && assignment.loss_epoch != model::LeaderEpoch() &&
         assignment.loss_epoch == assignment.leader_epoch && assignment.loss_start.value() < 0 &&
         assignment.isr.size() == 1;
}

std::optional<model::PartitionId> ReplicaKeeper::next_damaged() const {
  if (!recovered_ || !applied_) return std::nullopt;
  for (const auto& [id, damaged] : damaged_) {
    if (damaged.again_at <= home_.now() && can_be_replaced(id, damaged)) return id;
  }
  return std::nullopt;
}

/// What is damaged where no damage may be is made anew from its leader.
asio::awaitable<void> ReplicaKeeper::replace_damaged(model::PartitionId id) {
  const auto [topic, assignment] = placed(applied_, id);
  const auto keep = damaged_.at(id).keep;
  auto* const log = core_.disks->find(id);
  bool damaged = false;
  if (log) {
    Worker& worker = core_.worker_of(id);
    const bool foreign = keep == storage::Keep::nothing;
    damaged = co_await run_on(worker.runtime(), needs_replacement(worker, *log, foreign));
  }
  // It follows another leader by now with which it has something in common, or what was damaged is
  // gone with the old end of the log.
  if (!damaged) {
    damaged_.erase(id);
    if (failed_.erase(id) > 0) log_ready(id);
    co_return;
  }
  Orders orders;
  ReplicaOrder drop;
  drop.id = id;
  orders_for(core_.worker_of(id), orders).push_back(std::move(drop));
  co_await carry_out(std::move(orders));
  const auto outcome =
      co_await core_.disks->replace_damaged(spec_of(*topic, *assignment), model::Offset(0), keep);
  if (stopping_) co_return;
  if (!outcome) {
    replacement_failed(id, outcome.error());
    co_return;
  }
  base::log_warning("partition",
                    "{}-{}: what is damaged of its log is kept under unknown/; from offset {} on "
                    "it is {}",
                    topic->name, id.partition, *outcome,
                    assignment->leader == core_.id
                        ? std::string("lost: this broker leads with what is left")
                        : fmt::format("filled by broker {}", assignment->leader));
  damaged_.erase(id);
  failed_.erase(id);
  log_ready(id);
}

void ReplicaKeeper::replacement_failed(const model::PartitionId& id, const base::Error& why) {
  base::log_error("partition", "{}: the damaged log cannot be replaced: {}",
                  core_.partition_name(id), why.message());
  if (why == make_error_code(storage::StorageErrc::disk_failed)) {
    damaged_.erase(id);
    return;
  }
  auto& damaged = damaged_.at(id);
  damaged.failure = why;
  damaged.pause = std::clamp(2 * damaged.pause, kReplaceAgainMin, kReplaceAgainMax);
  damaged.again_at = home_.now() + damaged.pause;
}

std::map<model::PartitionId, base::Error> ReplicaKeeper::failing() const {
  std::map<model::PartitionId, base::Error> failing;
  for (const auto& [id, damaged] : damaged_) {
    if (damaged.failure) failing.emplace(id, damaged.failure);
  }
  for (const auto& id : wanted_) {
    if (make_failure_) failing.emplace(id, make_failure_);
  }
  return failing;
}

}  // namespace mq::broker
