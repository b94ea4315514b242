#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mq/admin.h"
#include "mqctl/verbs/broker_view.h"

namespace mq::mqctl {

/// Everything that `status` and `health` look at, asked for once.
struct ClusterFacts {
  ClusterDescription cluster;
  Brokers brokers;
  std::vector<PartitionInfo> partitions;
  /// Why nobody leads some of those that nobody leads.
  std::map<TopicPartition, std::string> leaderless;
};
/// Asks for all of it. An error: nobody answered.
Result<ClusterFacts> look_at_cluster(Admin& admin);

/// Where the partitions stand, by the cluster's metadata.
struct PartitionCounts {
  std::size_t all = 0;
  std::size_t leaderless = 0;
  std::size_t under_replicated = 0;  ///< with a leader, and fewer in sync than replicas
  std::size_t below_min_isr = 0;     ///< with a leader that refuses writes with acks=all
};
PartitionCounts count(const std::vector<PartitionInfo>& partitions);
bool under_replicated(const PartitionInfo& partition);
bool refuses_acks_all(const PartitionInfo& partition);

/// One thing that is looked at. Levels: 1 somebody answers, 2 everything is served and takes writes
/// with any acks, 3 every copy is there, 4 nothing at all is wrong.
struct Check {
  std::string name;
  int level = 1;
  std::vector<std::string> troubles;  ///< one line each; none: fine
};
std::vector<Check> checks_of(const ClusterFacts& facts);

}  // namespace mq::mqctl
