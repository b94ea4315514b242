#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "metadata/node_values.h"
#include "sim/cluster_node.h"

namespace mq::sim {

/// Topics with `unclean_election`: what may be lost with a leader that lacks records is what the
/// partition's state says, and nothing is lost in silence.
class LossAudit {
 public:
  using State = metadata::PartitionStateValue;

  LossAudit(BrokerMachine& world, const Nodes& nodes) : world_(world), nodes_(nodes) {}

  /// Told of each loss and where it begins.
  void on_loss(std::function<void(const model::PartitionId&, model::Offset)> listener) {
    on_loss_ = std::move(listener);
  }
  /// The topic's settings are such.
  [[nodiscard]] bool allowed(const model::PartitionId& id) const;

  /// `shown`: the end of what somebody may have seen. `whole`: of what the new leader knows to be
  /// as it was confirmed, if that can be looked at. Returns the end of what is still promised.
  model::Offset wrote_state(const model::PartitionId& id, const State& before, const State& now,
                            model::Offset shown, std::optional<model::Offset> whole);
  /// What a leader of this epoch shows counts no more: the loss came after it.
  [[nodiscard]] bool is_past(const model::PartitionId& id, model::LeaderEpoch epoch) const;
  /// One of them lives, and shows so much.
  void saw_past_leader(const ClusterNode& node, const model::PartitionId& id,
                       model::Offset high_watermark);
  /// Some log of the partition has got so far, and `epoch` is the newest in it.
  void saw_log(const model::PartitionId& id, model::LeaderEpoch epoch, model::Offset end);
  /// A record that was sent then may be missing at this offset, or another one may be there.
  [[nodiscard]] bool may_be_lost(const model::PartitionId& id, std::int64_t offset,
                                 base::TimePoint sent) const;
  /// Once all are in sync: the state names all that was lost, and nothing that nobody ever had.
  void check_reported(const model::PartitionId& id, const State& now) const;

  [[nodiscard]] std::uint64_t losses() const noexcept { return count_; }

 private:
  /// What a leader of the past has shown, and how often its disk had lost something then.
  struct Past {
    model::Offset shown;
    std::uint64_t disk_losses = 0;
  };
  struct Loss {
    model::LeaderEpoch epoch;
    model::BrokerId leader;
    model::Offset start;
    model::Offset shown;    ///< before
    model::Offset end;      ///< of what anybody was shown before, or by a leader of the past
    base::TimePoint until;  ///< no leader of the past was seen later
    std::map<std::int32_t, std::uint64_t> complete;  ///< had all, and were down: losses of disks
    std::map<std::int32_t, Past> past;               ///< by node
    std::set<model::Offset> ends;  ///< of logs that have nothing of this epoch, seen since
  };

  void check_election(const model::PartitionId& id, const State& before, const State& now) const;
  void check_start(const model::PartitionId& id, const State& before, const State& now,
                   std::optional<model::Offset> whole) const;
  void check_new_end(const model::PartitionId& id, const State& before, const State& now) const;
  void check_end(const model::PartitionId& id, const State& now, const Loss& loss) const;

  BrokerMachine& world_;
  const Nodes& nodes_;
  std::function<void(const model::PartitionId&, model::Offset)> on_loss_;
  std::map<model::PartitionId, std::vector<Loss>> losses_;
  std::map<model::PartitionId, base::TimePoint> leaderless_since_;
  std::map<model::PartitionId, std::map<model::LeaderEpoch, model::Offset>> ends_;  ///< highest
  std::uint64_t count_ = 0;
};

}  // namespace mq::sim
