#include "sim/cluster_trouble.h"

#include <fmt/format.h>

namespace mq::sim {

using namespace std::chrono_literals;

asio::awaitable<void> ClusterTrouble::run() {
  while (!over_()) {
    co_await machine_.runtime.sleep_for(machine_.random.duration(100ms, 6s));
    if (over_()) break;
    auto& node = *nodes_[machine_.random.below(nodes_.size())];
    const auto& other = *nodes_[machine_.random.below(nodes_.size())];
    switch (machine_.random.below(7)) {
      case 0:
        machine_.simulator.trace("a connection is reset");
        machine_.network.reset_one(machine_.random);
        break;
      case 1:
        if (&other != &node) co_await cut(node, other);
        break;
      case 2:
        co_await machine_.disturb_metadata();
        break;
      case 3:
        if (alone_) co_await orphan_the_others();
        break;
      default:
        co_await node.lose_the_store(machine_.random.duration(100ms, 20s));
    }
  }
}

asio::awaitable<void> ClusterTrouble::cut(const ClusterNode& one, const ClusterNode& other) {
  machine_.simulator.trace(fmt::format("{} and {} are cut", one.name(), other.name()));
  machine_.network.cut(one.name(), other.name());
  co_await machine_.runtime.sleep_for(machine_.random.duration(100ms, 20s));
  machine_.network.mend(one.name(), other.name());
}

/// The controller dies while nobody else reaches the store, so that nobody hears of it. When they
/// are back they find out by themselves (CTL-6).
asio::awaitable<void> ClusterTrouble::orphan_the_others() {
  auto* const controller = leading_node(nodes_);
  if (!controller) co_return;
  machine_.simulator.trace("the others will not hear that the controller dies");
  struct Witness {
    ClusterNode* node;
    std::uint64_t life;
    bool knows = false;
  };
  std::vector<Witness> witnesses;
  for (const auto& node : nodes_) {
    if (node.get() == controller || !node->serving()) continue;
    node->cut_from_store();
    witnesses.push_back({node.get(), node->lives()});
  }
  controller->end(BrokerEnd::kill);
  co_await machine_.runtime.sleep_for(kSessionTimeout + 3s);
  for (const auto& one : witnesses) {
    if (one.node->lives() == one.life) one.node->rejoin_store();
  }
  const auto until = machine_.runtime.now() + 20s;
  while (machine_.runtime.now() < until && !over_()) {
    const auto* const leader = leading_node(nodes_);
    for (auto& one : witnesses) {
      if (!leader || !one.node->serving()) continue;
      const auto known = one.node->broker()->core().membership->leader();
      one.knows = one.knows || (known && known->broker.value() == leader->id());
    }
    co_await machine_.runtime.sleep_for(50ms);
  }
  for (const auto& one : witnesses) {
    const bool judged = one.node->serving() && one.node->lives() == one.life && !over_();
    require(!judged || one.knows, "CTL-6: {} reaches the store and does not know who leads",
            one.node->name());
  }
}

}  // namespace mq::sim
