#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "controller/controller_impl.h"
#include "controller/elections.h"
#include "controller/error.h"
#include "controller/ring.h"
#include "controller/topic_rules.h"

// Topics are made, altered and deleted.
namespace mq::controller {
namespace {

/// How long a change waits for brokers that live and do not report: then its replicas count as
/// made, and are shown as they are.
constexpr std::chrono::seconds kOpenPatience{60};

bool is_unknown(const Error& error) {
  return error == make_error_code(MetadataErrc::outcome_unknown);
}

/// Adds partitions up to `total`, with the next numbers and without replicas.
void add_partitions(TopicTree& tree, std::size_t total) {
  while (tree.partitions.size() < total) {
    const auto number = tree.value.next_partition++;
    tree.value.partitions.push_back({number, {}});
    tree.partitions.push_back({{tree.value.id, number}, {}, -1});
  }
}

}  // namespace

// A change is a task of its own: whoever asked for it may give up waiting

asio::awaitable<TopicResult> Controller::Impl::create_topic(protocol::NewTopic topic,
                                                            bool validate_only,
                                                            base::TimePoint deadline) {
  const Call call(*this);
  auto name = topic.name;
  auto change = std::make_shared<Change>(home_);
  tasks_.spawn("creating a topic", run_create(change, std::move(topic), validate_only));
  co_return co_await outcome_of(std::move(change), std::move(name), deadline);
}

asio::awaitable<TopicResult> Controller::Impl::delete_topic(std::string name,
                                                            base::TimePoint deadline) {
  const Call call(*this);
  auto change = std::make_shared<Change>(home_);
  tasks_.spawn("deleting a topic", run_delete(change, name));
  co_return co_await outcome_of(std::move(change), std::move(name), deadline);
}

asio::awaitable<TopicResult> Controller::Impl::alter_topic(protocol::AlterTopic alter,
                                                           base::TimePoint deadline) {
  const Call call(*this);
  auto name = alter.name;
  auto change = std::make_shared<Change>(home_);
  tasks_.spawn("altering a topic", run_alter(change, std::move(alter)));
  co_return co_await outcome_of(std::move(change), std::move(name), deadline);
}

asio::awaitable<TopicResult> Controller::Impl::add_partitions(std::string name, std::int32_t total,
                                                              base::TimePoint deadline) {
  const Call call(*this);
  auto change = std::make_shared<Change>(home_);
  tasks_.spawn("adding partitions", run_add(change, name, total));
  co_return co_await outcome_of(std::move(change), std::move(name), deadline);
}

asio::awaitable<TopicResult> Controller::Impl::outcome_of(ChangePtr change, std::string name,
                                                          base::TimePoint deadline) {
  bool in_time = true;
  while (in_time && !change->result) in_time = co_await change->done.wait_until(deadline);
  if (change->result) co_return *change->result;
  TopicResult late;
  late.name = std::move(name);
  late.status = status(WireError::timed_out, "the change is still under way; it is not undone");
  co_return late;
}

void Controller::Impl::end(const ChangePtr& change, TopicResult result) {
  change->result = std::move(result);
  change->done.notify_all();
}

asio::awaitable<void> Controller::Impl::run_create(ChangePtr change, protocol::NewTopic topic,
                                                   bool validate_only) {
  auto made = co_await create(std::move(topic), validate_only);
  auto result = co_await opened(std::move(made));
  end(change, std::move(result));
}

asio::awaitable<void> Controller::Impl::run_delete(ChangePtr change, std::string name) {
  auto made = co_await remove(std::move(name));
  co_await wait_until_applied(made.version, std::move(made.brokers));
  end(change, std::move(made.result));
}

asio::awaitable<void> Controller::Impl::run_alter(ChangePtr change,
                                                  protocol::AlterTopic alter_topic) {
  auto made = co_await alter(std::move(alter_topic));
  co_await wait_until_applied(made.version, std::move(made.brokers));
  end(change, std::move(made.result));
}

asio::awaitable<void> Controller::Impl::run_add(ChangePtr change, std::string name,
                                                std::int32_t total) {
  auto made = co_await add(std::move(name), total);
  auto result = co_await opened(std::move(made));
  end(change, std::move(result));
}

/// Of admin_, when no change of this topic is under way: what is being made may be taken back.
asio::awaitable<ChangeQueue::Turn> Controller::Impl::turn_for(std::string name) {
  const auto being_made = [&] {
    const auto id = ids_.find(name);
    return id != ids_.end() && openings_.contains(id->second) && !resigned();
  };
  while (true) {
    while (being_made()) (void)co_await progress_.wait();
    auto turn = co_await admin_.wait_for_turn();
    if (!being_made()) co_return std::move(turn);
  }
}

/// Under a turn of admin_.
asio::awaitable<Status> Controller::Impl::ready_for_change() {
  if (resigned()) co_return gone();
  const auto reloaded = co_await reload();
  if (resigned()) co_return gone();
  if (!reloaded) co_return refusal(reloaded.error());
  co_return Status();
}

/// The same for a topic that has to be there.
asio::awaitable<Status> Controller::Impl::ready_for_change_of(std::string name) {
  auto refused = co_await ready_for_change();
  if (refused.ok() && find_topic(name) == nullptr) refused = damaged(name);
  if (refused.ok() && find_topic(name) == nullptr)
    refused = status(WireError::unknown_topic, metadata::unknown_topic_text(*image(), name));
  co_return refused;
}

/// OK: nothing of this topic is damaged.
Status Controller::Impl::damaged(std::string_view name) const {
  const auto found = std::ranges::find(
      damage_, name, [](const auto& one) -> const std::string& { return one.node.topic; });
  if (found == damage_.end()) return {};
  return status(WireError::metadata_unavailable, found->node.text);
}

const TopicTree* Controller::Impl::find_topic(std::string_view name) const {
  const auto id = ids_.find(name);
  return id == ids_.end() ? nullptr : &topics_.at(id->second);
}

// Create (MET-2)

asio::awaitable<Controller::Impl::Made> Controller::Impl::create(protocol::NewTopic topic,
                                                                 bool validate_only) {
  const auto turn = co_await turn_for(topic.name);
  Made made;
  made.result.name = topic.name;
  auto& refused = made.result.status;
  refused = check_topic(config_, topic);
  if (!refused.ok()) co_return made;
  refused = co_await ready_for_change();
  if (!refused.ok()) co_return made;
  if (find_topic(topic.name) != nullptr) {
    refused = status(WireError::topic_exists, fmt::format("topic \"{}\" exists", topic.name));
    co_return made;
  }
  refused = damaged(topic.name);
  if (!refused.ok()) co_return made;
  TopicTree tree;
  tree.value.id = base::Uuid::from_random(home_.random(), home_.random());
  tree.value.name = topic.name;
  tree.value.overrides = overrides_of(config_, topic);
  controller::add_partitions(tree, static_cast<std::size_t>(partitions_of(config_, topic)));
  made.result.partitions = tree.value.next_partition;
  const auto copies = copies_of(config_, topic, members_.infos().size());
  refused = check_copies(config_, copies, tree.value.overrides);
  if (refused.ok()) refused = place(tree, 0, copies);
  if (!refused.ok() || validate_only) co_return made;
  refused = co_await create_nodes(tree);
  if (!refused.ok()) co_return made;
  const auto id = tree.value.id;
  made.result.id = id;
  made.opening = expect_opening(tree, 0);
  ids_[tree.value.name] = id;
  topics_[id] = std::move(tree);
  hidden_from_[id] = 0;
  publish({id});
  co_return made;
}

std::vector<Ring::Broker> Controller::Impl::loads(bool alive) const {
  std::map<model::BrokerId, Ring::Broker> loads;
  for (const auto& info : members_.infos()) {
    if (info.alive != alive) continue;
    auto& load = loads[info.id];
    load.id = info.id;
    load.replicas_max = config_.partitions_max;
  }
  for (const auto& [id, topic] : topics_) {
    for (const auto& partition : topic.value.partitions) {
      for (const auto broker : partition.replicas) {
        const auto load = loads.find(broker);
        if (load == loads.end()) continue;
        ++load->second.replicas;
        if (broker == partition.replicas.front()) ++load->second.firsts;
      }
    }
  }
  std::vector<Ring::Broker> brokers;
  brokers.reserve(loads.size());
  for (const auto& [broker, load] : loads) brokers.push_back(load);
  return brokers;
}

Status Controller::Impl::place(TopicTree& tree, std::size_t first, std::size_t copies) const {
  auto brokers = loads(true);
  if (brokers.empty())
    return status(WireError::metadata_unavailable, "no broker is registered at the moment");
  std::vector<std::int32_t> numbers;
  std::vector<Ring::Replicas> existing;
  for (std::size_t i = 0; i < tree.partitions.size(); ++i) {
    if (i < first)
      existing.push_back(tree.value.partitions[i].replicas);
    else
      numbers.push_back(tree.value.partitions[i].number);
  }
  const auto min_isr = min_isr_of(min_isr_of(tree.value.overrides), copies);
  if (auto refused = check_copies_live(config_, copies, min_isr, members_.infos()); !refused.ok())
    return refused;
  const auto live_copies = std::min(copies, brokers.size());
  const auto existing_everywhere =
      std::accumulate(brokers.begin(), brokers.end(), std::size_t{0},
                      [](std::size_t sum, const auto& one) { return sum + one.replicas; });
  auto chosen = Ring(std::move(brokers)).place(tree.value.id, numbers, existing, live_copies);
  std::vector<Ring::Replicas> away;
  if (live_copies < copies)
    away = Ring(loads(false)).place(tree.value.id, numbers, existing, copies - live_copies);
  if (chosen.size() != numbers.size() || (live_copies < copies && away.size() != numbers.size()))
    return status(WireError::invalid_request,
                  fmt::format("partitions = {}: there are {} already, and the limit of open files "
                              "allows {} on each broker",
                              numbers.size(), existing_everywhere, config_.partitions_max));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::vector<model::IsrMember> members;
    for (const auto broker : chosen[i]) members.push_back({broker, members_.find(broker)->epoch});
    // They are not in the ISR, and fetch everything when they are back.
    if (!away.empty()) chosen[i].insert(chosen[i].end(), away[i].begin(), away[i].end());
    tree.value.partitions[first + i].replicas = chosen[i];
    tree.partitions[first + i].state = first_state(members, min_isr);
  }
  return {};
}

asio::awaitable<Status> Controller::Impl::create_nodes(TopicTree& tree) {
  const auto created = co_await topic_writer_.create(tree);
  if (created) co_return Status();
  if (is_unknown(created.error())) {
    doubt(created.error().message());
    co_return refusal(created.error());
  }
  const auto swept = co_await topic_writer_.sweep_states(tree.value.id);
  if (!swept) want_repair();
  doubt_unless_as_before(created.error());
  co_return refusal(created.error());
}

// Waiting for the brokers

OpeningPtr Controller::Impl::expect_opening(const TopicTree& tree, std::size_t first) {
  auto opening = std::make_shared<Opening>();
  for (auto i = first; i < tree.partitions.size(); ++i) {
    unopened_.insert(tree.partitions[i].id);
    for (const auto& member : tree.partitions[i].state.isr)
      opening->missing[{tree.partitions[i].id.partition, member.broker}] = member.epoch;
  }
  openings_[tree.value.id] = opening;
  // One that was lost while this was written has been forgotten already.
  forget_lost_openings();
  members_changed_ = true;
  members_wake_.notify_all();
  return opening;
}

asio::awaitable<void> Controller::Impl::wait_until_open(OpeningPtr opening) {
  const auto due = home_.now() + kOpenPatience;
  bool in_time = true;
  while (in_time && !resigned() && !opening->missing.empty() && !opening->failure &&
         !opening->topic_gone)
    in_time = co_await progress_.wait_until(due);
}

asio::awaitable<void> Controller::Impl::wait_until_applied(std::uint64_t version,
                                                           std::set<model::BrokerId> brokers) {
  std::map<model::BrokerId, model::BrokerEpoch> waiting;
  for (const auto broker : brokers) {
    const auto* registration = members_.find(broker);
    if (registration != nullptr && registration->alive) waiting[broker] = registration->epoch;
  }
  while (!resigned()) {
    std::erase_if(waiting, [&](const auto& one) {
      return !members_.is_live(one.first, one.second) ||
             members_.find(one.first)->applied >= version;
    });
    if (waiting.empty()) break;
    (void)co_await progress_.wait();
  }
}

/// What became of the new partitions.
asio::awaitable<TopicResult> Controller::Impl::opened(Made made) {
  if (!made.opening) co_return made.result;
  const auto id = made.result.id;
  co_await wait_until_open(made.opening);
  if (made.opening->topic_gone) {
    made.result.status = status(WireError::unknown_topic, "the topic has been deleted meanwhile");
  } else if (made.opening->failure) {
    made.result.status = *made.opening->failure;
    const bool taken_back = co_await take_back(id, made.first_new);
    if (!taken_back)
      made.result.status = status(WireError::metadata_outcome_unknown,
                                  "it may still be there: " + made.opening->failure->text);
  } else if (resigned()) {
    made.result.status = status(WireError::timed_out,
                                "it is made, and another controller was elected before all brokers "
                                "had opened it");
  } else {
    hidden_from_.erase(id);
    if (topics_.contains(id)) publish({id});
  }
  openings_.erase(id);
  progress_.notify_all();
  co_return made.result;
}

// What could not be opened somewhere is taken back; nobody was shown it

asio::awaitable<bool> Controller::Impl::take_back(base::Uuid topic, std::int32_t first_new) {
  const auto turn = co_await admin_.wait_for_turn();
  const auto ready = co_await ready_for_change();
  hidden_from_.erase(topic);
  if (!ready.ok()) co_return false;
  const auto found = topics_.find(topic);
  if (found == topics_.end()) co_return true;
  TopicTree tree = found->second;
  if (first_new == 0) co_return co_await take_back_topic(std::move(tree));
  co_return co_await take_back_partitions(std::move(tree), first_new);
}

asio::awaitable<bool> Controller::Impl::take_back_topic(TopicTree tree) {
  const auto moved = co_await topic_writer_.move_to_deleting(tree);
  if (moved)
    forget_topic(tree);
  else
    doubt(moved.error().message());
  co_return moved.has_value();
}

asio::awaitable<bool> Controller::Impl::take_back_partitions(TopicTree tree,
                                                             std::int32_t first_new) {
  std::erase_if(tree.value.partitions,
                [&](const auto& partition) { return partition.number >= first_new; });
  std::erase_if(tree.partitions,
                [&](const auto& partition) { return partition.id.partition >= first_new; });
  const auto id = tree.value.id;
  const auto set = co_await topic_writer_.set_topic(tree);
  if (!set) {
    doubt(set.error().message());
    co_return false;
  }
  leftovers_.insert(id);
  want_repair();
  topics_[id] = std::move(tree);
  publish({id});
  co_return true;
}

// Delete: one multi; then the brokers, the state nodes, /deleting/<uuid> (MET-2)

asio::awaitable<Controller::Impl::Made> Controller::Impl::remove(std::string name) {
  const auto turn = co_await turn_for(name);
  Made made;
  made.result.name = name;
  auto& refused = made.result.status;
  refused = co_await ready_for_change_of(name);
  if (!refused.ok()) co_return made;
  const auto* const found = find_topic(name);
  TopicTree tree = *found;
  const auto moved = co_await topic_writer_.move_to_deleting(tree);
  if (!moved) {
    doubt_unless_as_before(moved.error());
    refused = refusal(moved.error());
    co_return made;
  }
  made.result.id = tree.value.id;
  const auto value = whole_value(tree);
  made.result.partitions = static_cast<std::int32_t>(value.partitions.size());
  made.brokers = brokers_of(value);
  made.version = images_.next_version();
  forget_topic(tree);
  co_return made;
}

/// It stands under /deleting now.
void Controller::Impl::forget_topic(const TopicTree& tree) {
  const auto id = tree.value.id;
  if (const auto opening = openings_.find(id); opening != openings_.end())
    opening->second->topic_gone = true;
  hidden_from_.erase(id);
  std::erase_if(unopened_, [&](const auto& partition) { return partition.topic == id; });
  topics_.erase(id);
  ids_.erase(tree.value.name);
  deletions_[id].waiting = brokers_of(whole_value(tree));
  std::erase_if(damage_, [&](const auto& one) { return one.node.topic == tree.value.name; });
  publish({id});
  progress_.notify_all();
}

// Alter

asio::awaitable<Controller::Impl::Made> Controller::Impl::alter(protocol::AlterTopic change) {
  const auto turn = co_await turn_for(change.name);
  Made made;
  made.result.name = change.name;
  auto& refused = made.result.status;
  refused = co_await ready_for_change_of(change.name);
  if (!refused.ok()) co_return made;
  const auto* const found = find_topic(change.name);
  made.result.id = found->value.id;
  made.result.partitions = static_cast<std::int32_t>(whole_value(*found).partitions.size());
  const auto& partitions = found->value.partitions;
  const auto copies = partitions.empty() ? 1 : partitions.front().replicas.size();
  auto altered = alter_settings(config_, found->value.overrides, change, copies);
  refused = std::move(altered.status);
  if (!refused.ok() || altered.overrides == found->value.overrides) co_return made;
  TopicTree tree = *found;
  tree.value.overrides = std::move(altered.overrides);
  const auto set = co_await topic_writer_.set_topic(tree);
  if (!set) {
    doubt_unless_as_before(set.error());
    refused = refusal(set.error());
    co_return made;
  }
  // Its partitions may have been given other leaders meanwhile.
  auto& topic = topics_.at(made.result.id);
  topic.value = std::move(tree.value);
  topic.version = tree.version;
  made.brokers = brokers_of(topic.value);
  publish({made.result.id});
  refused = co_await put_min_isr_in_force(made.result.id);
  made.version = images_.next_version() - 1;
  co_return made;
}

/// What the topic node says is done in any case: what fails here is done with the next repair.
asio::awaitable<Status> Controller::Impl::put_min_isr_in_force(base::Uuid id) {
  const auto turn = co_await writes_.wait_for_turn();
  const auto tree = topics_.find(id);
  if (resigned() || tree == topics_.end()) co_return Status();
  std::vector<StateChange> changes;
  add_due_changes(tree->second, changes);
  const auto written = co_await write_states(std::move(changes));
  if (written) co_return Status();
  leaders_due_ = true;
  members_changed_ = true;
  members_wake_.notify_all();
  co_return status(WireError::timed_out,
                   "the setting is stored, and min_isr is not in force everywhere yet");
}

// Add partitions: state nodes first, then the count (MET-2)

asio::awaitable<Controller::Impl::Made> Controller::Impl::add(std::string name,
                                                              std::int32_t total) {
  const auto turn = co_await turn_for(name);
  Made made;
  made.result.name = name;
  auto& refused = made.result.status;
  refused = co_await ready_for_change_of(name);
  if (refused.ok()) refused = damaged(name);
  if (!refused.ok()) co_return made;
  const auto* const found = find_topic(name);
  const auto id = found->value.id;
  const auto existing = found->value.partitions.size();
  made.result.id = id;
  made.result.partitions = static_cast<std::int32_t>(existing);
  refused = check_total(config_, name, existing, total);
  if (!refused.ok() || existing == static_cast<std::size_t>(total)) co_return made;
  TopicTree tree = *found;
  controller::add_partitions(tree, static_cast<std::size_t>(total));
  ++tree.value.partition_count_epoch;
  refused = place(tree, existing, found->value.partitions.front().replicas.size());
  if (refused.ok()) refused = co_await add_nodes(*found, tree);
  if (!refused.ok()) co_return made;
  made.first_new = tree.value.partitions[existing].number;
  made.opening = expect_opening(tree, existing);
  auto& topic = topics_.at(id);
  topic.value = std::move(tree.value);
  topic.version = tree.version;
  std::move(tree.partitions.begin() + static_cast<std::ptrdiff_t>(existing), tree.partitions.end(),
            std::back_inserter(topic.partitions));
  hidden_from_[id] = made.first_new;
  made.result.partitions = total;
  publish({id});
  co_return made;
}

asio::awaitable<Status> Controller::Impl::add_nodes(const TopicTree& before, TopicTree& tree) {
  const auto existing = static_cast<std::ptrdiff_t>(before.partitions.size());
  auto known = partition_numbers(before.value);
  // What an earlier change left half done has the numbers that come next.
  Result<void> done = co_await topic_writer_.sweep_states_but(tree.value.id, std::move(known));
  std::vector<PartitionNode> added(tree.partitions.begin() + existing, tree.partitions.end());
  if (done) done = co_await topic_writer_.add_states(added);
  leftovers_.insert(tree.value.id);
  if (!done) {
    want_repair();
    if (done.error() == make_error_code(ControllerErrc::not_controller)) co_return gone();
    co_return refusal(MetadataErrc::unavailable);  // without the count they are no partitions
  }
  std::move(added.begin(), added.end(), tree.partitions.begin() + existing);
  done = co_await topic_writer_.set_topic(tree);
  if (done) {
    leftovers_.erase(tree.value.id);
    co_return Status();
  }
  want_repair();
  doubt_unless_as_before(done.error());
  co_return refusal(done.error());
}

}  // namespace mq::controller
