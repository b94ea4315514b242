#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster_node.h"
#include "sim/replica_audit.h"

namespace mq::sim {

/// Bits that change on the disk of a broker, while its process is down or runs: in segments, in the
/// files beside them, and in those that describe the disk. What is not synced is spared: where that
/// breaks it is not the disk's fault.
class BitFlips {
 public:
  /// `chosen`: the topics whose logs may be struck. `synced`: their durability is `disk`.
  BitFlips(BrokerMachine& machine, testing::SimRandom random, const ReplicaAudit& replicas,
           std::function<bool(const base::Uuid&)> chosen, bool synced)
      : machine_(machine),
        random_(random),
        replicas_(replicas),
        chosen_(std::move(chosen)),
        synced_(synced) {}

  /// What a change in it leads to.
  enum class Kind {
    none,   ///< there is no such file
    cache,  ///< nothing: it is made anew
    log,    ///< what it holds is lost
  };
  /// One bit of one file.
  Kind strike(ClusterNode& node);
  /// The same in the oldest segment that it has of this partition. False: nothing has changed.
  bool strike_start(ClusterNode& node, const model::PartitionId& id);
  [[nodiscard]] bool chance(double probability) { return random_.chance(probability); }
  [[nodiscard]] base::Duration duration(base::Duration low, base::Duration high) {
    return random_.duration(low, high);
  }

  struct Damage {
    ClusterNode* node = nullptr;
    model::PartitionId partition;
    std::string file;
    std::uint64_t from = 0;
    /// The bytes around it tell whether it is there still: what is made anew may have others here.
    std::vector<std::byte> bytes;
  };
  /// Segments that are as they were struck.
  [[nodiscard]] std::vector<Damage> left() const;
  [[nodiscard]] bool left_at(const ClusterNode& node) const;
  /// Once all is calm: reads what they are in, which is when a broker meets them. Those that it
  /// does not meet are forgotten.
  asio::awaitable<void> meet_all();
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  asio::awaitable<bool> is_met(Damage damage);
  Kind strike_segment(ClusterNode& node);
  Kind strike_other(ClusterNode& node);
  bool damage(ClusterNode& node, const std::string& file, std::uint64_t position);
  [[nodiscard]] std::optional<model::PartitionId> partition_of(const std::string& file) const;
  [[nodiscard]] std::vector<std::string> segments(ClusterNode& node) const;
  bool flip(ClusterNode& node, const std::string& file, std::uint64_t position);

  BrokerMachine& machine_;
  testing::SimRandom random_;
  const ReplicaAudit& replicas_;
  std::function<bool(const base::Uuid&)> chosen_;
  bool synced_;
  std::vector<Damage> struck_;
  std::uint64_t count_ = 0;
};

}  // namespace mq::sim
