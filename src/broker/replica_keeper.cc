#include "broker/replica_keeper.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "broker/error_map.h"
#include "broker/hop.h"
#include "broker/placed.h"
#include "broker/replica_order.h"
#include "broker/worker.h"

namespace mq::broker {

using metadata::PartitionAssignment;
using protocol::WireError;

namespace {

/// Each piece waits for one sync of the file system, with whatever others write there.
constexpr std::size_t kMadeAtOnce = 2048;
constexpr base::Duration kTellDamageIn = std::chrono::milliseconds(100);
constexpr base::Duration kMakeAgain = std::chrono::seconds(10);
constexpr base::Duration kDeleteAgainMin = std::chrono::seconds(1);
constexpr base::Duration kDeleteAgainMax = std::chrono::seconds(60);

asio::awaitable<void> set_addresses(Worker& worker,
                                    std::unordered_map<model::BrokerId, base::Endpoint> addresses) {
  worker.replica_fetchers().set_addresses(std::move(addresses));
  co_return;
}

}  // namespace

ReplicaKeeper::ReplicaKeeper(Core& core, replication::ClusterView& view,
                             replication::ReplicaReporter& reporter)
    : core_(core),
      view_(view),
      reporter_(reporter),
      home_(*core.home),
      changed_(*core.home),
      tasks_(*core.home) {}

std::vector<ReplicaOrder>& ReplicaKeeper::orders_for(Worker& worker, Orders& orders) {
  auto found = std::ranges::find(orders, &worker, [](const auto& one) { return one.first; });
  if (found == orders.end()) found = orders.insert(found, {&worker, {}});
  return found->second;
}

bool ReplicaKeeper::keeps(const PartitionAssignment& assignment) const {
  return std::ranges::find(assignment.replicas, core_.id) != assignment.replicas.end();
}

storage::LogSpec ReplicaKeeper::spec_of(const metadata::TopicInfo& topic,
                                        const PartitionAssignment& assignment) const {
  storage::LogSpec spec;
  spec.id = assignment.id;
  spec.topic_name = topic.name;
  spec.settings = topic.settings;
  spec.worker = &core_.worker_of(assignment.id).runtime();
  return spec;
}

std::vector<storage::LogSpec> ReplicaKeeper::known(const metadata::ClusterImage& image) {
  std::vector<storage::LogSpec> specs;
  for (const auto& [name, topic] : image.topics()) {
    for (const auto& assignment : topic->partitions) {
      if (!keeps(assignment)) continue;
      specs.push_back(spec_of(*topic, assignment));
      known_.push_back(assignment.id);
    }
  }
  return specs;
}

std::vector<base::Uuid> ReplicaKeeper::deleting(const metadata::ClusterImage& image) const {
  std::vector<base::Uuid> topics;
  for (const auto& topic : image.deleting()) {
    if (std::ranges::find(topic.brokers, core_.id) != topic.brokers.end())
      topics.push_back(topic.id);
  }
  return topics;
}

void ReplicaKeeper::start() { tasks_.spawn("replica keeper", run()); }

void ReplicaKeeper::wake() { changed_.notify_all(); }

/// What is found together is told together.
void ReplicaKeeper::look_for_damage() {
  look_for_failures_at_ = std::min(look_for_failures_at_, home_.now() + kTellDamageIn);
  wake();
}

asio::awaitable<void> ReplicaKeeper::damage_told(base::TimePoint deadline) {
  // One that is under way may have passed by where it was found.
  const auto wanted = looks_begun_ + 1;
  look_for_failures_at_ = home_.now();
  wake();
  while (looks_ended_ < wanted && !stopping_ && home_.now() < deadline)
    co_await changed_.wait_until(deadline);
  if (!stopping_) static_cast<void>(co_await reporter_.all_taken(deadline));
}

void ReplicaKeeper::log_ready(const model::PartitionId& id) {
  ready_.push_back(id);
  wake();
}

void ReplicaKeeper::recovery_ended() {
  recovered_ = true;
  find_absent();
  // The image that was applied meanwhile is looked at once more, for what had to wait.
  applied_.reset();
  applied_version_ = 0;
  wake();
}

/// Logs that the start looked for and did not get: a disk that is not there or that failed has
/// them, so they are not made anew.
void ReplicaKeeper::find_absent() {
  for (const auto& id : known_) {
    if (core_.disks->find(id)) continue;
    absent_.insert(id);
    reporter_.failed(id, core_.status(WireError::storage_failed,
                                      fmt::format("{}: its disk is not there or has failed",
                                                  core_.partition_name(id))));
  }
  known_.clear();
}

bool ReplicaKeeper::something_to_do() const {
  const bool image_waits = view_.image() && view_.version() != applied_version_;
  const bool logs_wait = recovered_ && !wanted_.empty() && home_.now() >= make_again_at_;
  return image_waits || !ready_.empty() || logs_wait || next_damaged();
}

asio::awaitable<void> ReplicaKeeper::run() {
  while (!stopping_) {
    if (!something_to_do()) {
      co_await changed_.wait_until(std::min(next_try(), look_for_failures_at_));
      if (home_.now() >= look_for_failures_at_) co_await look_for_failures();
      continue;
    }
    const auto image = view_.image();
    if (image && image->version() != applied_version_) {
      co_await apply(image);
    } else if (!ready_.empty()) {
      looking_ = true;
      auto ready = std::move(ready_);
      ready_.clear();
      co_await look_at(std::move(ready));
      looking_ = false;
      changed_.notify_all();
    } else if (const auto damaged = next_damaged()) {
      co_await replace_damaged(*damaged);
    } else {
      co_await make_some();
    }
  }
}

/// Where the leaders are that partitions here follow.
asio::awaitable<void> ReplicaKeeper::tell_addresses(const metadata::ClusterImage& image) {
  std::unordered_map<model::BrokerId, base::Endpoint> addresses;
  for (const auto& broker : image.brokers()) {
    if (broker.id != core_.id) addresses[broker.id] = broker.advertised;
  }
  if (addresses == addresses_) co_return;
  addresses_ = addresses;
  if (addresses.empty()) co_return;  // nobody is followed
  for (const auto& worker : core_.workers)
    co_await run_on(worker->runtime(), set_addresses(*worker, addresses));
}

asio::awaitable<void> ReplicaKeeper::apply(metadata::ImagePtr image) {
  co_await tell_addresses(*image);
  Orders orders;
  if (applied_) {
    for (const auto& [name, topic] : applied_->topics()) {
      if (!image->find_topic(topic->id)) give_up_topic(*topic, orders);
    }
  }
  for (const auto& [name, topic] : image->topics()) {
    if (applied_ && applied_->find_topic(topic->id) == topic) continue;
    give_orders(*topic, orders);
    want_logs(*topic);
  }
  co_await carry_out(std::move(orders));
  applied_ = image;
  applied_version_ = image->version();
  reporter_.note_image(applied_version_);
  if (recovered_) delete_topics(*image);
  if (on_applied_) on_applied_(*applied_);
  changed_.notify_all();
}

void ReplicaKeeper::give_orders(const metadata::TopicInfo& topic, Orders& orders) {
  for (const auto& assignment : topic.partitions) give_order(topic, assignment, orders);
}

void ReplicaKeeper::give_order(const metadata::TopicInfo& topic,
                               const PartitionAssignment& assignment, Orders& orders) {
  if (!keeps(assignment)) return;
  // A log that nobody has looked at yet is dealt with when its turn comes.
  if (!looked_at_.contains(assignment.id)) return;
  ReplicaOrder order;
  order.id = assignment.id;
  order.name = topic.name;
  order.log = core_.disks->find(assignment.id);
  order.settings = topic.settings;
  if (order.log) give_role(assignment, order);
  if (order.log) {
    const bool leaderless = tells_leaderless(assignment);
    const bool loss = tells_loss(assignment);
    order.look = leaderless || loss;
  }
  orders_for(core_.worker_of(assignment.id), orders).push_back(std::move(order));
}

/// Where nobody leads what there is counts, in case that records are given up for a leader, and to
/// people: once an epoch.
bool ReplicaKeeper::tells_leaderless(const PartitionAssignment& assignment) {
  if (assignment.leader != model::BrokerId() || assignment.replicas.size() == 1) {
    told_leaderless_.erase(assignment.id);
    return false;
  }
  auto& told = told_leaderless_[assignment.id];
  return std::exchange(told, assignment.leader_epoch) != assignment.leader_epoch;
}

/// Where another one leads with a loss, what is here counts as it is before it is cut: the log may
/// have grown since it was reported. Once a loss.
bool ReplicaKeeper::tells_loss(const PartitionAssignment& assignment) {
  if (assignment.loss_epoch == model::LeaderEpoch()) {
    told_loss_.erase(assignment.id);
    return false;
  }
  auto& told = told_loss_[assignment.id];
  const bool known = std::exchange(told, assignment.loss_epoch) == assignment.loss_epoch;
  return !known && assignment.leader != core_.id && !failed_.contains(assignment.id);
}

void ReplicaKeeper::give_role(const PartitionAssignment& assignment, ReplicaOrder& order) {
  if (assignment.leader == model::BrokerId()) return;
  if (assignment.replicas.size() > 1 && !std::exchange(looks_regularly_, true))
    look_for_failures_at_ = home_.now() + kLookForFailures;
  if (assignment.leader != core_.id) {
    if (failed_.contains(assignment.id)) return;  // else it might be taken into the ISR again
    order.follow = replication::Following{assignment.leader, assignment.leader_epoch};
    order.in_sync = in_isr(assignment, core_.id);
    order.lossy = assignment.loss_epoch != model::LeaderEpoch();
    return;
  }
  order.leads_with_loss = leads_with_loss(assignment);
  auto& lead = order.lead.emplace();
  lead.leader_epoch = assignment.leader_epoch;
  if (assignment.replicas.size() == 1) return;
  auto& role = lead.role.emplace();
  role.self = {core_.id, model::BrokerEpoch(core_.broker_epoch)};
  role.replicas = assignment.replicas;
  role.state.leader = assignment.leader;
  role.state.leader_epoch = assignment.leader_epoch;
  role.state.version = assignment.version;
  role.state.isr = assignment.isr;
  role.state.min_isr = assignment.min_isr;
  role.limits = core_.limits.isr;
}

/// Its partitions are served no more; their logs stay until the image wants them deleted.
void ReplicaKeeper::give_up_topic(const metadata::TopicInfo& topic, Orders& orders) const {
  for (const auto& assignment : topic.partitions) {
    if (!keeps(assignment)) continue;
    reporter_.forget(assignment.id);
    ReplicaOrder order;
    order.id = assignment.id;
    orders_for(core_.worker_of(assignment.id), orders).push_back(std::move(order));
  }
}

asio::awaitable<void> ReplicaKeeper::carry_out(Orders orders) {
  for (const auto& [worker, list] : orders) {
    std::vector<ReplicaOutcome> outcomes;
    co_await run_on(worker->runtime(), carry_out_orders(*worker, list, outcomes));
    for (const auto& outcome : outcomes) note(outcome);
  }
}

/// When something is to be tried again that has failed.
base::TimePoint ReplicaKeeper::next_try() const {
  auto next = base::TimePoint::max();
  if (recovered_ && !wanted_.empty()) next = make_again_at_;
  for (const auto& [id, damaged] : damaged_) {
    if (damaged.again_at > home_.now()) next = std::min(next, damaged.again_at);
  }
  return next;
}

void ReplicaKeeper::note(const ReplicaOutcome& outcome) {
  if (outcome.damaged) {
    const auto keep = outcome.foreign ? storage::Keep::nothing : storage::Keep::sound_segments;
    // Of a foreign one no leader has taken down anything.
    const auto heard_of_in = outcome.foreign ? model::LeaderEpoch() : outcome.heard_of_in;
    damaged_.try_emplace(outcome.id, Damaged{.keep = keep, .heard_of_in = heard_of_in});
  }
  if (outcome.failure) {
    const bool new_failure = outcome.useless && failed_.insert(outcome.id).second;
    if (!outcome.looked && !new_failure) return;
    const auto reason = outcome.reason.empty() ? outcome.failure.message() : outcome.reason;
    reporter_.failed(
        outcome.id,
        core_.status(to_wire(outcome.failure),
                     fmt::format("{}-{}: {}", outcome.name, outcome.id.partition, reason)),
        outcome.damaged ? outcome.heard_of_in : model::LeaderEpoch());
    return;
  }
  if (outcome.ahead) {
    base::log_warning("partition",
                      "{}-{}: its log has seen epoch {}, later than the metadata store knows (was "
                      "it restored from a copy?); a higher one is asked for",
                      outcome.name, outcome.id.partition, outcome.leader_epoch);
  }
  if (outcome.leads) reporter_.leads(outcome.id, outcome.leader_epoch);
  if (!outcome.looked && !outcome.behind && !outcome.ahead) return;
  // Whatever was told of it before: it may lead or follow now, and its damage is met anew then.
  failed_.erase(outcome.id);
  damaged_.erase(outcome.id);
  // As long as its disk exists is since before the first registration.
  const auto intact_since = std::max<std::int64_t>(core_.disks->intact_since(outcome.id), 0);
  reporter_.opened(outcome.id, outcome.leader_epoch, outcome.log_end_offset, outcome.high_watermark,
                   model::BrokerEpoch(intact_since));
  if (!outcome.places.empty()) tell_damage(outcome);
  if (outcome.behind && !outcome.ahead)
    reporter_.ask(outcome.id, protocol::ReplicaState::needs_epoch);
}

/// Says what the logs are like, and leads those that the image wants led already.
asio::awaitable<void> ReplicaKeeper::look_at(std::vector<model::PartitionId> ids) {
  const auto image = view_.image();
  Orders orders;
  for (const auto& id : ids) {
    const auto [topic, assignment] = placed(image, id);
    if (!assignment || !keeps(*assignment)) continue;
    looked_at_.insert(id);
    wanted_.erase(id);
    give_order(*topic, *assignment, orders);
    auto& order = orders_for(core_.worker_of(id), orders).back();
    order.look = order.log != nullptr;
  }
  co_await carry_out(std::move(orders));
}

void ReplicaKeeper::want_logs(const metadata::TopicInfo& topic) {
  if (!recovered_) return;
  for (const auto& assignment : topic.partitions) {
    if (keeps(assignment) && !core_.disks->find(assignment.id) &&
        !absent_.contains(assignment.id)) {
      wanted_.insert(assignment.id);
      make_again_at_ = {};
    }
  }
}

/// Makes some of the logs that are not there; an image that came meanwhile goes first. They are
/// wanted until they are made: failing() names them while it is tried again.
asio::awaitable<void> ReplicaKeeper::make_some() {
  std::vector<storage::LogSpec> specs;
  std::vector<model::PartitionId> ids;
  const auto image = applied_;
  for (auto next = wanted_.begin(); next != wanted_.end() && specs.size() < kMadeAtOnce;) {
    const auto [topic, assignment] = placed(image, *next);
    if (!assignment || !keeps(*assignment)) {
      next = wanted_.erase(next);
      continue;
    }
    specs.push_back(spec_of(*topic, *assignment));
    ids.push_back(*next++);
  }
  if (specs.empty()) co_return;
  const auto made = co_await core_.disks->create_logs(std::move(specs));
  make_failure_ = made ? base::Error() : made.error();
  if (made) {
    for (const auto& id : ids) wanted_.erase(id);
    ready_.insert(ready_.end(), ids.begin(), ids.end());
    co_return;
  }
  if (stopping_) co_return;
  make_again_at_ = home_.now() + kMakeAgain;
  base::log_error("partition", "{} logs cannot be made: {}", ids.size(), made.error().message());
  for (const auto& id : ids) {
    const auto topic = image->find_topic(id.topic);
    auto reason = core_.status(to_wire(made.error()),
                               fmt::format("the logs of topic \"{}\" could not be opened: {}",
                                           topic->name, made.error().message()));
    reporter_.failed(id, std::move(reason));
  }
}

void ReplicaKeeper::delete_topics(const metadata::ClusterImage& image) {
  const auto topics = deleting(image);
  for (auto it = deletions_.begin(); it != deletions_.end();) {
    const auto& all = image.deleting();
    const bool known = std::ranges::find(all, *it, &metadata::DeletingTopic::id) != all.end();
    if (!known) reporter_.forget_deleted(*it);
    it = known ? std::next(it) : deletions_.erase(it);
  }
  for (const auto& topic : topics) {
    if (!deletions_.insert(topic).second) continue;
    std::erase_if(looked_at_, [&](const auto& id) { return id.topic == topic; });
    std::erase_if(wanted_, [&](const auto& id) { return id.topic == topic; });
    std::erase_if(failed_, [&](const auto& id) { return id.topic == topic; });
    std::erase_if(damaged_, [&](const auto& one) { return one.first.topic == topic; });
    std::erase_if(spoilt_, [&](const auto& one) { return one.first.topic == topic; });
    tasks_.spawn("deletion of a topic", delete_topic(topic));
  }
}

/// Tried again until it succeeds; what is on a disk that cannot be reached waits for a later start.
asio::awaitable<void> ReplicaKeeper::delete_topic(base::Uuid topic) {
  base::Duration wait = kDeleteAgainMin;
  while (!stopping_) {
    const auto deleted = co_await core_.disks->delete_topic(topic);
    if (deleted) {
      reporter_.deleted(topic);
      co_return;
    }
    if (stopping_) co_return;
    base::log_warning("partition", "topic {} is deleted, its logs not yet: {}", topic.hex(),
                      deleted.error().message());
    if (deleted.error() == make_error_code(storage::StorageErrc::disk_failed)) co_return;
    const auto until = home_.now() + wait;
    wait = std::min(2 * wait, kDeleteAgainMax);
    while (!stopping_ && home_.now() < until) co_await changed_.wait_until(until);
  }
}

asio::awaitable<void> ReplicaKeeper::all_looked_at() {
  while (!stopping_ && (!ready_.empty() || looking_)) co_await changed_.wait();
}

asio::awaitable<void> ReplicaKeeper::applied(std::uint64_t version) {
  while (!stopping_ && applied_version_ < version) co_await changed_.wait();
}

void ReplicaKeeper::give_up() {
  stopping_ = true;
  changed_.notify_all();
}

asio::awaitable<void> ReplicaKeeper::stop() {
  give_up();
  co_await tasks_.wait();
}

asio::awaitable<void> ReplicaKeeper::drop_all() {
  for (const auto& worker : core_.workers)
    co_await run_on(worker->runtime(), drop_partitions(*worker));
}

}  // namespace mq::broker
