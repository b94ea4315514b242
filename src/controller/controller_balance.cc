#include <algorithm>

#include "base/log.h"
#include "controller/controller_impl.h"

// Partitions are given back to the first of their replicas.
namespace mq::controller {
namespace {

constexpr base::Duration kLookNextTime = std::chrono::seconds(1);  // while something waits
constexpr base::Duration kLookNowAndThen = std::chrono::seconds(5);

}  // namespace

asio::awaitable<void> Controller::Impl::follow_balance() {
  while (!resigned()) {
    const auto due = home_.now() + (balance_.something_waits() ? kLookNextTime : kLookNowAndThen);
    bool in_time = true;
    while (in_time && !resigned()) in_time = co_await resigned_.wait_until(due);
    if (resigned() || doubtful_ || leaders_due_) continue;
    co_await balance_leaders();
  }
}

std::vector<LeaderBalance::Seen> Controller::Impl::leaders_now() const {
  std::vector<LeaderBalance::Seen> seen;
  for (const auto& [id, tree] : topics_) {
    if (openings_.contains(id)) continue;
    for (const auto& node : tree.partitions) {
      const auto& replicas = replicas_of(node.id);
      if (replicas.size() == 1 || node.state.leader == model::BrokerId()) continue;
      auto& one = seen.emplace_back();
      one.id = node.id;
      one.first = replicas.front();
      one.leads = node.state.leader == one.first;
      const auto damaged = damaged_of(node.id);
      one.may_lead =
          std::ranges::count(damaged, one.first) == 0 &&
          with_leader(node.state, replicas, members_.live_brokers(), one.first).has_value();
    }
  }
  return seen;
}

asio::awaitable<void> Controller::Impl::balance_leaders() {
  const auto turn = co_await writes_.wait_for_turn();
  if (resigned() || doubtful_ || leaders_due_) co_return;
  std::vector<StateChange> changes;
  for (const auto& id : balance_.due(leaders_now(), home_.now())) {
    const auto& node = *find_partition(id);
    const auto& replicas = replicas_of(id);
    auto state = with_leader(node.state, replicas, members_.live_brokers(), replicas.front());
    if (state) changes.push_back({id, std::move(*state), node.version});
  }
  if (changes.empty()) co_return;
  const auto outcomes = co_await write_each(changes);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (!outcomes[i].ok()) continue;
    balance_.moved(changes[i].id, home_.now());
    ++moved;
  }
  if (moved > 0)
    base::log_info("controller", "{} partitions are led by the first of their replicas again",
                   moved);
}

}  // namespace mq::controller
