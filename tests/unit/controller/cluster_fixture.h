#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "controller/candidate.h"
#include "metadata/memory_store.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::testing {

/// The disk of a broker that keeps only the newest leader epoch of each log. It survives processes.
struct FakeLogs {
  std::map<model::PartitionId, model::LeaderEpoch> last_epoch;
  std::map<model::PartitionId, model::Offset> end;  ///< 0 where nothing is said
  std::optional<protocol::Status> refuses;          ///< why new logs cannot be made
  model::BrokerEpoch intact_since{0};               ///< as all of them are reported
  bool deletes = true;                              ///< false: files of deleted topics stay for now
};

/// Tells of each host whether a process listens there; whoever connects gets nothing more.
class FakeNetwork final : public base::Network {
 public:
  explicit FakeNetwork(base::Runtime& runtime) : runtime_(runtime) {}
  asio::awaitable<base::Result<std::unique_ptr<base::Stream>>> connect(
      base::Endpoint to, base::TimePoint deadline) override;
  base::Result<std::unique_ptr<base::Acceptor>> listen(const base::Endpoint&) override {
    return make_error_code(base::BaseErrc::not_permitted);
  }

  std::set<std::string> refusing;  ///< nobody listens there, or a firewall says so
  std::set<std::string> silent;    ///< nothing comes back
  int connects = 0;

 private:
  base::Runtime& runtime_;
};

class Cluster;

/// One broker process on the shared store: member, candidate, and what pulls images and reports
/// replicas to whoever is the controller, in this process or in another.
class FakeBroker {
 public:
  FakeBroker(Cluster& cluster, int id, FakeLogs& logs);

  /// Member::start() and all that follows. An error: it did not come up.
  base::Error start();
  /// Clean: leaves the office and the cluster.
  void stop();
  /// As a kill: nothing of it happens any more; its session ends later.
  void kill();
  /// It runs, and cannot reach the store, nor be reached.
  void cut_off();
  void reconnect();

  [[nodiscard]] bool leads(const model::PartitionId& partition) const {
    return led_.contains(partition);
  }
  [[nodiscard]] bool reachable() const noexcept { return !dead_ && !cut_ && !stopped_; }

  const int id;
  std::unique_ptr<metadata::MetadataStore> store;
  controller::Member member;
  controller::Candidate candidate;
  bool pulling = true;                 ///< false: it hangs, and neither pulls nor reports
  bool reporting = true;               ///< false: it pulls only
  bool hears_others = true;            ///< false: as a controller it gets no request of theirs
  std::int64_t clock_ahead_ms = 0;     ///< of its wall clock
  protocol::ClusterTime cluster_time;  ///< what the last pull said
  std::uint64_t version = 0;

 private:
  asio::awaitable<void> run();
  asio::awaitable<bool> pull();
  asio::awaitable<bool> report();
  void take(const protocol::PullImageResponse& answer);
  void take_topic(const protocol::ImageTopic& topic);
  void add_report(const model::PartitionId& partition);

  Cluster& cluster_;
  FakeLogs& logs_;
  std::map<base::Uuid, protocol::ImageTopic> topics_;
  std::set<model::PartitionId> led_;
  std::map<model::PartitionId, protocol::ReplicaReport> reports_;
  std::set<base::Uuid> deleted_;
  std::map<model::PartitionId, std::int32_t> told_leaderless_;
  model::BrokerEpoch reported_under_;
  bool dead_ = false;
  bool cut_ = false;
  bool stopped_ = false;
  base::TaskGroup tasks_;
};

/// Brokers over one store in one simulated world.
class Cluster : public ::testing::Test {
 public:
  static constexpr std::chrono::seconds kSessionTime{6};

  explicit Cluster(std::uint64_t seed = 5) : simulator_(seed) {}
  ~Cluster() override;

  FakeBroker& add(int id);
  /// Several, started, with a controller that knows them all.
  void start(int brokers);
  FakeBroker& broker(int id);
  /// Of the process that is elected and can be reached; null while there is none.
  /// What `asking` reaches of it.
  controller::Controller* controller(model::BrokerId id, int asking);
  FakeBroker* controlling();
  controller::Controller& wait_for_controller();

  protocol::TopicResult create(const std::string& name, std::int32_t partitions,
                               base::Duration patience = std::chrono::seconds(100));
  protocol::TopicResult create_replicated(const std::string& name, std::int32_t partitions,
                                          std::int32_t replicas, std::int32_t min_isr = -1);
  protocol::TopicResult remove(const std::string& name,
                               base::Duration patience = std::chrono::seconds(100));
  metadata::TopicPtr topic(const std::string& name);
  std::vector<std::string> paths(const std::string& prefix) const;
  metadata::PartitionStateValue state(const model::PartitionId& partition) const;
  /// Every partition whose broker can be reached is led by it, in the epoch that the store has; one
  /// with several replicas by any of those that can be reached.
  [[nodiscard]] bool settled();
  void wait_until_settled();
  bool wait_until(const std::function<bool()>& condition,
                  base::Duration limit = std::chrono::seconds(60)) {
    return simulator_.run_until(condition, limit);
  }
  template <class T>
  T run(asio::awaitable<T> task) {
    return mq::testing::run(simulator_, std::move(task));
  }
  base::TimePoint in(base::Duration span) { return runtime_.now() + span; }

  Simulator simulator_;
  SimRuntime runtime_{simulator_};
  std::shared_ptr<metadata::MemoryStoreState> state_ =
      std::make_shared<metadata::MemoryStoreState>();
  metadata::MemoryStoreOptions options_{.latency_max = std::chrono::milliseconds(2),
                                        .single_process = false,
                                        .session_timeout = kSessionTime};
  std::size_t partitions_max_ = 100'000;
  FakeNetwork network_{runtime_};
  model::TopicSettings topic_defaults_;
  bool looks_for_the_dead_ = false;  ///< at the addresses of network_
  std::map<int, FakeLogs> logs_;
  std::vector<std::unique_ptr<FakeBroker>> brokers_;
};

}  // namespace mq::testing
