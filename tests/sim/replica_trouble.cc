#include "sim/replica_trouble.h"

#include <fmt/format.h>

#include "base/run_on.h"

namespace mq::sim {

using namespace std::chrono_literals;

ReplicaTrouble::ReplicaTrouble(BrokerMachine& machine, const Nodes& nodes,
                               const ReplicaAudit& replicas, std::function<bool()> over,
                               bool synced, BitFlips* flips)
    : machine_(machine),
      nodes_(nodes),
      replicas_(replicas),
      over_(std::move(over)),
      synced_(synced),
      flips_(flips) {
  // What the controller has just stored is not heard of by who asked for it.
  machine_.metadata->on_applied = [this] {
    const auto* const controller = answers_get_lost_ ? leading_node(nodes_) : nullptr;
    if (controller && machine_.random.chance(0.5))
      machine_.network.reset_connections(controller->name());
  };
}

ClusterNode& ReplicaTrouble::another_than(const ClusterNode& node) {
  while (true) {
    auto& other = some_node();
    if (&other != &node) return other;
  }
}

asio::awaitable<void> ReplicaTrouble::run() {
  while (!over_()) {
    co_await wait(50ms, 3s);
    if (over_()) break;
    auto& node = some_node();
    const auto dice = machine_.random.below(20);
    if (dice < 4) {
      co_await cut_one_way(node, another_than(node));
    } else if (dice < 6) {
      co_await cut_off(node);
    } else if (dice < 9) {
      co_await pause(node);
    } else if (dice < 11) {
      node.stall_the_disk(machine_.random.duration(200ms, 6s));
    } else if (dice < 12) {
      co_await slow_links();
    } else if (dice < 14) {
      co_await slow_store();
    } else if (dice < 15) {
      co_await lose_answers();
    } else if (dice < 16) {
      co_await reset_many();
    } else if (dice < 19) {
      co_await elect();
    } else if (machine_.random.chance(0.3)) {
      end_all();
    }
  }
}

asio::awaitable<void> ReplicaTrouble::run_more(testing::SimRandom random) {
  constexpr std::int64_t kAheadMs[] = {-1'000'000'000'000, -3'600'000, -8'000, 0, 8'000, 60'000,
                                       31'536'000'000};
  const auto wrong = random.below(nodes_.size());
  while (!over_()) {
    co_await machine_.runtime.sleep_for(random.duration(500ms, 10s));
    if (over_()) break;
    auto* const controller = leading_node(nodes_);
    switch (random.below(3)) {
      case 0:
        nodes_[wrong]->set_clock_ahead(kAheadMs[random.below(std::size(kAheadMs))]);
        break;
      case 1:
        if (controller) co_await cut_off(*controller);
        break;
      default: {
        const auto& from = controller && random.chance(0.7) ? *controller : some_node();
        co_await refuse(from, another_than(from), random.duration(500ms, 15s));
      }
    }
  }
}

/// The two live, and the one may take the other for dead.
asio::awaitable<void> ReplicaTrouble::refuse(const ClusterNode& from, const ClusterNode& to,
                                             base::Duration span) {
  machine_.simulator.trace(fmt::format("what {} wants of {} is refused", from.name(), to.name()));
  machine_.network.refuse(from.name(), to.name());
  machine_.network.reset_between(from.name(), to.name());
  co_await machine_.runtime.sleep_for(span);
  machine_.network.mend(from.name(), to.name());
}

asio::awaitable<void> ReplicaTrouble::lose_majorities() {
  co_await wait(5s, 20s);
  while (!over_()) {
    co_await cut_and_leave(some_node());
    co_await wait(30s, 80s);
  }
}

/// The others go on without it for a while, and then are away for longer than 30 s.
asio::awaitable<void> ReplicaTrouble::cut_and_leave(const ClusterNode& left) {
  machine_.simulator.trace(fmt::format("{} lags and will be left alone", left.name()));
  std::vector<ClusterNode*> others;
  for (const auto& node : nodes_) {
    if (node.get() != &left) others.push_back(node.get());
  }
  for (const auto* const other : others) machine_.network.cut(left.name(), other->name());
  co_await wait(2s, 12s);
  for (auto* const other : others) {
    machine_.network.mend(left.name(), other->name());
    if (over_()) continue;
    other->rest_until(machine_.runtime.now() + machine_.random.duration(30s, 50s));
    other->end(synced_ && machine_.random.chance(0.3) ? BrokerEnd::power_cut : BrokerEnd::kill);
  }
}

/// From the other brokers; clients and the store still reach it.
asio::awaitable<void> ReplicaTrouble::cut_off(const ClusterNode& node) {
  machine_.simulator.trace(fmt::format("{} is cut off from the others", node.name()));
  for (const auto& other : nodes_) {
    if (other.get() != &node) machine_.network.cut(node.name(), other->name());
  }
  co_await wait(500ms, 12s);
  for (const auto& other : nodes_) machine_.network.mend(node.name(), other->name());
}

asio::awaitable<void> ReplicaTrouble::cut_one_way(const ClusterNode& from, const ClusterNode& to) {
  machine_.simulator.trace(
      fmt::format("nothing comes from {} to {} any more", from.name(), to.name()));
  machine_.network.cut_one_way(from.name(), to.name());
  co_await wait(200ms, 10s);
  machine_.network.mend(from.name(), to.name());
}

asio::awaitable<void> ReplicaTrouble::pause(ClusterNode& node) {
  const auto dice = machine_.random.below(10);
  const auto span = dice < 4   ? machine_.random.duration(50ms, 2s)
                    : dice < 8 ? machine_.random.duration(2s, 6s)
                               : machine_.random.duration(6s, 20s);
  co_await node.pause(span);
}

/// Whatever is sent may be late, so that one connection overtakes the other.
asio::awaitable<void> ReplicaTrouble::slow_links() {
  constexpr double kSlowShare = 0.2;
  const auto usual = machine_.network.link();
  if (usual.slow_chance >= kSlowShare) co_return;  // they are already
  auto slow = usual;
  slow.slow_chance = kSlowShare;
  slow.slow_max = machine_.random.duration(200ms, 3s);
  machine_.simulator.trace("the links are slow");
  machine_.network.set_link(slow);
  co_await wait(1s, 8s);
  machine_.network.set_link(usual);
}

asio::awaitable<void> ReplicaTrouble::slow_store() {
  machine_.simulator.trace("the store is slow");
  machine_.metadata->slower_by = machine_.random.duration(100ms, 3s);
  co_await wait(1s, 12s);
  machine_.metadata->slower_by = {};
}

asio::awaitable<void> ReplicaTrouble::lose_answers() {
  machine_.simulator.trace("answers of the controller get lost");
  answers_get_lost_ = true;
  co_await wait(500ms, 8s);
  answers_get_lost_ = false;
}

asio::awaitable<void> ReplicaTrouble::reset_many() {
  machine_.simulator.trace("connections are reset");
  for (auto left = machine_.random.between(3, 40); left > 0; --left) {
    machine_.network.reset_one(machine_.random);
    co_await wait(1ms, 100ms);
  }
}

/// Several in a row now and then, so that tails stay unconfirmed.
asio::awaitable<void> ReplicaTrouble::elect() {
  for (auto left = machine_.random.between(1, 4); left > 0 && !over_(); --left) {
    auto* const node = leading_node(nodes_);
    if (!node) co_return;
    protocol::ControlPartitionsRequest request;
    request.broker = some_node().id();
    for (const auto& id : replicas_.partitions()) {
      if (machine_.random.chance(0.4)) request.partitions.push_back(id);
    }
    machine_.simulator.trace(fmt::format("broker {} is to lead {} partitions", request.broker,
                                         request.partitions.size()));
    const auto deadline = machine_.runtime.now() + 5s;
    auto asked = node->controller()->control(std::move(request), deadline);
    const auto answer = co_await base::run_on(*node->broker()->core().home, std::move(asked));
    (void)answer;  // it may say no
    co_await wait(1ms, 500ms);
  }
}

void ReplicaTrouble::end_all() {
  const bool power = synced_ && machine_.random.chance(0.6);
  machine_.simulator.trace("all of them end");
  for (const auto& node : nodes_) node->end(power ? BrokerEnd::power_cut : BrokerEnd::kill);
}

// What is lost

/// One at a time, and only what somebody else has.
bool ReplicaTrouble::may_lose(const ClusterNode& node) {
  if (in_doubt_ && replicas_.has_all(*in_doubt_) && !(flips_ && flips_->left_at(*in_doubt_)))
    std::exchange(in_doubt_, nullptr)->set_damaged(false);
  return (!in_doubt_ || in_doubt_ == &node) && replicas_.others_have_all(node);
}

void ReplicaTrouble::loses(ClusterNode& node, std::string_view what) {
  in_doubt_ = &node;
  machine_.simulator.trace(fmt::format("{}: {}", node.name(), what));
}

BrokerEnd ReplicaTrouble::draw_end(ClusterNode& node) {
  const auto dice = machine_.random.below(10);
  if (dice < 3 && !node.broken()) return BrokerEnd::clean_stop;
  if (dice < 7) return BrokerEnd::kill;
  if (synced_) return BrokerEnd::power_cut;
  if (!may_lose(node)) return BrokerEnd::kill;
  loses(node, "what was not synced goes with its power");
  return BrokerEnd::power_cut;
}

void ReplicaTrouble::spoil_disk(ClusterNode& node) {
  if (flips_ && !over_() && flips_->chance(0.3)) flip_a_bit(node);
  if (over_() || machine_.random.chance(0.75) || !may_lose(node)) return;
  const auto dice = machine_.random.below(3);
  if (dice == 0) {
    loses(node, "its disk is replaced by an empty one");
    node.replace_disk(nullptr);
  } else if (dice == 1 && synced_ && damage_a_log(node)) {
    // Of what was not synced nobody would know that it is gone.
    node.set_damaged(true);
  } else if (dice == 2) {
    restore_copy(node);
  }
}

asio::awaitable<void> ReplicaTrouble::flip_bits() {
  while (!over_()) {
    co_await machine_.runtime.sleep_for(flips_->duration(500ms, 8s));
    auto& node = some_node();
    if (!over_() && node.serving()) flip_a_bit(node);
  }
}

asio::awaitable<void> ReplicaTrouble::flip_some_bits() {
  const auto until = machine_.runtime.now() + 30s;
  while (!replicas_.not_in_sync().empty() && machine_.runtime.now() < until)
    co_await machine_.runtime.sleep_for(20ms);
  auto& node = some_node();
  if (flips_->chance(0.7)) {
    node.rest_until(base::TimePoint::max());  // its end may take a while
    node.end(BrokerEnd::kill);
    while (!node.down()) co_await machine_.runtime.sleep_for(10ms);
  }
  for (int i = 0; i < 6; ++i) flip_a_bit(node);
  node.rest_until(machine_.runtime.now());
}

void ReplicaTrouble::flip_a_bit(ClusterNode& node) {
  if (!may_lose(node) || flips_->strike(node) != BitFlips::Kind::log) return;
  in_doubt_ = &node;
  node.set_damaged(true);
}

/// The one that was taken in some earlier life; the next is taken now.
void ReplicaTrouble::restore_copy(ClusterNode& node) {
  if (copied_ == &node && node.lives() > copied_life_ + 1) {
    loses(node, "its disk is restored from an older copy");
    node.replace_disk(std::move(copy_));
    copied_ = nullptr;
  } else if (!copied_) {
    copy_ = node.copy_disk();
    copied_ = &node;
    copied_life_ = node.lives();
  }
}

bool ReplicaTrouble::damage_a_log(ClusterNode& node) {
  std::vector<std::string> files;
  for (const auto& [id, shown] : replicas_.shown()) {
    for (auto& file : node.files().files_below("/disk")) {
      const bool log = file.ends_with(".log") && file.find(id.topic.hex()) != std::string::npos;
      if (log && !node.files().content(file).empty()) files.push_back(std::move(file));
    }
  }
  if (files.empty()) return false;
  const auto& file = files[machine_.random.below(files.size())];
  const auto size = node.files().content(file).size();
  const auto cut = machine_.random.between(1, size);
  loses(node, fmt::format("{} loses its last {} of {} bytes", file, cut, size));
  node.files().truncate_file(file, size - cut);
  return true;
}

}  // namespace mq::sim
