#pragma once

#include <functional>

#include "sim/bit_flips.h"
#include "sim/cluster_node.h"
#include "sim/replica_audit.h"

namespace mq::sim {

/// What happens to a world of replicated partitions beside the trouble of any cluster: followers
/// that fall behind, leaders that change while something is on its way, disks that are lost.
class ReplicaTrouble {
 public:
  /// `over`: nothing more is begun. `synced`: the topics' durability is `disk`, so that the power
  /// may go everywhere at once; else one at a time loses something. `flips`: null for none.
  ReplicaTrouble(BrokerMachine& machine, const Nodes& nodes, const ReplicaAudit& replicas,
                 std::function<bool()> over, bool synced, BitFlips* flips);

  /// One thing after the other.
  asio::awaitable<void> run();

  /// Beside it: firewalls that refuse, a controller whom only the store and clients reach, one
  /// broker's wall clock.
  asio::awaitable<void> run_more(testing::SimRandom random);
  /// The same: bits of disks change.
  asio::awaitable<void> flip_bits();
  /// Once all are in sync: several of one disk, mostly while its broker is down.
  asio::awaitable<void> flip_some_bits();
  /// The same: now and then a follower that lags is left alone for so long that topics with
  /// unclean_election have it lead.
  asio::awaitable<void> lose_majorities();

  /// How the present process of a node may end.
  [[nodiscard]] BrokerEnd draw_end(ClusterNode& node);
  /// While the node is down: something may become of its disk.
  void spoil_disk(ClusterNode& node);

 private:
  ClusterNode& some_node() { return *nodes_[machine_.random.below(nodes_.size())]; }
  ClusterNode& another_than(const ClusterNode& node);
  asio::awaitable<void> wait(base::Duration min, base::Duration max) {
    return machine_.runtime.sleep_for(machine_.random.duration(min, max));
  }

  asio::awaitable<void> cut_off(const ClusterNode& node);
  asio::awaitable<void> cut_one_way(const ClusterNode& from, const ClusterNode& to);
  asio::awaitable<void> pause(ClusterNode& node);
  asio::awaitable<void> slow_links();
  asio::awaitable<void> slow_store();
  asio::awaitable<void> lose_answers();
  asio::awaitable<void> reset_many();
  asio::awaitable<void> elect();
  asio::awaitable<void> refuse(const ClusterNode& from, const ClusterNode& to, base::Duration span);
  void end_all();
  asio::awaitable<void> cut_and_leave(const ClusterNode& left);

  [[nodiscard]] bool may_lose(const ClusterNode& node);
  void loses(ClusterNode& node, std::string_view what);
  void restore_copy(ClusterNode& node);
  void flip_a_bit(ClusterNode& node);
  [[nodiscard]] bool damage_a_log(ClusterNode& node);

  BrokerMachine& machine_;
  const Nodes& nodes_;
  const ReplicaAudit& replicas_;
  std::function<bool()> over_;
  bool synced_;
  BitFlips* flips_;
  bool answers_get_lost_ = false;
  ClusterNode* in_doubt_ = nullptr;               ///< it lost something, and is not whole again
  std::unique_ptr<testing::SimFileSystem> copy_;  ///< of a disk, as it once was
  const ClusterNode* copied_ = nullptr;           ///< whose
  std::uint64_t copied_life_ = 0;
};

}  // namespace mq::sim
