#pragma once

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

/// The parts of the tree that a controller needs, read node by node: the caller is the only writer.
/// A node that is missing or does not parse is named in the log, and the error is damaged_metadata.
asio::awaitable<Result<std::vector<std::string>>> list_topics(metadata::MetadataStore& store);
/// The topic node alone.
asio::awaitable<Result<TopicTree>> load_topic_node(metadata::MetadataStore& store,
                                                   std::string name);
/// With the states of its partitions.
asio::awaitable<Result<TopicTree>> load_topic(metadata::MetadataStore& store, std::string name);
asio::awaitable<Result<std::vector<TopicTree>>> load_topics(metadata::MetadataStore& store);
/// Everything, with as many reads at once as the store takes.
struct ClusterTree {
  std::vector<TopicTree> topics;
  std::vector<metadata::TopicValue> deleting;
};
asio::awaitable<Result<ClusterTree>> load_tree(metadata::MetadataStore& store);
/// Topics under /deleting, and those with state nodes.
asio::awaitable<Result<std::vector<base::Uuid>>> list_deleting(metadata::MetadataStore& store);
asio::awaitable<Result<std::vector<base::Uuid>>> list_state(metadata::MetadataStore& store);

/// As clients see it; an override that this release does not take is logged and left out of the
/// settings in force.
metadata::TopicInfo to_info(const TopicTree& topic, const model::TopicSettings& defaults);
metadata::PartitionAssignment to_assignment(const metadata::TopicPartition& partition,
                                            const PartitionNode& node);

}  // namespace mq::controller
