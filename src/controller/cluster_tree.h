#pragma once

#include <optional>
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
  metadata::TopicValue value;  ///< its partitions are those of `partitions`
  std::int32_t version = -1;   ///< of the topic node
  std::vector<PartitionNode> partitions;
  /// Those whose state nodes are damaged: nobody is elected for them.
  std::vector<metadata::TopicPartition> damaged;
};
/// What its node says, with the damaged partitions.
metadata::TopicValue whole_value(const TopicTree& topic);

/// Those that keep any of its replicas.
std::set<model::BrokerId> brokers_of(const metadata::TopicValue& topic);
std::set<std::int32_t> partition_numbers(const metadata::TopicValue& topic);

/// A node that was set aside, as it was found.
struct Damage {
  metadata::DamagedNode node;
  std::optional<std::string> value;  ///< nothing: it is missing
  bool read = true;                  ///< false: its name is wrong, `value` was not read
};

/// All that a controller needs, read with as many reads at once as the store takes: the caller is
/// the only writer. Nodes that are missing or do not parse are set aside by name, with as little
/// as possible around them, and everything else is as if they were not there.
struct ClusterTree {
  std::vector<TopicTree> topics;
  std::vector<metadata::TopicValue> deleting;
  std::vector<Damage> damage;
  /// False: topics may be there whose ids nobody knows, so that state nodes of no known topic may
  /// be theirs.
  bool complete = true;
};
asio::awaitable<Result<ClusterTree>> load_tree(metadata::MetadataStore& store);
/// Whether somebody has done something about it.
asio::awaitable<Result<bool>> is_changed(metadata::MetadataStore& store,
                                         const std::vector<Damage>& damage);
/// Topics with state nodes.
asio::awaitable<Result<std::vector<base::Uuid>>> list_state(metadata::MetadataStore& store);

/// As clients see it; an override that this release does not take is logged and left out of the
/// settings in force.
metadata::TopicInfo to_info(const TopicTree& topic, const model::TopicSettings& defaults);

}  // namespace mq::controller
