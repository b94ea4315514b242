#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "metadata/node_values.h"
#include "replication/partition.h"
#include "sim/cluster_node.h"
#include "sim/loss_audit.h"

namespace mq::sim {

/// What the replicas of a partition owe each other: looked at when a state is written, after each
/// step in which something moved, and once all is calm.
///
/// "Shown" is the highest high watermark that any leader of a partition ever had: nothing below may
/// be lost, since somebody may have read it, or been told that it is kept.
class ReplicaAudit {
 public:
  ReplicaAudit(BrokerMachine& world, const Nodes& nodes);

  /// The store has another state of the partition; nothing: it has none any more.
  void wrote_state(const model::PartitionId& id,
                   const std::optional<metadata::PartitionStateValue>& value);
  void observe();
  /// Why not every replica of every partition is in the ISR and has all that the leader has; empty:
  /// so it is.
  [[nodiscard]] std::string not_in_sync() const;
  [[nodiscard]] LossAudit& losses() noexcept { return losses_; }
  [[nodiscard]] const LossAudit& losses() const noexcept { return losses_; }
  /// R1: what was given up is told, once all are in sync.
  void check_losses_reported() const;
  /// R6, L1, L2, L3: byte by byte, in [log start, high watermark), once all are in sync.
  asio::awaitable<void> compare();

  /// Nothing: no leader with followers was seen.
  [[nodiscard]] std::optional<model::Offset> shown_end(const model::PartitionId& id) const;
  [[nodiscard]] const std::map<model::PartitionId, model::Offset>& shown() const noexcept {
    return shown_;
  }
  /// Of the process that leads it and lives; null: none does.
  [[nodiscard]] replication::Partition* leader_of(const model::PartitionId& id) const;
  /// As the store has it; null: it has none.
  [[nodiscard]] const metadata::PartitionStateValue* state_of(const model::PartitionId& id) const;
  /// At some time since then ISR and ELR had one broker, or none: what that one cannot give out,
  /// nobody can for sure. Also of a partition that the store does not have.
  [[nodiscard]] bool had_one_holder(const model::PartitionId& id, base::TimePoint since) const;
  /// Partitions that the store has, in order.
  [[nodiscard]] std::vector<model::PartitionId> partitions() const;

  /// Whatever this broker loses now, somebody else serves and has all of it.
  [[nodiscard]] bool others_have_all(const ClusterNode& node) const;
  /// It serves and is in sync wherever anything was shown.
  [[nodiscard]] bool has_all(const ClusterNode& node) const;

  [[nodiscard]] std::uint64_t losses_seen() const noexcept { return losses_.losses(); }
  [[nodiscard]] std::uint64_t isr_shrinks() const noexcept { return shrinks_; }
  [[nodiscard]] std::uint64_t elections() const noexcept { return elections_; }

 private:
  using State = metadata::PartitionStateValue;
  /// What one leader was last seen to be like.
  struct Seen {
    std::uint64_t life = 0;
    std::int32_t leader_epoch = -1;
    model::Offset high_watermark;
  };

  [[nodiscard]] const ClusterNode* node(model::BrokerId id) const;
  [[nodiscard]] bool registered(const model::IsrMember& member) const;
  [[nodiscard]] storage::PartitionLog* log_of(const model::IsrMember& member,
                                              const model::PartitionId& id) const;
  void check_members(const model::PartitionId& id, const State& value) const;
  void check_change(const model::PartitionId& id, const State& before, const State& now);
  void check_added(const model::PartitionId& id, const State& now,
                   const model::IsrMember& added) const;
  void check_candidates(const model::PartitionId& id, const char* when) const;
  [[nodiscard]] std::uint64_t signature(const ClusterNode& node) const;
  void look_at(const ClusterNode& node);
  void see_logs(const ClusterNode& node);
  void look_at_leader(const ClusterNode& node, const replication::Partition& partition);
  void check_rise(const ClusterNode& leader, const replication::Partition& partition) const;
  void check_end(const ClusterNode& node, const storage::PartitionLog& log) const;
  [[nodiscard]] std::string not_in_sync(const metadata::PartitionAssignment& assignment) const;
  asio::awaitable<std::string> content(storage::PartitionLog* log, model::Offset from,
                                       model::Offset to) const;

  BrokerMachine& world_;
  const Nodes& nodes_;
  LossAudit losses_{world_, nodes_};
  std::map<model::PartitionId, State> states_;  // as the store has them
  std::map<model::PartitionId, base::TimePoint> had_one_holder_until_;
  std::map<model::PartitionId, model::Offset> shown_;
  std::map<std::pair<std::int32_t, model::PartitionId>, Seen> seen_;  // by node
  /// Where the log of the leader ended when its epoch began.
  std::map<std::pair<model::PartitionId, std::int32_t>, model::Offset> epoch_starts_;
  std::vector<std::uint64_t> signatures_;  // of the nodes
  std::uint64_t writes_ = 0;
  std::uint64_t shrinks_ = 0;
  std::uint64_t elections_ = 0;
};

}  // namespace mq::sim
