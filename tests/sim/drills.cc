#include "sim/drills.h"

#include <fmt/format.h>

#include <algorithm>

#include "metadata/znode_layout.h"
#include "sim/violation.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

/// A process that is known to be dead is not waited for (CTL-9).
constexpr base::Duration kKnownDead = 3s;
/// A session ends up to two seconds later than it could; then somebody else has a second.
constexpr base::Duration kSilent = kSessionTimeout + 2s + 2s;
/// An office that nobody hears is given up after five seconds.
constexpr base::Duration kUnheard = 9s;

/// After half a minute without a leader a topic with unclean_election gives records up.
constexpr base::Duration kAway = kSilent + 30s + 5s;

}  // namespace

/// False: it does not begin, since something is left of what was before.
asio::awaitable<bool> Drills::begins_calm() {
  const auto until = machine_.runtime.now() + 30s;
  while (!over_() && !replicas_.not_in_sync().empty() && machine_.runtime.now() < until)
    co_await machine_.runtime.sleep_for(20ms);
  lives_.clear();
  for (const auto& node : nodes_) lives_.push_back(node->lives());
  co_return !over_() && !disturbed() && replicas_.not_in_sync().empty();
}

asio::awaitable<void> Drills::run(bool unclean) {
  const bool calm = co_await begins_calm();
  if (!calm) co_return;
  if (unclean) co_return co_await give_records_up();
  switch (random_.below(4)) {
    case 0:
      co_return co_await lose(BrokerEnd::kill, kKnownDead, "C6: a process is killed");
    case 1:
      co_return co_await lose(BrokerEnd::power_cut, kSilent, "C6: a machine is lost");
    case 2:
      co_return co_await cut_the_controller_off();
    default:
      co_return co_await refuse_connections();
  }
}

/// Something else has happened: a process died of an end that was planned for it before.
bool Drills::disturbed(const ClusterNode* but) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].get() != but && (nodes_[i]->lives() != lives_[i] || !nodes_[i]->serving()))
      return true;
  }
  return false;
}

/// `missing` says what; empty: nothing any more.
asio::awaitable<void> Drills::expect(base::Duration limit, Missing missing, std::string_view rule) {
  const auto began = machine_.runtime.now();
  auto what = missing();
  while (!over_() && !what.empty() && machine_.runtime.now() - began < limit) {
    co_await machine_.runtime.sleep_for(10ms);
    what = missing();
  }
  machine_.simulator.trace(fmt::format(
      "{}: {} after {} ms", rule, what.empty() ? "done" : what,
      std::chrono::duration_cast<std::chrono::milliseconds>(machine_.runtime.now() - began)
          .count()));
  require(what.empty() || over_(), "{}: {} after {} ms", rule, what,
          std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
}

std::string Drills::not_led_without(const ClusterNode& lost) const {
  if (disturbed(&lost)) return {};
  for (const auto& id : replicas_.partitions()) {
    if (!replicas_.leader_of(id)) return fmt::format("nobody leads {}", id.text());
  }
  return {};
}

std::string Drills::other_controller_than(const ClusterNode& lost) const {
  const auto* const leading = leading_node(nodes_);
  if (disturbed(&lost) || (leading && leading != &lost)) return {};
  return "there is no other controller";
}

asio::awaitable<void> Drills::lose(BrokerEnd how, base::Duration limit, std::string_view rule) {
  auto& lost = *nodes_[random_.below(nodes_.size())];
  lost.rest_until(machine_.runtime.now() + 20s);
  lost.end(how);
  Missing missing = [&] { return not_led_without(lost); };
  co_await expect(limit, std::move(missing), rule);
  lost.rest_until(machine_.runtime.now());
}

std::string Drills::not_confirmed_above(
    const std::map<model::PartitionId, model::Offset>& ends) const {
  if (disturbed()) return {};
  for (const auto& [id, end] : ends) {
    const auto* const leader = replicas_.leader_of(id);
    if (!leader) return fmt::format("nobody leads {}", id.text());
    const bool idle = leader->log_end_offset() == end;
    if (!idle && leader->high_watermark() <= end)
      return fmt::format("{} does not get on at {}", id.text(), leader->high_watermark());
  }
  return {};
}

/// It reaches the metadata store, clients reach it: others have to take the office, and what
/// acks=all waits for goes on where another broker leads.
asio::awaitable<void> Drills::cut_the_controller_off() {
  auto* const lost = leading_node(nodes_);
  if (!lost) co_return;
  machine_.simulator.trace(fmt::format("{} and its office are cut off", lost->name()));
  std::map<model::PartitionId, model::Offset> ends;
  for (const auto& id : replicas_.partitions()) {
    const auto* const leader = replicas_.leader_of(id);
    if (leader && leader->isr_state().leader.value() != lost->id())
      ends[id] = leader->log_end_offset();
  }
  for (const auto& other : nodes_) {
    if (other.get() != lost) machine_.network.cut(lost->name(), other->name());
  }
  Missing office = [&] { return other_controller_than(*lost); };
  co_await expect(kUnheard, std::move(office), "C6: the controller is cut off");
  Missing confirmed = [&] { return not_confirmed_above(ends); };
  co_await expect(2 * isr_.lag_time + 5s, std::move(confirmed), "C6: the controller was cut off");
  machine_.network.heal();
}

std::string Drills::not_left_behind(const ClusterNode& left) const {
  for (const auto& id : replicas_.partitions()) {
    for (const auto& member : replicas_.state_of(id)->isr) {
      if (member.broker.value() == left.id())
        return fmt::format("{} is in the ISR of {}", left.name(), id.text());
    }
  }
  return {};
}

std::string Drills::not_led_by(const ClusterNode& left) const {
  if (!left.serving()) return {};
  // An end that was planned before, or one of its disk's; of the others, too: they would be back.
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->lives() != lives_[i]) return {};
  }
  for (const auto& id : replicas_.partitions()) {
    if (replicas_.losses().allowed(id) && replicas_.state_of(id)->leader.value() != left.id())
      return fmt::format("{} does not lead {}", left.name(), id.text());
  }
  return {};
}

/// The two that are in sync go, or reach nothing but each other and their clients, to whom they go
/// on confirming for a while.
asio::awaitable<void> Drills::give_records_up() {
  const auto ids = replicas_.partitions();
  const auto unclean =
      std::ranges::find_if(ids, [this](const auto& id) { return replicas_.losses().allowed(id); });
  if (unclean == ids.end()) co_return;
  const auto leader = replicas_.state_of(*unclean)->leader.value();
  auto* follower = nodes_[random_.below(nodes_.size())].get();
  while (follower->id() == leader) follower = nodes_[random_.below(nodes_.size())].get();
  const auto& left = *follower;
  std::vector<ClusterNode*> others;
  for (const auto& node : nodes_) {
    if (node.get() != &left) others.push_back(node.get());
  }
  machine_.simulator.trace(fmt::format("{} lags and will be left alone", left.name()));
  for (const auto* const other : others) machine_.network.cut(left.name(), other->name());
  const auto lagged = machine_.runtime.now() + 2 * isr_.lag_time + 10s;
  while (!over_() && !not_left_behind(left).empty() && machine_.runtime.now() < lagged)
    co_await machine_.runtime.sleep_for(20ms);
  co_await machine_.runtime.sleep_for(random_.duration(0ms, 2s));
  const bool cut_off = random_.chance(0.5);
  for (auto* const other : others) {
    if (cut_off) {
      machine_.spawn("a broker that is cut off", other->lose_the_store(kAway));
    } else {
      machine_.network.mend(left.name(), other->name());
      other->rest_until(machine_.runtime.now() + kAway);
      other->end(BrokerEnd::kill);
    }
  }
  Missing led = [&] { return not_led_by(left); };
  co_await expect(kAway, std::move(led), "unclean election");
  co_await machine_.runtime.sleep_for(random_.duration(0ms, 10s));
  machine_.network.heal();
  co_await machine_.runtime.sleep_for(kAway);
}

std::int32_t Drills::registrations(const ClusterNode& node) const {
  const auto found =
      machine_.metadata->nodes.find(metadata::layout::broker_epoch(model::BrokerId(node.id())));
  return found == machine_.metadata->nodes.end() ? -1 : found->second.version;
}

bool Drills::registered(const ClusterNode& node) const {
  return machine_.metadata->nodes.contains(
      metadata::layout::broker_live(model::BrokerId(node.id())));
}

/// A broker is taken for dead that lives: it is back at once, and not mistaken again (CTL-9).
asio::awaitable<void> Drills::refuse_connections() {
  auto* const controller = leading_node(nodes_);
  if (!controller) co_return;
  auto* node = controller;
  while (node == controller) node = nodes_[random_.below(nodes_.size())].get();
  machine_.simulator.trace(
      fmt::format("a firewall refuses what {} wants of {}", controller->name(), node->name()));
  const auto before = registrations(*node);
  machine_.network.refuse(controller->name(), node->name());
  for (int i = 0; i < 5 && !over_(); ++i) {
    machine_.network.reset_between(controller->name(), node->name());
    // It stands still for so long that nothing else of it is heard, and then connects again.
    co_await node->pause(random_.duration(300ms, 900ms));
    co_await machine_.runtime.sleep_for(random_.duration(500ms, 3s));
  }
  Missing away = [&]() -> std::string {
    if (disturbed() || registered(*node)) return {};
    return node->name() + " is not back";
  };
  co_await expect(5s, std::move(away), "CTL-9: a broker that lives is taken for dead");
  require(over_() || disturbed() || registrations(*node) <= before + 1,
          "CTL-9: {} lives, and was taken for dead {} times", node->name(),
          registrations(*node) - before);
  machine_.network.heal();
}

/// Of a partition that the controller does not lead: it goes on hearing both, who do not hear each
/// other any more.
Drills::Struck Drills::strike_a_follower(BitFlips& flips, const ClusterNode& controller) {
  for (const auto& id : replicas_.partitions()) {
    const auto& state = *replicas_.state_of(id);
    if (state.isr.size() < nodes_.size() || state.leader.value() == controller.id()) continue;
    Struck struck{.id = id};
    for (const auto& node : nodes_) {
      if (node->id() == state.leader.value()) struck.leader = node.get();
      if (node->id() != state.leader.value() && node.get() != &controller)
        struck.follower = node.get();
    }
    auto& follower = *struck.follower;
    const auto* const log = follower.broker()->core().disks->find(id);
    if (!struck.leader || !log || !flips.strike_start(follower, id)) continue;
    struck.end = log->log_end_offset();
    follower.set_damaged(true);
    machine_.network.cut(follower.name(), struck.leader->name());
    machine_.simulator.trace(
        fmt::format("{} will follow {} with another log, of which {} hears nothing",
                    follower.name(), id.text(), struck.leader->name()));
    return struck;
  }
  return {};
}

std::string Drills::not_made_anew(const Struck& struck) const {
  if (disturbed()) return {};
  const auto* const log = struck.follower->broker()->core().disks->find(struck.id);
  if (log && !log->failure() && log->log_end_offset() < struck.end) return {};
  return fmt::format("the damaged log of {} is still that of {}", struck.id.text(),
                     struck.follower->name());
}

/// REP-5: what the leader has heard of the log that was would let it in again, if that counted.
asio::awaitable<void> Drills::replace_a_log(BitFlips& flips) {
  const bool calm = co_await begins_calm();
  const auto* const controller = leading_node(nodes_);
  if (!calm || !controller) co_return;
  const auto struck = strike_a_follower(flips, *controller);
  if (!struck.follower) co_return;
  co_await flips.meet_all();
  const bool met = !flips.left().empty();
  Missing made_anew = [&] { return not_made_anew(struck); };
  if (met) co_await expect(20s, std::move(made_anew), "REP-5: a follower's log is damaged");
  // A leader asks several times in that time.
  if (met) co_await machine_.runtime.sleep_for(isr_.lag_time + 2s);
  machine_.network.heal();
}

}  // namespace mq::sim
