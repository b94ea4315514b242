#pragma once

#include <optional>
#include <string>

#include "controller/live_brokers.h"
#include "metadata/node_values.h"
#include "protocol/alter_isr.h"
#include "protocol/report_replicas.h"

namespace mq::controller {

/// What the state of a partition becomes, nothing where it stays (CTL-5). Every start of a leader
/// is a new leader epoch, and so is its end (PAR-4).
///
/// A member of ISR or ELR stands there under a registration. It can be elected while that is the
/// one under which it lives: under a later one it first has to report that it has lost nothing
/// since, and gets the new one then.

using PartitionState = metadata::PartitionStateValue;

/// What follows when brokers come and go, or are about to. A leader that is lost is followed by the
/// first replica in the ISR that can be elected, else in the ELR; where there is none nobody leads,
/// and ISR and ELR stay for those that may return. Under a leader the lost leave the ISR (CTL-7).
std::optional<PartitionState> settled(const PartitionState& state,
                                      const std::vector<model::BrokerId>& replicas,
                                      const LiveBrokers& brokers);

/// The broker, which lives under `epoch`, has reported its replica, and what follows from that. One
/// that may have lost records goes to the last known ELR, unless nobody else is known to have more:
/// then it is elected all the same, with a warning. One that failed can be elected under its next
/// registration at the earliest. A log that has seen a later leader epoch than the metadata, which
/// then came from a backup, raises the leader epoch above it.
///
/// A leader whose own log stands still or is damaged (`resigns`) leaves leadership to another one
/// of ISR or ELR, where there is one that is not `unfit`, and the ISR, where that has min_isr
/// members without it. One whose log has had the leader epoch (`needs_epoch`: it stopped leading
/// meanwhile) gets a later one.
///
/// With one replica it leads whatever it has lost; also one that failed, since its broker is the
/// one that can say why it is not served.
std::optional<PartitionState> with_reported_replica(
    const PartitionState& state, const std::vector<model::BrokerId>& replicas,
    const LiveBrokers& brokers, model::BrokerId broker, model::BrokerEpoch epoch,
    const protocol::ReplicaReport& report, const std::vector<model::BrokerId>& unfit = {});

/// What a broker that lives has of a partition that nobody leads.
struct Remains {
  model::IsrMember member;
  model::LeaderEpoch last_leader_epoch;
  model::Offset end;
  model::LeaderEpoch reported_in{};  ///< leader epoch of the partition then
  /// Up to here it is as what was confirmed; what stands above may be something else. -1: not told.
  model::Offset high_watermark{};
};
/// ISR and ELR have nobody left, since all may have lost records. When all that are known to have
/// had everything are back, waiting longer brings nothing: the one that has most is elected, with a
/// warning, and what it lacks is lost. Nothing: somebody may still have more.
std::optional<PartitionState> with_best_remains(const PartitionState& state,
                                                const LiveBrokers& brokers,
                                                const model::PartitionId& partition,
                                                const std::vector<Remains>& remains);

/// Nobody of ISR and ELR can be elected, and the topic would rather lose records than wait: of
/// those that have said what they have since nobody leads, the one that has most is elected, with a
/// warning. Nothing: somebody leads or can be elected, or nobody has said anything.
std::optional<PartitionState> with_unclean_leader(const PartitionState& state,
                                                  const std::vector<model::BrokerId>& replicas,
                                                  const LiveBrokers& brokers,
                                                  const model::PartitionId& partition,
                                                  const std::vector<Remains>& remains);

/// Why the ISR that a leader asks for is not put in force (CTL-8).
struct IsrRefusal {
  protocol::WireError error;
  std::string text;
};
/// `version`: of the state. `leader`: who asks, which lives under that registration.
std::optional<IsrRefusal> check_proposal(const PartitionState& state,
                                         model::PartitionVersion version,
                                         const std::vector<model::BrokerId>& replicas,
                                         const LiveBrokers& brokers, model::IsrMember leader,
                                         const protocol::IsrProposal& proposal);

/// The ISR becomes `isr`. Who leaves it goes to the ELR where fewer than min_isr are left, since
/// nothing is confirmed then before they are min_isr again; else ELR and last known ELR end.
PartitionState with_isr(PartitionState state, std::vector<model::IsrMember> isr);
/// min_isr becomes another one, together with what that means for the ELR.
PartitionState with_min_isr(PartitionState state, std::uint32_t min_isr);

/// Led by that broker, or by the first one of the replicas that can (-1); only of the ISR, so that
/// nothing is lost. The state as it is: it leads already. Nothing: it cannot.
std::optional<PartitionState> with_leader(const PartitionState& state,
                                          const std::vector<model::BrokerId>& replicas,
                                          const LiveBrokers& brokers, model::BrokerId wanted);

/// Nobody leads and nobody who has all records can; an operator wants `chosen`, which lives under
/// that registration, to lead with what it has. Who leads may be `damaged`: its log cannot be
/// served, which is said of the only replica, or not in places, if nobody in ISR or ELR is known to
/// be better. What is lost is known once its log is open: the state says so. The text: why not.
struct LossyElection {
  std::optional<PartitionState> state;
  std::string refusal;
};
LossyElection with_leader_despite_loss(const PartitionState& state,
                                       const std::vector<model::BrokerId>& replicas,
                                       const LiveBrokers& brokers, model::IsrMember chosen,
                                       const std::vector<model::BrokerId>& damaged = {});

/// Of a partition that is new: nothing is in its logs, so all that live are in sync. The first of
/// them leads.
PartitionState first_state(const std::vector<model::IsrMember>& live, std::uint32_t min_isr);

/// Members of the second that are not in the first.
std::vector<model::IsrMember> added_members(const std::vector<model::IsrMember>& before,
                                            const std::vector<model::IsrMember>& after);

}  // namespace mq::controller
