#include "base/mutants.h"
#include "controller/controller_impl.h"

// Topics that would rather lose records than wait for a leader.
namespace mq::controller {
namespace {

constexpr base::Duration kLook = std::chrono::seconds(1);
/// So long a partition is without a leader before records are given up for one: brokers that were
/// only restarted, all of them even, are back by then.
constexpr base::Duration kUncleanAfter = std::chrono::seconds(30);

}  // namespace

asio::awaitable<void> Controller::Impl::follow_leaderless() {
  while (!resigned()) {
    const auto due = home_.now() + kLook;
    bool in_time = true;
    while (in_time && !resigned()) in_time = co_await resigned_.wait_until(due);
    note_leaderless();
    const bool wait = leaderless_since_.empty() || resigned() || doubtful_ || leaders_due_;
    if (!wait) co_await elect_unclean();
  }
}

/// Of topics that allow it, those that nobody leads, and since when.
void Controller::Impl::note_leaderless() {
  std::map<model::PartitionId, base::TimePoint> since;
  const auto now_known = image();
  if (!now_known) return;
  for (const auto& [name, topic] : now_known->topics()) {
    if (!topic->settings.unclean_election && !MQ_MUTANT("unclean_everywhere")) continue;
    for (const auto& partition : topic->partitions) {
      if (partition.leader != model::BrokerId() || partition.replicas.size() == 1) continue;
      const auto known = leaderless_since_.find(partition.id);
      since[partition.id] = known == leaderless_since_.end() ? home_.now() : known->second;
    }
  }
  leaderless_since_ = std::move(since);
}

asio::awaitable<void> Controller::Impl::elect_unclean() {
  const auto turn = co_await writes_.wait_for_turn();
  if (resigned() || doubtful_ || leaders_due_) co_return;
  std::vector<StateChange> changes;
  for (const auto& [id, since] : leaderless_since_) {
    const auto* const node = find_partition(id);
    const auto remains = remains_.find(id);
    if (node == nullptr || remains == remains_.end() || home_.now() - since < kUncleanAfter)
      continue;
    auto state = with_unclean_leader(node->state, replicas_of(id), members_.live_brokers(), id,
                                     remains->second);
    if (state) changes.push_back({id, std::move(*state), node->version});
  }
  // A failure is looked at again with the next second's turn.
  if (!changes.empty()) (void)co_await write_states(std::move(changes));
}

}  // namespace mq::controller
