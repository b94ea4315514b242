#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "mq/admin.h"

namespace mq::mqctl {

/// What several verbs say about partitions.
/// The lines of `partition describe`: where it is, who has what, and why it is not served.
std::string partition_text(const std::string& topic, const PartitionDescription& partition);
/// How far behind the leader's log a follower's is; -1: not known.
std::int64_t lag_of(const PartitionDescription& partition, const FollowerDescription& follower);

/// Of those that somebody leads, which replicas are damaged in places, and where; of the first
/// `most` topics. All brokers are asked.
std::map<TopicPartition, std::string> damage_notes(Admin& admin,
                                                   const std::vector<PartitionInfo>& partitions,
                                                   std::size_t most);
std::map<TopicPartition, std::string> damage_notes(Admin& admin,
                                                   const std::set<std::string>& topics);
std::map<TopicPartition, std::string> damage_notes(const PerItem<TopicDescription>& topics);
/// How many partitions of each topic have a note.
std::map<std::string, std::int32_t> counted_by_topic(
    const std::map<TopicPartition, std::string>& notes);
/// The note of each of the first `most` that nobody leads; all brokers are asked.
std::map<TopicPartition, std::string> leaderless_notes(Admin& admin,
                                                       const std::vector<PartitionInfo>& partitions,
                                                       std::size_t most);
/// "orders/0"
std::string partition_name(const std::string& topic, std::int32_t partition);

}  // namespace mq::mqctl
