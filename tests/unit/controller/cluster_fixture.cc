#include "unit/controller/cluster_fixture.h"

#include "metadata/node_values.h"
#include "metadata/znode_layout.h"

namespace mq::testing {
namespace {

namespace layout = metadata::layout;

constexpr std::chrono::seconds kPull{2};
constexpr std::chrono::milliseconds kPause{100};

controller::MemberConfig member_config(Cluster& cluster, int id) {
  controller::MemberConfig config;
  config.broker = model::BrokerId(id);
  config.incarnation =
      base::Uuid::from_random(cluster.runtime_.random(), cluster.runtime_.random());
  config.disks = {base::Uuid::from_random(500, static_cast<std::uint64_t>(id))};
  config.advertised = {"broker-" + std::to_string(id), 9500};
  return config;
}

controller::ControllerConfig cluster_config(Cluster& cluster, int id) {
  controller::ControllerConfig config;
  config.broker = model::BrokerId(id);
  config.cluster_id = base::Uuid::from_random(77, 77);
  config.advertised = {"broker-" + std::to_string(id), 9500};
  config.partitions_max = cluster.partitions_max_;
  config.default_replicas = 1;
  config.replicas_max = 3;
  config.topic_defaults = cluster.topic_defaults_;
  if (cluster.looks_for_the_dead_) config.network = &cluster.network_;
  return config;
}

/// An open connection on which nothing happens.
class IdleStream final : public base::Stream {
 public:
  asio::awaitable<base::Result<std::size_t>> read_some(
      std::span<const asio::mutable_buffer>) override {
    co_return make_error_code(base::BaseErrc::closed);
  }
  asio::awaitable<base::Result<void>> write_all(std::span<const asio::const_buffer>) override {
    co_return base::Result<void>();
  }
  void close() override {}
  [[nodiscard]] const std::string& peer() const override { return peer_; }

 private:
  std::string peer_ = "somebody";
};

}  // namespace

asio::awaitable<base::Result<std::unique_ptr<base::Stream>>> FakeNetwork::connect(
    base::Endpoint to, base::TimePoint deadline) {
  ++connects;
  if (silent.contains(to.host)) {
    co_await runtime_.sleep_until(deadline);
    co_return make_error_code(base::BaseErrc::timed_out);
  }
  co_await runtime_.sleep_for(std::chrono::milliseconds(1));
  if (refusing.contains(to.host)) co_return make_error_code(base::BaseErrc::connection_refused);
  std::unique_ptr<base::Stream> stream = std::make_unique<IdleStream>();
  co_return std::move(stream);
}

FakeBroker::FakeBroker(Cluster& cluster, int broker_id, FakeLogs& logs)
    : id(broker_id),
      store(metadata::open_memory_store(cluster.state_, cluster.runtime_, cluster.options_)),
      member(member_config(cluster, id), *store, cluster.runtime_),
      candidate(cluster_config(cluster, id), *store, member, cluster.runtime_),
      cluster_(cluster),
      logs_(logs),
      tasks_(cluster.runtime_) {}

base::Error FakeBroker::start() {
  const auto started = cluster_.run(member.start());
  if (!started) {
    stop();
    return started.error();
  }
  candidate.start();
  tasks_.spawn("the broker", run());
  return {};
}

void FakeBroker::stop() {
  if (std::exchange(stopped_, true)) return;
  cluster_.run(candidate.stop());
  cluster_.run(tasks_.wait());
  cluster_.run(member.stop());
  cluster_.run(store->close());
}

void FakeBroker::kill() {
  dead_ = true;
  led_.clear();
  const auto session = store->session();
  metadata::cut_off(*cluster_.state_, session);
  cluster_.simulator_.start_timer(cluster_.in(Cluster::kSessionTime), [this, session] {
    metadata::expire_session(*cluster_.state_, session);
  });
}

void FakeBroker::cut_off() {
  cut_ = true;
  metadata::cut_off(*cluster_.state_, store->session());
}

void FakeBroker::reconnect() {
  cut_ = false;
  metadata::reconnect(*cluster_.state_, store->session());
}

asio::awaitable<void> FakeBroker::run() {
  while (!dead_ && !stopped_) {
    bool done = false;
    if (pulling && !cut_) done = co_await pull();
    if (done && reporting) done = co_await report();
    if (!done) co_await cluster_.runtime_.sleep_for(kPause);
  }
}

asio::awaitable<bool> FakeBroker::pull() {
  if (!candidate.leader() || !member.registered()) co_return false;
  auto* const leader = cluster_.controller(candidate.leader()->broker, id);
  if (leader == nullptr) co_return false;
  const auto epoch = member.epoch();
  protocol::PullImageRequest request;
  request.broker = id;
  request.broker_epoch = epoch.value();
  request.have_version = version;
  request.wall_clock_ms = cluster_.runtime_.wall_clock_ms() + clock_ahead_ms;
  const auto answer = co_await leader->pull(std::move(request), cluster_.runtime_.now() + kPull);
  if (dead_ || cut_ || !answer.envelope.status.ok()) co_return false;
  cluster_time = answer.cluster_time;
  const bool again = answer.version >> 32 != version >> 32 || epoch != reported_under_;
  if (again) {
    for (const auto& [partition, last] : logs_.last_epoch) add_report(partition);
    reported_under_ = epoch;
  }
  if (answer.version != version) take(answer);
  co_return true;
}

void FakeBroker::take(const protocol::PullImageResponse& answer) {
  std::map<base::Uuid, protocol::ImageTopic> kept;
  for (const auto& node : answer.damage) {
    for (const auto& [id, topic] : topics_)
      if (topic.name == node.topic) kept.emplace(id, topic);
  }
  if (answer.base_version == 0) topics_.clear();
  for (const auto& removed : answer.removed) topics_.erase(removed);
  topics_.merge(kept);
  for (const auto& topic : answer.topics) topics_[topic.id] = topic;
  version = answer.version;
  std::erase_if(led_, [&](const auto& partition) { return !topics_.contains(partition.topic); });
  for (const auto& [topic_id, topic] : topics_) take_topic(topic);
  for (const auto& topic : answer.deleting) {
    if (std::ranges::count(topic.brokers, id) == 0 || !logs_.deletes) continue;
    std::erase_if(logs_.last_epoch, [&](const auto& log) { return log.first.topic == topic.id; });
    deleted_.insert(topic.id);
  }
}

void FakeBroker::take_topic(const protocol::ImageTopic& topic) {
  for (const auto& one : topic.partitions) {
    const model::PartitionId partition{topic.id, one.partition};
    if (one.leader != id) led_.erase(partition);
    if (std::ranges::count(one.replicas, id) == 0) continue;
    if (!logs_.last_epoch.contains(partition)) {
      if (!logs_.refuses) logs_.last_epoch[partition] = model::LeaderEpoch();
      add_report(partition);
    }
    if (one.leader < 0 && one.replicas.size() > 1 &&
        std::exchange(told_leaderless_[partition], one.leader_epoch) != one.leader_epoch)
      add_report(partition);
    const bool with_loss = one.leader == id && one.loss_epoch == one.leader_epoch;
    if (with_loss && one.loss_start < 0) add_report(partition);
    const auto log = logs_.last_epoch.find(partition);
    if (one.leader != id || log == logs_.last_epoch.end()) continue;
    if (log->second < model::LeaderEpoch(one.leader_epoch)) {
      log->second = model::LeaderEpoch(one.leader_epoch);
      led_.insert(partition);
    } else if (!led_.contains(partition)) {
      add_report(partition);
      if (log->second == model::LeaderEpoch(one.leader_epoch))
        reports_[partition].state = protocol::ReplicaState::needs_epoch;
    }
  }
}

void FakeBroker::add_report(const model::PartitionId& partition) {
  auto& report = reports_[partition];
  report = {};
  report.partition = partition;
  const auto log = logs_.last_epoch.find(partition);
  if (log == logs_.last_epoch.end()) {
    report.state = protocol::ReplicaState::failed;
    report.reason = logs_.refuses.value_or(protocol::Status());
    return;
  }
  report.last_leader_epoch = log->second;
  const auto end = logs_.end.find(partition);
  report.log_end_offset = end == logs_.end.end() ? model::Offset(0) : end->second;
  report.intact_since = logs_.intact_since;
}

asio::awaitable<bool> FakeBroker::report() {
  if (reports_.empty() && deleted_.empty()) co_return true;
  auto* const leader =
      candidate.leader() ? cluster_.controller(candidate.leader()->broker, id) : nullptr;
  if (leader == nullptr) co_return false;
  protocol::ReportReplicasRequest request;
  request.broker = id;
  request.broker_epoch = reported_under_.value();
  const auto reports = std::exchange(reports_, {});
  const auto deleted = std::exchange(deleted_, {});
  for (const auto& [partition, one] : reports) request.replicas.push_back(one);
  request.deleted.assign(deleted.begin(), deleted.end());
  const auto answer = co_await leader->report(std::move(request), cluster_.runtime_.now() + kPull);
  if (answer.envelope.status.ok()) co_return true;
  for (const auto& [partition, one] : reports) reports_.emplace(partition, one);
  deleted_.insert(deleted.begin(), deleted.end());
  co_return false;
}

// The cluster

Cluster::~Cluster() {
  state_->fault = nullptr;
  state_->on_applied = nullptr;
  for (auto& broker : brokers_) broker->stop();
}

FakeBroker& Cluster::add(int id) {
  return *brokers_.emplace_back(std::make_unique<FakeBroker>(*this, id, logs_[id]));
}

void Cluster::start(int count) {
  for (int id = 1; id <= count; ++id) ASSERT_EQ(add(id).start(), base::Error());
  ASSERT_TRUE(wait_until([&] {
    if (controlling() == nullptr) return false;
    const auto image = controlling()->candidate.controller()->image();
    return std::ranges::count_if(image->brokers(), &metadata::BrokerInfo::alive) == count &&
           std::ranges::all_of(brokers_, [&](const auto& one) {
             return !one->reachable() || one->version == image->version();
           });
  }));
}

FakeBroker& Cluster::broker(int id) {
  for (auto broker = brokers_.rbegin(); broker != brokers_.rend(); ++broker) {
    if ((*broker)->id == id) return **broker;
  }
  throw std::runtime_error("no such broker");
}

controller::Controller* Cluster::controller(model::BrokerId id, int asking) {
  for (const auto& broker : brokers_) {
    if (broker->id != asking && !broker->hears_others) continue;
    if (broker->id == id.value() && broker->reachable() && broker->candidate.controller())
      return broker->candidate.controller();
  }
  return nullptr;
}

FakeBroker* Cluster::controlling() {
  for (const auto& broker : brokers_) {
    if (broker->reachable() && broker->candidate.controller()) return broker.get();
  }
  return nullptr;
}

controller::Controller& Cluster::wait_for_controller() {
  if (!wait_until([this] { return controlling() != nullptr; }))
    throw std::runtime_error("nobody is elected");
  return *controlling()->candidate.controller();
}

protocol::TopicResult Cluster::create(const std::string& name, std::int32_t partitions,
                                      base::Duration patience) {
  protocol::NewTopic topic;
  topic.name = name;
  topic.partitions = partitions;
  return run(wait_for_controller().create_topic(std::move(topic), false, in(patience)));
}

protocol::TopicResult Cluster::create_replicated(const std::string& name, std::int32_t partitions,
                                                 std::int32_t replicas, std::int32_t min_isr) {
  protocol::NewTopic topic;
  topic.name = name;
  topic.partitions = partitions;
  topic.replicas = replicas;
  topic.min_isr = min_isr;
  return run(
      wait_for_controller().create_topic(std::move(topic), false, in(std::chrono::seconds(100))));
}

protocol::TopicResult Cluster::remove(const std::string& name, base::Duration patience) {
  return run(wait_for_controller().delete_topic(name, in(patience)));
}

metadata::TopicPtr Cluster::topic(const std::string& name) {
  return wait_for_controller().image()->find_topic(name);
}

std::vector<std::string> Cluster::paths(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const auto& [path, node] : state_->nodes) {
    if (path.starts_with(prefix)) found.push_back(path);
  }
  return found;
}

metadata::PartitionStateValue Cluster::state(const model::PartitionId& partition) const {
  const auto& node = state_->nodes.at(layout::partition_state(partition));
  const auto value = metadata::decode_partition_state(node.value);
  if (!value) throw std::runtime_error("a state node does not parse");
  return *value;
}

bool Cluster::settled() {
  if (controlling() == nullptr) return false;
  const auto image = controlling()->candidate.controller()->image();
  for (const auto& [name, topic] : image->topics()) {
    for (const auto& partition : topic->partitions) {
      const auto stored = state(partition.id);
      if (stored.leader != partition.leader || stored.leader_epoch != partition.leader_epoch)
        return false;
      for (const auto& broker : brokers_) {
        if (!broker->reachable()) continue;
        const bool leads = partition.leader.value() == broker->id;
        const bool only =
            partition.replicas.size() == 1 && partition.replicas.front().value() == broker->id;
        if (only && !leads) return false;
        if (leads != broker->leads(partition.id)) return false;
        if (broker->version != image->version()) return false;
      }
    }
  }
  return true;
}

void Cluster::wait_until_settled() {
  if (!wait_until([this] { return settled(); })) FAIL() << "the cluster does not settle";
}

}  // namespace mq::testing
