#pragma once

#include <functional>

#include "sim/cluster_node.h"

namespace mq::sim {

/// What happens from outside to any cluster world: connections, links and the metadata store fail.
class ClusterTrouble {
 public:
  /// `over`: nothing more is begun. `alone`: nothing else disturbs the brokers.
  ClusterTrouble(BrokerMachine& machine, const Nodes& nodes, std::function<bool()> over, bool alone)
      : machine_(machine), nodes_(nodes), over_(std::move(over)), alone_(alone) {}

  /// One thing after the other.
  asio::awaitable<void> run();

 private:
  asio::awaitable<void> cut(const ClusterNode& one, const ClusterNode& other);
  asio::awaitable<void> orphan_the_others();

  BrokerMachine& machine_;
  const Nodes& nodes_;
  std::function<bool()> over_;
  bool alone_;
};

}  // namespace mq::sim
