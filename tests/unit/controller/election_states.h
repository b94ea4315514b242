#pragma once

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "controller/elections.h"

// Partition states, and how tests of elections write and read them.
namespace mq::controller {

using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using model::LeaderEpoch;
using protocol::WireError;
using Members = std::vector<IsrMember>;

inline const BrokerId kNobody;
inline const BrokerId kOne(1);
inline const BrokerId kTwo(2);
inline const BrokerId kThree(3);
inline const std::vector<BrokerId> kSole{kOne};
inline const std::vector<BrokerId> kReplicas{kOne, kTwo, kThree};
constexpr auto kMax = std::numeric_limits<std::int32_t>::max();

inline IsrMember member(std::int32_t broker, std::int64_t epoch) {
  return {BrokerId(broker), BrokerEpoch(epoch)};
}

/// Brokers that live, each under a registration.
inline LiveBrokers live(const Members& members) {
  LiveBrokers brokers;
  for (const auto& one : members) brokers.add(one.broker, one.epoch);
  return brokers;
}

inline PartitionState state(BrokerId leader, std::int32_t leader_epoch, Members isr,
                            Members elr = {}, std::uint32_t min_isr = 2) {
  PartitionState value;
  value.leader = leader;
  value.leader_epoch = LeaderEpoch(leader_epoch);
  value.isr = std::move(isr);
  value.elr = std::move(elr);
  value.min_isr = min_isr;
  return value;
}
inline PartitionState sole(BrokerId leader, std::int32_t leader_epoch, std::int64_t isr_epoch) {
  return state(leader, leader_epoch, {member(1, isr_epoch)}, {}, 1);
}

inline protocol::ReplicaReport report(std::int32_t last_leader_epoch,
                                      std::int64_t intact_since = 0) {
  protocol::ReplicaReport report;
  report.last_leader_epoch = LeaderEpoch(last_leader_epoch);
  report.intact_since = BrokerEpoch(intact_since);
  return report;
}
inline protocol::ReplicaReport failure() {
  auto failed = report(-1, -1);
  failed.state = protocol::ReplicaState::failed;
  return failed;
}
inline protocol::ReplicaReport as(protocol::ReplicaState said, std::int32_t last_leader_epoch) {
  auto one = report(last_leader_epoch);
  one.state = said;
  return one;
}

inline const Members kAll{member(1, 10), member(2, 20), member(3, 30)};

inline std::optional<PartitionState> sole_reports(const PartitionState& before, std::int64_t epoch,
                                                  const protocol::ReplicaReport& report) {
  return with_reported_replica(before, kSole, live({member(1, epoch)}), kOne, BrokerEpoch(epoch),
                               report);
}
inline std::optional<PartitionState> reports(const PartitionState& before,
                                             const LiveBrokers& brokers, std::int32_t broker,
                                             std::int64_t epoch,
                                             const protocol::ReplicaReport& report) {
  return with_reported_replica(before, kReplicas, brokers, BrokerId(broker), BrokerEpoch(epoch),
                               report);
}

inline std::string text(const Members& members) {
  std::string all;
  for (const auto& one : members)
    all += fmt::format("{}{}:{}", all.empty() ? "" : " ", one.broker, one.epoch);
  return all;
}
/// "leader@epoch isr | elr | last known elr"
inline std::string text(const PartitionState& state) {
  return fmt::format("{}@{} {} | {} | {}", state.leader, state.leader_epoch, text(state.isr),
                     text(state.elr), text(state.last_known_elr));
}
inline std::string text(const std::optional<PartitionState>& state) {
  return state ? text(*state) : "as before";
}

}  // namespace mq::controller
