#pragma once

#include <optional>

#include "controller/cluster_tree.h"
#include "controller/members.h"
#include "protocol/report_replicas.h"

namespace mq::controller {

/// What the state of a partition becomes, nothing where it stays (CTL-5). Every start of a leader
/// is a new leader epoch, and so is its end (PAR-4).

/// The broker that leads it is away, or there under another registration: nobody leads it, and the
/// ISR stays, with the registration that had everything.
std::optional<metadata::PartitionStateValue> without_lost_leader(
    const metadata::PartitionStateValue& state, const Members& members);

/// The broker, registered under `epoch`, has reported its replica. Where nobody leads it leads from
/// now on, in an epoch above all that its log has seen; so it does when its log is ahead of the
/// metadata, which then came from a backup. With one replica a failed one leads too: its broker is
/// the one that can say why it is not served.
std::optional<metadata::PartitionStateValue> with_reported_replica(
    const metadata::PartitionStateValue& state, const std::vector<model::BrokerId>& replicas,
    model::BrokerId broker, model::BrokerEpoch epoch, const protocol::ReplicaReport& report);

/// Of a partition that is new: nothing is in its log.
metadata::PartitionStateValue first_state(model::BrokerId broker, model::BrokerEpoch epoch);

}  // namespace mq::controller
