#include <algorithm>

#include "base/log.h"
#include "controller/controller_impl.h"
#include "controller/error.h"

// What the store says becomes known here, and what was left half done is finished.
namespace mq::controller {
namespace {

constexpr std::chrono::seconds kFirstPause{1};
constexpr std::chrono::seconds kLongestPause{60};
constexpr std::chrono::seconds kDamageLookedAt{5};
/// Topics whose state nodes are looked through before others have a turn.
constexpr int kSweptAtOnce = 50;

}  // namespace

/// Holds a turn of writes_.
asio::awaitable<Result<void>> Controller::Impl::read_tree(std::set<base::Uuid>& touched) {
  auto tree = co_await load_tree(store_);
  if (!tree) co_return tree.error();
  if (const auto shown = image()) {
    for (const auto& [name, topic] : shown->topics()) touched.insert(topic->id);
  }
  topics_.clear();
  ids_.clear();
  for (auto& topic : tree->topics) {
    const auto id = topic.value.id;
    touched.insert(id);
    ids_[topic.value.name] = id;
    topics_.emplace(id, std::move(topic));
  }
  std::map<base::Uuid, Deletion> deletions;
  for (const auto& topic : tree->deleting) {
    auto& deletion = deletions[topic.id];
    if (const auto known = deletions_.find(topic.id); known != deletions_.end())
      deletion = known->second;
    else
      deletion.waiting = brokers_of(topic);
  }
  deletions_ = std::move(deletions);
  complete_ = tree->complete;
  take_damage(std::move(tree->damage));
  co_return Result<void>();
}

void Controller::Impl::take_damage(std::vector<Damage> damage) {
  const auto known = [](const std::vector<Damage>& all, const Damage& one) {
    return std::ranges::any_of(all, [&](const auto& other) { return other.node == one.node; });
  };
  for (const auto& one : damage) {
    if (!known(damage_, one)) base::log_error("controller", "{}", one.node.text);
  }
  const bool mended =
      std::ranges::any_of(damage_, [&](const auto& one) { return !known(damage, one); });
  damage_ = std::move(damage);
  if (mended) begin_anew();
}

/// Brokers report what they have to a new controller, also what this one had no use for.
void Controller::Impl::begin_anew() {
  base::log_info("controller", "damaged metadata has changed: another election reads all of it");
  on_deposed();
}

asio::awaitable<void> Controller::Impl::follow_damage() {
  while (!resigned()) {
    const auto due = home_.now() + kDamageLookedAt;
    bool in_time = true;
    while (in_time && !resigned()) in_time = co_await resigned_.wait_until(due);
    if (resigned() || damage_.empty()) continue;
    const auto looked_at = damage_;
    const auto changed = co_await is_changed(store_, looked_at);
    if (changed && *changed && !resigned()) begin_anew();
  }
}

void Controller::Impl::doubt(std::string_view why) {
  if (!std::exchange(doubtful_, true))
    base::log_warning("controller", "the metadata is read again before the next change: {}", why);
  want_repair();
}

/// After a write that failed. Some errors say that it changed nothing.
void Controller::Impl::doubt_unless_as_before(const Error& error) {
  const bool as_before = error == make_error_code(MetadataErrc::unavailable) ||
                         error == make_error_code(MetadataErrc::full) ||
                         error == make_error_code(ControllerErrc::not_controller);
  if (!as_before) doubt(error.message());
}

void Controller::Impl::want_repair() {
  repair_needed_ = true;
  if (repairing_ || resigned()) return;
  repairing_ = true;
  tasks_.spawn("repairing the metadata", keep_repairing());
}

asio::awaitable<void> Controller::Impl::keep_repairing() {
  base::Duration pause = kFirstPause;
  Error said;
  while (repair_needed_ && !resigned()) {
    const auto repaired = co_await repair();
    if (resigned() || (repaired && !repair_needed_)) break;
    if (repaired) continue;  // there is more, and others may have had a turn
    if (repaired.error() != said)
      base::log_warning("controller", "a half-done change is not finished yet: {}",
                        repaired.error().message());
    said = repaired.error();
    const auto due = home_.now() + pause;
    bool in_time = true;
    while (in_time && !resigned()) in_time = co_await resigned_.wait_until(due);
    pause = std::min<base::Duration>(2 * pause, kLongestPause);
  }
  repairing_ = false;
}

asio::awaitable<Result<void>> Controller::Impl::repair() {
  const auto turn = co_await admin_.wait_for_turn();
  repair_needed_ = false;
  auto repaired = co_await reload();
  if (repaired) repaired = co_await sweep_orphans();
  if (repaired)
    finish_deletions();
  else
    repair_needed_ = true;
  co_return repaired;
}

/// Under a turn of admin_. Without doubt there is nothing to read.
asio::awaitable<Result<void>> Controller::Impl::reload() {
  if (!doubtful_) co_return Result<void>();
  const auto turn = co_await writes_.wait_for_turn();
  if (resigned()) co_return make_error_code(ControllerErrc::not_controller);
  const auto refreshed = co_await members_.refresh();
  if (!refreshed) co_return refreshed.error();
  std::set<base::Uuid> touched;
  MQ_CO_TRY_VOID(co_await read_tree(touched));
  if (resigned()) co_return make_error_code(ControllerErrc::not_controller);
  forget_lost_openings();
  progress_.notify_all();
  // Nothing of it is shown before; what fails is read again.
  MQ_CO_TRY_VOID(co_await write_states(due_changes()));
  leaders_due_ = false;
  doubtful_ = false;
  if (!resigned()) publish(touched);
  co_return Result<void>();
}

/// State nodes of topics and partitions that never became real. Under a turn of admin_: no topic is
/// being made.
asio::awaitable<Result<void>> Controller::Impl::sweep_orphans() {
  const auto ids = co_await list_state(store_);
  if (!ids) co_return ids.error();
  for (const auto& id : *ids) {
    // State nodes may be of a topic whose node is damaged.
    if (!complete_ || topics_.contains(id) || deletions_.contains(id)) continue;
    MQ_CO_TRY_VOID(co_await topic_writer_.sweep_states(id));
    base::log_info("controller", "swept the state of {}, which is no topic", id.hex());
  }
  for (int swept = 0; !leftovers_.empty(); ++swept) {
    if (swept == kSweptAtOnce) {
      repair_needed_ = true;
      break;
    }
    const auto id = *leftovers_.begin();
    if (const auto tree = topics_.find(id); tree != topics_.end()) {
      auto known = partition_numbers(whole_value(tree->second));
      MQ_CO_TRY_VOID(co_await topic_writer_.sweep_states_but(id, std::move(known)));
    }
    leftovers_.erase(id);
  }
  co_return Result<void>();
}

/// Every broker has deleted its files: the nodes go, the mark last of all.
void Controller::Impl::finish_deletions() {
  if (resigned()) return;
  for (auto& [id, deletion] : deletions_) {
    if (!deletion.waiting.empty() || std::exchange(deletion.finishing, true)) continue;
    tasks_.spawn("forgetting a deleted topic", finish_deletion(id));
  }
}

asio::awaitable<void> Controller::Impl::finish_deletion(base::Uuid topic) {
  const auto deleted = co_await delete_nodes(topic);
  const auto deletion = deletions_.find(topic);
  if (deletion == deletions_.end()) co_return;
  deletion->second.finishing = false;
  if (resigned()) co_return;
  if (!deleted) {
    want_repair();
    co_return;
  }
  base::log_info("controller", "topic {} is deleted everywhere", topic.hex());
  deletions_.erase(deletion);
  publish({});
}

asio::awaitable<Result<void>> Controller::Impl::delete_nodes(base::Uuid topic) {
  {
    // Elections that began before the topic went have ended then, and others leave it out.
    const auto turn = co_await writes_.wait_for_turn();
  }
  MQ_CO_TRY_VOID(co_await topic_writer_.sweep_states(topic));
  co_return co_await topic_writer_.forget(topic);
}

}  // namespace mq::controller
