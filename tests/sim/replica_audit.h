#pragma once

#include <map>
#include <memory>
#include <vector>

#include "metadata/node_values.h"
#include "replication/partition.h"
#include "sim/cluster_node.h"

namespace mq::sim {

/// What the replicas of a partition owe each other: looked at when a state is written, after each
/// step, and once all is calm.
class ReplicaAudit {
 public:
  ReplicaAudit(BrokerMachine& world, const std::vector<std::unique_ptr<ClusterNode>>& nodes)
      : world_(world), nodes_(nodes) {}

  /// R1, R11, R13: who leads is in the ISR and has all that anybody was shown.
  void wrote_state(const model::PartitionId& id, const metadata::PartitionStateValue& value);
  /// R3, R4: nothing is shown that a candidate has not confirmed.
  void observe();
  /// Every replica is in the ISR, and has all that the leader has.
  [[nodiscard]] bool all_in_sync() const;
  /// R6, L2: byte by byte, in [log start, high watermark), after all_in_sync().
  asio::awaitable<void> compare();

  /// The highest high watermark that any leader had; nothing: none with followers was seen.
  [[nodiscard]] std::optional<model::Offset> shown_end(const model::PartitionId& id) const;
  /// Of the process that leads it and lives; null: none does.
  [[nodiscard]] replication::Partition* leader_of(const model::PartitionId& id) const;

 private:
  struct Seen {
    model::Offset high_watermark;
    std::int64_t version = -1;  ///< of the state that it was held against
    std::int32_t leader_epoch = -1;
  };

  [[nodiscard]] const ClusterNode* node(model::BrokerId id) const;
  [[nodiscard]] bool registered(const model::IsrMember& member) const;
  [[nodiscard]] storage::PartitionLog* log_of(const model::IsrMember& member,
                                              const model::PartitionId& id) const;
  void look_at(const ClusterNode& node, const replication::Partition& partition);
  asio::awaitable<std::string> content(storage::PartitionLog* log, model::Offset from,
                                       model::Offset to);

  BrokerMachine& world_;
  const std::vector<std::unique_ptr<ClusterNode>>& nodes_;
  std::map<model::PartitionId, model::Offset> shown_;
  std::map<std::pair<std::int32_t, model::PartitionId>, Seen> seen_;  // by node
  std::map<model::PartitionId, std::int32_t> leader_epochs_;
};

}  // namespace mq::sim
