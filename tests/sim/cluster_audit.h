#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/cluster_node.h"
#include "sim/replica_audit.h"

namespace mq::sim {

/// Looks over everybody's shoulder in a cluster world: at each write to the metadata store, and
/// after each step at what the brokers believe and do.
class ClusterAudit {
 public:
  ClusterAudit(BrokerMachine& world, const Nodes& nodes);

  /// After each step of the world.
  void observe();
  /// Once all is calm: what every broker believes is what the store says (C7).
  [[nodiscard]] std::string disagreement() const;
  /// The same: a controller that began now would know what the present one knows (C3).
  asio::awaitable<void> rebuild();
  [[nodiscard]] ReplicaAudit& replicas() noexcept { return replicas_; }

 private:
  void wrote(const std::vector<metadata::Operation>& operations);
  void check_fence(const std::vector<metadata::Operation>& operations) const;
  void check_state(const std::string& path);
  void look_at_image(const ClusterNode& node);
  void look_at_logs(const ClusterNode& node, std::uint64_t& looked_at);
  [[nodiscard]] std::string disagreement(const metadata::ClusterImage& image) const;

  struct PartitionSeen {
    std::int32_t leader_epoch = -1;
    std::int32_t leader = -1;
    std::int64_t broker_epoch = -1;  // under which the leader leads
  };
  struct Writer {
    std::int32_t node = 0;
    std::uint64_t life = 0;
    friend bool operator==(const Writer&, const Writer&) = default;
  };

  BrokerMachine& world_;
  const Nodes& nodes_;
  std::map<std::string, PartitionSeen> partitions_;  // by path
  std::map<std::pair<model::PartitionId, std::int32_t>, Writer> writers_;
  std::map<std::int32_t, metadata::ImagePtr> images_;  // the newest that was looked at, by node
  std::int32_t controller_epoch_ = -1;
  std::uint64_t writes_ = 0;
  std::vector<std::uint64_t> leaderships_;  // of the nodes, as they were last looked at
  ReplicaAudit replicas_{world_, nodes_};
};

}  // namespace mq::sim
