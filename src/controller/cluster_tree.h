#pragma once

#include <set>
#include <string>
#include <vector>

#include "metadata/cluster_image.h"
#include "metadata/node_values.h"
#include "metadata/store.h"

namespace mq::controller {

using base::Error;
using base::Result;

struct PartitionNode {
  model::PartitionId id;
  metadata::PartitionStateValue state;
  std::int32_t version = -1;  ///< of the state node
};

/// One topic as the store has it.
struct TopicTree {
  metadata::TopicValue value;
  std::int32_t version = -1;  ///< of the topic node
  std::vector<PartitionNode> partitions;
};

/// Those that keep any of its replicas.
std::set<model::BrokerId> brokers_of(const metadata::TopicValue& topic);
std::set<std::int32_t> partition_numbers(const metadata::TopicValue& topic);

/// All that a controller needs, read with as many reads at once as the store takes: the caller is
/// the only writer. A node that is missing or does not parse is named in the log, and the error is
/// damaged_metadata.
struct ClusterTree {
  std::vector<TopicTree> topics;
  std::vector<metadata::TopicValue> deleting;
};
asio::awaitable<Result<ClusterTree>> load_tree(metadata::MetadataStore& store);
/// Topics with state nodes.
asio::awaitable<Result<std::vector<base::Uuid>>> list_state(metadata::MetadataStore& store);

/// As clients see it; an override that this release does not take is logged and left out of the
/// settings in force.
metadata::TopicInfo to_info(const TopicTree& topic, const model::TopicSettings& defaults);

}  // namespace mq::controller
