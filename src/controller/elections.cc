#include "controller/elections.h"

#include <algorithm>
#include <limits>

#include "base/log.h"

namespace mq::controller {
namespace {

constexpr std::int32_t kEpochMax = std::numeric_limits<std::int32_t>::max();

std::optional<model::BrokerEpoch> isr_epoch(const metadata::PartitionStateValue& state,
                                            model::BrokerId broker) {
  const auto found = std::ranges::find(state.isr, broker, &metadata::IsrMember::broker);
  if (found == state.isr.end()) return std::nullopt;
  return found->epoch;
}

/// One above both. At the end of the numbers there is none, and the partition stays without leader.
std::optional<model::LeaderEpoch> next_epoch(model::LeaderEpoch stored, model::LeaderEpoch in_log) {
  const auto highest = std::max(stored.value(), in_log.value());
  if (highest >= kEpochMax) return std::nullopt;
  return model::LeaderEpoch(highest + 1);
}

void say_what_is_odd(const metadata::PartitionStateValue& state, model::BrokerId broker,
                     const protocol::ReplicaReport& report) {
  const auto name = report.partition.text();
  if (report.last_leader_epoch > state.leader_epoch)
    base::log_warning("controller",
                      "{}: the log has seen leader epoch {}, the metadata only {}; was the "
                      "metadata store restored from a backup?",
                      name, report.last_leader_epoch, state.leader_epoch);
  const auto known = isr_epoch(state, broker);
  const bool intact = known && report.intact_since <= *known;
  if (report.state == protocol::ReplicaState::opened && !intact)
    base::log_warning("controller",
                      "{}: the only replica may have lost its newest records: broker {} cannot say "
                      "that nothing is missing",
                      name, broker);
}

}  // namespace

std::optional<metadata::PartitionStateValue> without_lost_leader(
    const metadata::PartitionStateValue& state, const Members& members) {
  if (state.leader == model::BrokerId()) return std::nullopt;
  const auto epoch = isr_epoch(state, state.leader);
  if (epoch && members.is_live(state.leader, *epoch)) return std::nullopt;
  const auto next = next_epoch(state.leader_epoch, model::LeaderEpoch());
  if (!next) return std::nullopt;
  auto changed = state;
  changed.leader = model::BrokerId();
  changed.leader_epoch = *next;
  return changed;
}

std::optional<metadata::PartitionStateValue> with_reported_replica(
    const metadata::PartitionStateValue& state, const std::vector<model::BrokerId>& replicas,
    model::BrokerId broker, model::BrokerEpoch epoch, const protocol::ReplicaReport& report) {
  if (std::ranges::count(replicas, broker) == 0) return std::nullopt;
  const bool leads = state.leader == broker && isr_epoch(state, broker) == epoch;
  if (leads && report.last_leader_epoch <= state.leader_epoch) return std::nullopt;
  // The leader of another broker is found lost before anybody follows it.
  if (!leads && state.leader != model::BrokerId() && state.leader != broker) return std::nullopt;
  const auto next = next_epoch(state.leader_epoch, report.last_leader_epoch);
  if (!next) return std::nullopt;
  say_what_is_odd(state, broker, report);
  auto changed = state;
  changed.leader = broker;
  changed.leader_epoch = *next;
  changed.isr = {{broker, epoch}};
  return changed;
}

metadata::PartitionStateValue first_state(model::BrokerId broker, model::BrokerEpoch epoch) {
  metadata::PartitionStateValue state;
  state.leader = broker;
  state.leader_epoch = model::LeaderEpoch(0);
  state.isr = {{broker, epoch}};
  return state;
}

}  // namespace mq::controller
