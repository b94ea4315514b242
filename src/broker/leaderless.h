#pragma once

#include <map>
#include <string>
#include <vector>

#include "broker/core.h"
#include "protocol/report_replicas.h"
#include "protocol/topics.h"

namespace mq::broker {

/// What this broker has told the controller of its own replicas.
using OwnReports = std::map<model::PartitionId, protocol::ReplicaReport>;
/// Of those partitions of the topics that nobody leads, or that are damaged in places here. Damage
/// that has been `found` in some of them is told first, so that the controller goes by it when it
/// is asked next; that is waited for a while. From any worker.
asio::awaitable<OwnReports> gather_own_reports(Core& core, std::vector<metadata::TopicPtr> topics,
                                               std::vector<model::PartitionId> found);

/// Why each replica of a partition that nobody leads does not lead it. Of others a broker knows
/// what the image says; of its own replica also what is wrong with it (`own`; null: nothing is
/// known, or is of interest).
std::vector<protocol::ReplicaNote> replica_notes(const Core& core,
                                                 const metadata::ClusterImage& image,
                                                 const metadata::PartitionAssignment& assignment,
                                                 const protocol::ReplicaReport* own);
/// The own replica is damaged in places, for people; empty: it is not known to be.
std::string damage_note(const Core& core, const protocol::ReplicaReport* own);
/// The same in one line: "broker 1 is away; broker 2 was not in sync".
std::string why_leaderless(const Core& core, const metadata::ClusterImage& image,
                           const metadata::PartitionAssignment& assignment);

}  // namespace mq::broker
