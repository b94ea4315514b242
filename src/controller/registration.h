#pragma once

#include <vector>

#include "controller/cluster_tree.h"
#include "controller/controller.h"
#include "controller/node_writer.h"

namespace mq::controller {

/// Largest part of a change that is made with one multi.
inline constexpr std::size_t kOperationsPerMulti = 2000;

/// Makes the folders of the tree that are not there.
asio::awaitable<Result<void>> make_folders(metadata::MetadataStore& store);

/// Registers the broker under a new epoch and, in the same multi, starts every partition's leader
/// anew: leader epoch one higher, ISR under the new broker epoch (MET-3). What does not fit follows
/// in further multis that name the epoch node's new version. On success `topics` is what the store
/// has confirmed.
asio::awaitable<Result<model::BrokerEpoch>> register_broker(metadata::MetadataStore& store,
                                                            NodeWriter& writer,
                                                            const ControllerConfig& config,
                                                            std::vector<TopicTree>& topics);

/// Sets the leader epochs of partitions to the ones given in their states, in as few multis as
/// needed; the versions of the nodes are raised with them.
asio::awaitable<Result<void>> write_states(NodeWriter& writer,
                                           std::vector<PartitionNode*> partitions,
                                           metadata::Check fence);

}  // namespace mq::controller
