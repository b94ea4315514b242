// At every write of the metadata store the controller dies, or the store fails or loses an answer:
// afterwards every topic is there or not, never half, and what was answered is true (MET-2).
#include <gtest/gtest-spi.h>

#include "base/mutants.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::StoreFault;
using protocol::TopicResult;

/// What the callers have been told about one name.
struct Told {
  bool may_exist = false;
  bool may_be_missing = true;
  std::set<std::int32_t> partitions;  ///< how many there may be; empty: not said
};

/// Two brokers in a world of its own, for one failure.
class FaultyCluster : public mq::testing::Cluster {
 public:
  void TestBody() override {}

  void scenario() {
    told_of_create("orders", try_create("orders", 3), 3);
    told_of_create("billing", try_create("billing", 1), 1);
    told_of_add("orders", try_add("orders", 5), 3, 5);
    told_of_delete("orders", try_remove("orders"));
    told_of_create("orders", try_create("orders", 2), 2);
    told_of_delete("billing", try_remove("billing"));
  }
  /// The `at`-th write that is no heartbeat behaves so, and `reads` reads behind it fail.
  void fail_at(int at, StoreFault fault, int reads = 0) {
    failing_reads_ = reads;
    state_->fault = [this, at, fault](bool write) {
      if (write) {
        ++writes_;
        if (writes_ == at) hit_ = true;
        return writes_ == at ? fault : StoreFault::none;
      }
      return hit_ && failing_reads_-- > 0 ? StoreFault::unavailable : StoreFault::none;
    };
  }
  void expect_as_told(const std::string& where) {
    state_->fault = nullptr;
    ASSERT_TRUE(wait_until([this] { return controlling() != nullptr && is_consistent(); }))
        << where << ": " << inconsistency_;
    for (const auto& [name, told] : told_) {
      const auto found = topic(name);
      EXPECT_TRUE(found ? told.may_exist : told.may_be_missing)
          << name << (found ? " exists " : " is missing ") << where;
      if (found && !told.partitions.empty()) {
        EXPECT_TRUE(told.partitions.contains(static_cast<std::int32_t>(found->partitions.size())))
            << name << " has " << found->partitions.size() << " partitions " << where;
      }
    }
  }
  [[nodiscard]] int writes() const noexcept { return writes_; }
  [[nodiscard]] bool hit() const noexcept { return hit_; }
  void kill_controller_at(int at) {
    state_->on_applied = [this, at] {
      if (++applied_ != at) return;
      hit_ = true;
      auto* const dies = controlling();
      if (dies == nullptr) return;
      killed_ = dies->id;
      dies->kill();
    };
  }
  void restart_killed() {
    state_->on_applied = nullptr;
    if (killed_ == 0) return;
    EXPECT_EQ(add(killed_).start(), Error());
  }
  [[nodiscard]] int applied() const noexcept { return applied_; }
  void count_applied() {
    applied_ = 0;
    state_->on_applied = [this] { ++applied_; };
  }

 private:
  // A process may have died: nobody answers, and nobody is told anything.
  template <class Call>
  std::optional<TopicResult> ask(Call call) {
    if (!wait_until([this] { return controlling() != nullptr; })) return std::nullopt;
    auto outcome =
        mq::testing::start_for_outcome(simulator_.executor(), call(wait_for_controller()), [] {});
    wait_until([&] { return outcome->value.has_value(); }, std::chrono::seconds(40));
    return outcome->value;
  }
  std::optional<TopicResult> try_create(const std::string& name, std::int32_t partitions) {
    protocol::NewTopic topic;
    topic.name = name;
    topic.partitions = partitions;
    return ask([&](Controller& controller) {
      return controller.create_topic(topic, false, in(std::chrono::seconds(20)));
    });
  }
  std::optional<TopicResult> try_remove(const std::string& name) {
    return ask([&](Controller& controller) {
      return controller.delete_topic(name, in(std::chrono::seconds(20)));
    });
  }
  std::optional<TopicResult> try_add(const std::string& name, std::int32_t total) {
    return ask([&](Controller& controller) {
      return controller.add_partitions(name, total, in(std::chrono::seconds(20)));
    });
  }
  static bool unsure(const std::optional<TopicResult>& result) {
    return !result || result->status.advice.maybe_applied;
  }
  void told_of_create(const std::string& name, const std::optional<TopicResult>& result,
                      std::int32_t partitions) {
    auto& told = told_[name];
    if (result && result->status.ok())
      told = {true, false, {partitions}};
    else if (unsure(result)) {
      told.may_exist = true;
      told.partitions.insert(partitions);
    }
  }
  void told_of_add(const std::string& name, const std::optional<TopicResult>& result,
                   std::int32_t before, std::int32_t after) {
    auto& told = told_[name];
    if (result && result->status.ok())
      told.partitions = {after};
    else if (unsure(result))
      told.partitions = {before, after};
  }
  void told_of_delete(const std::string& name, const std::optional<TopicResult>& result) {
    auto& told = told_[name];
    if (result && result->status.ok())
      told = {false, true, {}};
    else if (unsure(result))
      told.may_be_missing = true;
  }

  /// Image, store and logs say the same, and nothing is half done.
  bool is_consistent() {
    const auto image = controlling()->candidate.controller()->image();
    std::vector<std::string> topics;
    std::vector<std::string> states;
    std::set<model::PartitionId> partitions;
    for (const auto& [name, topic] : image->topics()) {
      if (topic->hidden_from >= 0) return unlike("hidden " + name);
      topics.push_back(layout::topic(name));
      states.push_back(layout::topic_state(topic->id));
      for (const auto& partition : topic->partitions) {
        states.push_back(layout::partition_state(partition.id));
        partitions.insert(partition.id);
        if (!state_->nodes.contains(states.back())) return unlike("no " + states.back());
        if (state_->nodes.at(states.back()).version != partition.version.value())
          return unlike("version of " + states.back());
        if (state(partition.id).leader_epoch != partition.leader_epoch)
          return unlike("epoch of " + states.back());
      }
    }
    std::sort(states.begin(), states.end());
    if (paths("/topics/") != topics) return unlike("topics");
    if (paths("/state/") != states) return unlike("states");
    if (!paths("/deleting/").empty()) return unlike("deleting");
    std::set<model::PartitionId> logs;
    for (const auto& [id, disk] : logs_) {
      for (const auto& [partition, last] : disk.last_epoch) logs.insert(partition);
    }
    if (logs != partitions) return unlike("logs");
    return settled() || unlike("leaders");
  }
  bool unlike(std::string what) {
    inconsistency_ = std::move(what);
    return false;
  }

  std::map<std::string, Told> told_;
  std::string inconsistency_;
  int writes_ = 0;
  int applied_ = 0;
  int failing_reads_ = 0;
  int killed_ = 0;
  bool hit_ = false;
};

/// Heartbeats are left out, so that the writes have the same numbers every time.
std::unique_ptr<FaultyCluster> faulty_cluster() {
  auto cluster = std::make_unique<FaultyCluster>();
  cluster->options_.session_timeout = {};
  cluster->start(2);
  cluster->wait_until_settled();
  return cluster;
}

int writes_of_scenario() {
  const auto cluster = faulty_cluster();
  cluster->fail_at(-1, StoreFault::none);
  cluster->scenario();
  cluster->expect_as_told("without failures");
  return cluster->writes();
}

TEST(ClusterFaults, AWriteThatFailsOrLosesItsAnswerLeavesWhatWasAnswered) {
  const int writes = writes_of_scenario();
  ASSERT_GT(writes, 8);
  for (const auto fault :
       {StoreFault::unavailable, StoreFault::lost_request, StoreFault::lost_answer}) {
    for (int at = 1; at <= writes; ++at) {
      const auto cluster = faulty_cluster();
      cluster->fail_at(at, fault);
      cluster->scenario();
      cluster->expect_as_told(
          fmt::format("after fault {} of write {}", static_cast<int>(fault), at));
      ASSERT_TRUE(cluster->hit());
    }
  }
}

TEST(ClusterFaults, ALostAnswerThatCannotBeResolvedLeavesWhatWasAnswered) {
  const int writes = writes_of_scenario();
  for (const auto fault : {StoreFault::lost_request, StoreFault::lost_answer}) {
    for (int at = 1; at <= writes; ++at) {
      const auto cluster = faulty_cluster();
      cluster->fail_at(at, fault, 8);
      cluster->scenario();
      cluster->expect_as_told(
          fmt::format("after fault {} of write {} and its reads", static_cast<int>(fault), at));
    }
  }
}

// CTL-3: the next controller goes on from what the store has.
TEST(ClusterFaults, AControllerThatDiesAfterAnyWriteLeavesWhatWasAnswered) {
  int writes = 0;
  {
    const auto cluster = faulty_cluster();
    cluster->count_applied();
    cluster->scenario();
    writes = cluster->applied();
    cluster->state_->on_applied = nullptr;
  }
  ASSERT_GT(writes, 8);
  for (int at = 1; at <= writes; ++at) {
    const auto cluster = faulty_cluster();
    cluster->kill_controller_at(at);
    cluster->scenario();
    cluster->restart_killed();
    cluster->expect_as_told(fmt::format("after a death behind write {}", at));
  }
}

/// Whether what was answered was wrong once, with a mistake in the code.
bool is_caught(const std::string& mutant, StoreFault fault) {
  const int writes = writes_of_scenario();
  for (int at = 1; at <= writes; ++at) {
    const auto cluster = faulty_cluster();
    const base::EnabledMutant enabled(mutant);
    cluster->fail_at(at, fault);
    cluster->scenario();
    ::testing::TestPartResultArray failures;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      cluster->expect_as_told("with a mistake");
    }
    if (failures.size() > 0) return true;
  }
  return false;
}

TEST(ClusterFaults, AnUnknownOutcomeTakenForFailureIsCaught) {
  EXPECT_TRUE(is_caught("unknown_outcome_counts_as_failed", StoreFault::lost_answer));
}

TEST(ClusterFaults, AnUnknownOutcomeTakenForSuccessIsCaught) {
  EXPECT_TRUE(is_caught("unknown_outcome_counts_as_applied", StoreFault::lost_request));
}

}  // namespace
}  // namespace mq::controller
