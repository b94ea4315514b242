#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "controller/controller_impl.h"
#include "controller/elections.h"
#include "controller/error.h"
#include "controller/topic_rules.h"
#include "metadata/znode_layout.h"

// Brokers come and go, and report what they have; partitions get and lose their leaders.
namespace mq::controller {
namespace {

namespace layout = metadata::layout;

/// A watch is a hint: so often everything is read again without one.
constexpr std::chrono::seconds kReadAgain{60};
constexpr std::chrono::milliseconds kAfterFailure{500};
/// So long a leader that has resigned does not get the partition back for balance's sake.
constexpr std::chrono::minutes kAfterResigning{10};

/// Null: it has no such partition. Constant like the tree.
template <class Tree>
auto* find_partition(Tree& tree, std::int32_t number) {
  const auto found = std::ranges::lower_bound(
      tree.partitions, number, {}, [](const PartitionNode& one) { return one.id.partition; });
  const bool there = found != tree.partitions.end() && found->id.partition == number;
  return there ? &*found : nullptr;
}

/// Replicas are listed in the topic node, in the order of the state nodes.
const std::vector<model::BrokerId>& replicas_of(const TopicTree& tree, const PartitionNode& node) {
  const auto at = static_cast<std::size_t>(&node - tree.partitions.data());
  return tree.value.partitions[at].replicas;
}

}  // namespace

asio::awaitable<void> Controller::Impl::follow_members() {
  bool told = false;
  while (!resigned()) {
    members_changed_ = false;
    auto updated = co_await watch_members();
    if (updated) updated = co_await update_members();
    // Once, however long the store is away.
    if (!std::exchange(told, !updated) && !updated && !resigned())
      base::log_warning("controller", "what became of the brokers is not known: {}",
                        updated.error().message());
    const auto due = home_.now() + (updated ? base::Duration(kReadAgain) : kAfterFailure);
    bool in_time = true;
    while (in_time && !members_changed_ && !resigned())
      in_time = co_await members_wake_.wait_until(due);
  }
}

/// Before the read, so that what comes after it is heard of.
asio::awaitable<Result<void>> Controller::Impl::watch_members() {
  if (watching_) co_return Result<void>();
  watching_ = true;
  std::weak_ptr<bool> alive = alive_;
  std::function<void()> fire = [this, alive] {
    if (alive.expired()) return;
    watching_ = false;
    members_changed_ = true;
    members_wake_.notify_all();
  };
  const auto watched = co_await store_.watch(std::string(layout::kBrokersLive),
                                             metadata::WatchKind::children, std::move(fire));
  if (!watched) watching_ = false;
  co_return watched;
}

asio::awaitable<Result<void>> Controller::Impl::update_members() {
  const auto turn = co_await writes_.wait_for_turn();
  if (resigned()) co_return make_error_code(ControllerErrc::not_controller);
  const auto changed = co_await members_.refresh();
  if (!changed) co_return changed.error();
  if (resigned()) co_return make_error_code(ControllerErrc::not_controller);
  leaders_due_ = leaders_due_ || *changed;
  note_returned();
  forget_lost_openings();
  const auto is_gone = [this](const auto& one) { return find_partition(one.first) == nullptr; };
  std::erase_if(remains_, is_gone);
  std::erase_if(failed_, is_gone);
  std::erase_if(useless_, is_gone);
  std::erase_if(damaged_, is_gone);
  progress_.notify_all();
  if (doubtful_) co_return make_error_code(MetadataErrc::unavailable);  // the repair does the rest
  auto due = due_changes();
  const bool written = !due.empty();
  MQ_CO_TRY_VOID(co_await write_states(std::move(due)));
  leaders_due_ = false;
  if (*changed && !written && !resigned()) publish({});
  co_return Result<void>();
}

asio::awaitable<Status> Controller::Impl::check_registration(model::BrokerId broker,
                                                             model::BrokerEpoch epoch) {
  if (resigned()) co_return gone();
  if (members_.is_live(broker, epoch)) heard_[broker] = home_.now();
  // No broker is shown that it leads from an earlier registration of its own.
  if (members_.is_live(broker, epoch) && !leaders_due_) co_return Status();
  const auto updated = co_await update_members();
  if (resigned()) co_return gone();
  if (!updated) co_return refusal(updated.error());
  if (members_.is_live(broker, epoch)) co_return Status();
  co_return status(WireError::stale_broker_epoch,
                   fmt::format("broker {} is not registered under epoch {}", broker, epoch));
}

asio::awaitable<ChangeQueue::Turn> Controller::Impl::writes_for(
    model::BrokerId broker, model::BrokerEpoch epoch, protocol::ResponseEnvelope& envelope) {
  envelope.status = co_await check_registration(broker, epoch);
  if (!envelope.status.ok()) co_return ChangeQueue::Turn();
  auto turn = co_await writes_.wait_for_turn();
  if (resigned())
    envelope.status = gone();
  else if (!members_.is_live(broker, epoch))
    envelope.status = status(WireError::stale_broker_epoch, "the broker's registration has ended");
  else if (doubtful_)
    envelope.status = refusal(MetadataErrc::unavailable);
  co_return std::move(turn);
}

// Elections

const PartitionNode* Controller::Impl::find_partition(const model::PartitionId& id) const {
  const auto tree = topics_.find(id.topic);
  return tree == topics_.end() ? nullptr : controller::find_partition(tree->second, id.partition);
}

const std::vector<model::BrokerId>& Controller::Impl::replicas_of(
    const model::PartitionId& id) const {
  const auto& tree = topics_.at(id.topic);
  return controller::replicas_of(tree, *controller::find_partition(tree, id.partition));
}

std::vector<StateChange> Controller::Impl::due_changes() const {
  std::vector<StateChange> changes;
  for (const auto& [id, tree] : topics_) add_due_changes(tree, changes);
  return changes;
}

void Controller::Impl::add_due_changes(const TopicTree& tree,
                                       std::vector<StateChange>& changes) const {
  const auto wanted = min_isr_of(tree.value.overrides);
  for (const auto& partition : tree.partitions) {
    const auto& replicas = controller::replicas_of(tree, partition);
    auto state = partition.state;
    const auto min_isr = min_isr_of(wanted, replicas.size());
    const bool other_min_isr = min_isr != state.min_isr;
    if (other_min_isr) state = with_min_isr(std::move(state), min_isr);
    auto next = settled(state, replicas, members_.live_brokers());
    if (next || other_min_isr)
      changes.push_back(
          {partition.id, next ? std::move(*next) : std::move(state), partition.version});
  }
}

/// What its leader has heard from it before says nothing of what is made anew.
void Controller::Impl::note_failure(const model::IsrMember& member,
                                    const protocol::ReplicaReport& report) {
  if (report.state != protocol::ReplicaState::failed && !failed_.contains(report.partition)) return;
  auto& failed = failed_[report.partition];
  std::erase_if(failed, [&](const auto& one) { return one.broker == member.broker; });
  if (report.state == protocol::ReplicaState::failed) failed.push_back(member);
  if (failed.empty()) failed_.erase(report.partition);
  auto& useless = useless_[report.partition];
  useless.erase(member.broker);
  const bool may_be_mended = report.reason.error() == WireError::partition_corrupt;
  if (report.state == protocol::ReplicaState::failed && !may_be_mended)
    useless.emplace(member.broker, report.reason.text);
  if (useless.empty()) useless_.erase(report.partition);
}

/// Nothing: none of them.
std::optional<model::IsrMember> Controller::Impl::failed_of(
    const model::PartitionId& partition, const std::vector<model::IsrMember>& members) const {
  const auto failed = failed_.find(partition);
  if (failed == failed_.end()) return std::nullopt;
  const auto found = std::ranges::find_first_of(members, failed->second);
  return found == members.end() ? std::nullopt : std::optional(*found);
}

void Controller::Impl::note_damage(model::BrokerId broker, const protocol::ReplicaReport& report) {
  auto& known = damaged_[report.partition];
  known.erase(broker);
  if (!report.damage.empty()) known.emplace(broker, report.damage);
  if (known.empty()) damaged_.erase(report.partition);
}

/// Who cannot give out either what the leader that reports cannot: with one of them nothing would
/// be better. Those damaged elsewhere may help, one after the other.
std::vector<model::BrokerId> Controller::Impl::damaged_alike(
    const protocol::ReplicaReport& report) const {
  std::vector<model::BrokerId> alike;
  const auto known = damaged_.find(report.partition);
  if (report.damage.empty() || known == damaged_.end()) return alike;
  for (const auto& one : known->second) {
    const bool all = std::ranges::all_of(report.damage, [&](const auto& place) {
      return std::ranges::any_of(
          one.second, [&](const auto& other) { return model::same_records(place, other); });
    });
    if (all) alike.push_back(one.first);
  }
  return alike;
}

/// Known to be, in whatever place; or not served at all.
std::vector<model::BrokerId> Controller::Impl::damaged_of(
    const model::PartitionId& partition) const {
  std::vector<model::BrokerId> brokers;
  if (const auto known = damaged_.find(partition); known != damaged_.end())
    for (const auto& one : known->second) brokers.push_back(one.first);
  if (const auto failed = failed_.find(partition); failed != failed_.end())
    for (const auto& member : failed->second) brokers.push_back(member.broker);
  return brokers;
}

/// Why a replica could not lead even with a loss; empty: it could.
std::string Controller::Impl::useless_because(const model::PartitionId& partition,
                                              model::BrokerId broker) const {
  const auto known = useless_.find(partition);
  if (known == useless_.end()) return {};
  const auto why = known->second.find(broker);
  return why == known->second.end() ? std::string() : why->second;
}

std::optional<StateChange> Controller::Impl::change_after(model::BrokerId broker,
                                                          model::BrokerEpoch epoch,
                                                          const protocol::ReplicaReport& report) {
  const auto* const found = find_partition(report.partition);
  if (found == nullptr) return std::nullopt;
  note_failure({broker, epoch}, report);
  note_damage(broker, report);
  const auto& replicas = replicas_of(report.partition);
  const auto& brokers = members_.live_brokers();
  auto known = report;
  // What was never open has lost nothing, however new its log is.
  if (unopened_.contains(report.partition)) known.intact_since = model::BrokerEpoch(0);
  auto state = with_reported_replica(found->state, replicas, brokers, broker, epoch, known,
                                     damaged_alike(report));
  const auto& now = state ? *state : found->state;
  // One that was known to be complete may be needed later, when whoever leads now is lost too.
  const bool was_known =
      std::ranges::count(now.last_known_elr, broker, &model::IsrMember::broker) > 0;
  const bool may_be_needed = now.leader == model::BrokerId() || was_known;
  if (may_be_needed && std::ranges::count(replicas, broker) > 0) {
    auto& remains = remains_[report.partition];
    std::erase_if(remains, [&](const auto& one) { return one.member.broker == broker; });
    if (report.state != protocol::ReplicaState::failed)
      remains.push_back({{broker, epoch},
                         report.last_leader_epoch,
                         report.log_end_offset,
                         now.leader_epoch,
                         report.high_watermark});
    auto elected = with_best_remains(now, brokers, report.partition, remains);
    if (elected) state = std::move(elected);
  }
  if (!state) return std::nullopt;
  if (report.state == protocol::ReplicaState::resigns && state->leader != broker) {
    base::log_warning("controller", "{}: the log of broker {} {}; broker {} leads instead",
                      report.partition.text(), broker,
                      report.damage.empty() ? "stands still" : "is damaged in places",
                      state->leader);
    balance_.hold(report.partition, home_.now() + kAfterResigning);
  }
  return StateChange{found->id, std::move(*state), found->version};
}

asio::awaitable<Result<void>> Controller::Impl::write_states(std::vector<StateChange> changes) {
  std::set<base::Uuid> touched;
  Error error;
  for (std::size_t done = 0; done < changes.size() && !error;) {
    if (MQ_MUTANT("image_before_confirmed")) {
      confirm(changes, done, changes.size(), touched);
      publish(touched);
    }
    const auto end = co_await topic_writer_.write_states(changes, done);
    if (!end) {
      error = end.error();
      break;
    }
    if (!MQ_MUTANT("image_before_confirmed")) confirm(changes, done, *end, touched);
    done = *end;
  }
  if (!touched.empty() && !resigned()) publish(touched);
  if (!error) co_return Result<void>();
  const bool only_a_member = co_await lost_a_member(std::move(changes), error);
  if (!only_a_member) doubt_unless_as_before(error);
  co_return error;
}

/// What became of each: OK once the store has it.
asio::awaitable<std::vector<Status>> Controller::Impl::write_each(
    std::vector<StateChange> changes) {
  const auto written = co_await write_states(changes);
  std::vector<Status> outcomes;
  for (const auto& change : changes) {
    const auto* const node = find_partition(change.id);
    const bool done = written || (node != nullptr && node->version > change.version);
    outcomes.push_back(done ? Status() : refusal(written.error()));
  }
  co_return outcomes;
}

/// Nothing was written because a broker that was to come into an ISR has registered anew: the rest
/// is as it was known.
asio::awaitable<bool> Controller::Impl::lost_a_member(std::vector<StateChange> changes,
                                                      Error error) {
  std::vector<model::IsrMember> added;
  for (const auto& change : changes)
    added.insert(added.end(), change.added.begin(), change.added.end());
  if (added.empty() || error != make_error_code(MetadataErrc::bad_version)) co_return false;
  const auto changed = co_await members_.refresh();
  if (!changed) co_return false;
  leaders_due_ = leaders_due_ || *changed;
  members_changed_ = true;
  members_wake_.notify_all();
  co_return std::ranges::any_of(
      added, [this](const auto& member) { return !members_.is_live(member.broker, member.epoch); });
}

/// While somebody leads only those are still of interest that were known to be complete.
void Controller::Impl::forget_remains(const model::PartitionId& id,
                                      const metadata::PartitionStateValue& state) {
  const auto found = remains_.find(id);
  if (state.leader == model::BrokerId() || found == remains_.end()) return;
  std::erase_if(found->second, [&](const auto& one) {
    return std::ranges::count(state.last_known_elr, one.member.broker, &model::IsrMember::broker) ==
           0;
  });
  if (found->second.empty()) remains_.erase(found);
}

/// The store has these states now, and each of these nodes a version higher by one.
void Controller::Impl::confirm(const std::vector<StateChange>& changes, std::size_t first,
                               std::size_t end, std::set<base::Uuid>& touched) {
  for (; first < end; ++first) {
    const auto& change = changes[first];
    const auto tree = topics_.find(change.id.topic);
    if (tree == topics_.end()) continue;  // deleted meanwhile
    auto* const partition = controller::find_partition(tree->second, change.id.partition);
    if (partition == nullptr) continue;
    partition->state = change.state;
    partition->version = change.version + 1;
    forget_remains(change.id, change.state);
    touched.insert(change.id.topic);
  }
}

// Replicas that are being made or deleted

void Controller::Impl::note_opened(model::BrokerId broker, const protocol::ReplicaReport& report) {
  if (report.state == protocol::ReplicaState::opened) unopened_.erase(report.partition);
  const auto found = openings_.find(report.partition.topic);
  if (found == openings_.end()) return;
  auto& opening = *found->second;
  const auto missing = opening.missing.find({report.partition.partition, broker});
  if (missing == opening.missing.end()) return;
  opening.missing.erase(missing);
  if (report.state == protocol::ReplicaState::failed && !opening.failure)
    opening.failure = report.reason;
}

/// A broker that is lost holds nobody up: its replicas come with it.
void Controller::Impl::forget_lost_openings() {
  for (auto& [id, opening] : openings_)
    std::erase_if(opening->missing, [this](const auto& entry) {
      return !members_.is_live(entry.first.second, entry.second);
    });
}

void Controller::Impl::note_deleted(model::BrokerId broker, const std::vector<base::Uuid>& topics) {
  bool changed = false;
  for (const auto& id : topics) {
    const auto deletion = deletions_.find(id);
    if (deletion == deletions_.end()) continue;
    changed = deletion->second.waiting.erase(broker) > 0 || changed;
  }
  if (!changed) return;
  publish({});
  finish_deletions();
}

}  // namespace mq::controller
