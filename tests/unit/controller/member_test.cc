// A broker's registration, its lease, and what becomes of both when its session is lost.
#include "controller/member.h"

#include "controller/error.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::StoreFault;

/// A member alone, with a session of its own.
struct Process {
  Process(base::Runtime& runtime, std::shared_ptr<metadata::MemoryStoreState> state,
          const metadata::MemoryStoreOptions& options, MemberConfig config)
      : store(metadata::open_memory_store(std::move(state), runtime, options)),
        member(std::move(config), *store, runtime) {}
  std::unique_ptr<metadata::MetadataStore> store;
  Member member;
};

class MemberTest : public ::testing::Test {
 protected:
  ~MemberTest() override {
    state_->fault = nullptr;
    for (auto& process : processes_) run(process->member.stop());
  }
  Process& process(MemberConfig config) {
    return *processes_.emplace_back(
        std::make_unique<Process>(runtime_, state_, options_, std::move(config)));
  }
  static MemberConfig config(int broker, std::uint64_t disk) {
    MemberConfig config;
    config.broker = model::BrokerId(broker);
    config.incarnation = base::Uuid::from_random(disk * 100, 1);
    config.disks = {base::Uuid::from_random(disk, disk)};
    config.advertised = {"host-" + std::to_string(disk), 9500};
    return config;
  }
  Error start(Process& process) { return run(process.member.start()).error(); }
  bool has(const std::string& path) const { return state_->nodes.contains(path); }
  std::int32_t version(const std::string& path) const { return state_->nodes.at(path).version; }
  bool lease(const Process& process) { return process.member.has_lease(runtime_.now()); }
  void wait(base::Duration time) { simulator_.run_for(time); }
  template <class T>
  T run(asio::awaitable<T> task) {
    return mq::testing::run(simulator_, std::move(task));
  }

  mq::testing::Simulator simulator_{11};
  mq::testing::SimRuntime runtime_{simulator_};
  std::shared_ptr<metadata::MemoryStoreState> state_ =
      std::make_shared<metadata::MemoryStoreState>();
  metadata::MemoryStoreOptions options_{.single_process = false,
                                        .session_timeout = std::chrono::seconds(6)};
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST_F(MemberTest, FirstRegistrationMakesTheFoldersAndHasEpochZero) {
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  for (const auto& folder : layout::folders()) EXPECT_TRUE(has(folder)) << folder;
  EXPECT_EQ(one.member.epoch(), model::BrokerEpoch(0));
  EXPECT_TRUE(one.member.registered());
  const auto live = metadata::decode_broker_live(state_->nodes.at("/brokers/live/1").value);
  ASSERT_TRUE(live);
  EXPECT_EQ(live->advertised.text(), "host-1:9500");
  EXPECT_EQ(state_->nodes.at("/brokers/live/1").ephemeral_owner, one.store->session());
}

// CTL-4
TEST_F(MemberTest, EveryRegistrationHasAHigherEpoch) {
  for (int starts = 0; starts < 4; ++starts) {
    auto& one = process(config(1, 1));
    ASSERT_EQ(start(one), Error());
    EXPECT_EQ(one.member.epoch(), model::BrokerEpoch(starts));
    run(one.member.stop());
    EXPECT_FALSE(has("/brokers/live/1"));
    EXPECT_TRUE(has("/brokers/epoch/1"));
  }
}

// CTL-4
TEST_F(MemberTest, ASecondBrokerWithTheSameIdIsRefusedAndTheFirstUndisturbed) {
  auto& first = process(config(1, 1));
  ASSERT_EQ(start(first), Error());
  const auto live = state_->nodes.at("/brokers/live/1").value;
  auto& second = process(config(1, 2));
  const auto before = runtime_.now();
  EXPECT_EQ(start(second), make_error_code(ControllerErrc::broker_id_in_use));
  EXPECT_LT(runtime_.now() - before, std::chrono::seconds(1));
  EXPECT_TRUE(second.member.warnings().empty()) << "the other's disks are none of its business";
  EXPECT_EQ(state_->nodes.at("/brokers/live/1").value, live);
  EXPECT_EQ(version("/brokers/epoch/1"), 0);
  EXPECT_TRUE(first.member.registered());
  run(second.member.stop());
  EXPECT_TRUE(has("/brokers/live/1"));
}

TEST_F(MemberTest, ARestartWaitsForTheSessionOfTheProcessBeforeAndSaysSo) {
  auto& killed = process(config(1, 1));
  ASSERT_EQ(start(killed), Error());
  const auto session = killed.store->session();
  metadata::cut_off(*state_, session);
  simulator_.start_timer(runtime_.now() + std::chrono::seconds(6),
                         [&] { metadata::expire_session(*state_, session); });
  auto& again = process(config(1, 1));
  std::string waits_for;
  again.member.on_waiting([&](const std::string& text) { waits_for = text; });
  const auto before = runtime_.now();
  EXPECT_EQ(start(again), Error());
  EXPECT_GE(runtime_.now() - before, std::chrono::seconds(5));
  EXPECT_EQ(again.member.epoch(), model::BrokerEpoch(1));
  EXPECT_NE(waits_for.find("broker 1"), std::string::npos) << waits_for;
}

// Its directories were emptied meanwhile: what holds the node is still its own earlier process.
TEST_F(MemberTest, ARestartWithOtherDisksAtTheSameAddressWaitsToo) {
  auto& killed = process(config(1, 1));
  ASSERT_EQ(start(killed), Error());
  const auto session = killed.store->session();
  metadata::cut_off(*state_, session);
  simulator_.start_timer(runtime_.now() + std::chrono::seconds(6),
                         [&] { metadata::expire_session(*state_, session); });
  auto emptied = config(1, 2);
  emptied.advertised = config(1, 1).advertised;
  auto& again = process(emptied);
  EXPECT_EQ(start(again), Error());
  EXPECT_EQ(again.member.epoch(), model::BrokerEpoch(1));
  EXPECT_EQ(again.member.warnings().size(), 1u) << "what it had is gone";
}

TEST_F(MemberTest, ASessionOfTheSameDisksThatNeverEndsIsWaitedForOnlySoLong) {
  auto& first = process(config(1, 1));
  ASSERT_EQ(start(first), Error());
  auto copy = config(1, 1);
  copy.incarnation = base::Uuid::from_random(4711, 1);
  copy.earlier_session_max = std::chrono::seconds(10);
  auto& second = process(copy);
  EXPECT_EQ(start(second), make_error_code(ControllerErrc::broker_id_in_use));
  EXPECT_TRUE(first.member.registered());
}

TEST_F(MemberTest, ALostSessionIsFollowedByARegistrationWithANewEpoch) {
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  wait(std::chrono::seconds(2));
  EXPECT_TRUE(lease(one));
  std::vector<model::BrokerEpoch> told;
  one.member.on_epoch([&](model::BrokerEpoch epoch) { told.push_back(epoch); });
  state_->fault = [](bool) { return StoreFault::unavailable; };
  metadata::expire_session(*state_, one.store->session());
  wait(std::chrono::seconds(5));
  EXPECT_FALSE(one.member.registered());
  EXPECT_FALSE(lease(one));
  state_->fault = nullptr;
  wait(std::chrono::seconds(3));
  EXPECT_TRUE(one.member.registered());
  EXPECT_TRUE(lease(one));
  EXPECT_EQ(told, std::vector{model::BrokerEpoch(1)});
  EXPECT_EQ(version("/brokers/epoch/1"), 1);
  EXPECT_EQ(state_->nodes.at("/brokers/live/1").ephemeral_owner, one.store->session());
}

// The epoch that the store has is the one that the member goes by, whatever became of the answers.
TEST_F(MemberTest, LostAnswersOfARegistrationAreResolved) {
  for (const auto fault : {StoreFault::lost_answer, StoreFault::lost_request}) {
    for (int reads_lost = 0; reads_lost < 12; reads_lost += 3) {
      auto& one = process(config(1, 1));
      bool hit = false;
      int left = reads_lost;
      state_->fault = [&, fault](bool write) {
        // The registration is the first write once the folders are there.
        if (write && !hit && has("/brokers/hb")) {
          hit = true;
          return fault;
        }
        return !write && hit && left-- > 0 ? StoreFault::unavailable : StoreFault::none;
      };
      auto started = start(one);
      // Where its reads failed too, another try finds out.
      for (int tries = 0; started && tries < 12; ++tries) started = start(one);
      ASSERT_EQ(started, Error()) << reads_lost;
      EXPECT_TRUE(hit);
      EXPECT_EQ(one.member.epoch().value(), version("/brokers/epoch/1"));
      EXPECT_EQ(state_->nodes.at("/brokers/live/1").ephemeral_owner, one.store->session());
      state_->fault = nullptr;
      run(one.member.stop());
    }
  }
}

// The lease counts from when the last heartbeat that was acknowledged was sent.
TEST_F(MemberTest, TheLeaseEndsHalfASessionAfterTheLastAcknowledgedHeartbeat) {
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  wait(std::chrono::seconds(30));
  EXPECT_TRUE(lease(one));
  state_->fault = [](bool write) { return write ? StoreFault::lost_answer : StoreFault::none; };
  wait(std::chrono::milliseconds(1500));
  EXPECT_TRUE(lease(one));
  wait(std::chrono::seconds(2));
  EXPECT_FALSE(lease(one)) << "reads that are answered prove nothing";
  state_->fault = nullptr;
  wait(std::chrono::seconds(2));
  EXPECT_TRUE(lease(one));
}

TEST_F(MemberTest, HeartbeatsAreTheOnlyWritesOfAnIdleMember) {
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  wait(std::chrono::seconds(1));
  int writes = 0;
  state_->on_applied = [&] { ++writes; };
  const auto before = version("/brokers/hb/1");
  wait(std::chrono::seconds(60));
  EXPECT_EQ(version("/brokers/hb/1") - before, writes);
  EXPECT_GE(writes, 55);
  EXPECT_LE(writes, 65);
  state_->on_applied = nullptr;
}

TEST_F(MemberTest, AStoreInAFileNeedsNoHeartbeatAndTheLeaseLastsForEver) {
  options_.session_timeout = {};
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  wait(std::chrono::hours(10));
  EXPECT_TRUE(lease(one));
  EXPECT_FALSE(has("/brokers/hb/1"));
}

TEST_F(MemberTest, ADiskThatIsNotThereAnyMoreIsNamed) {
  auto two_disks = config(1, 1);
  two_disks.disks.push_back(base::Uuid::from_random(9, 9));
  auto& before = process(two_disks);
  ASSERT_EQ(start(before), Error());
  EXPECT_TRUE(before.member.warnings().empty());
  run(before.member.stop());
  auto& after = process(config(1, 1));
  ASSERT_EQ(start(after), Error());
  ASSERT_EQ(after.member.warnings().size(), 1u);
  EXPECT_NE(after.member.warnings()[0].find(base::Uuid::from_random(9, 9).hex()),
            std::string::npos);
}

TEST_F(MemberTest, ItStopsAlsoWhileTheStoreIsAway) {
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  metadata::cut_off(*state_, one.store->session());
  const auto before = runtime_.now();
  run(one.member.stop());
  EXPECT_LE(runtime_.now() - before, std::chrono::seconds(1));
  EXPECT_FALSE(one.member.registered());
}

/// Somebody removes a node by hand while the broker lives.
class RemovedByHand : public MemberTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(RemovedByHand, IsFollowedByAnotherRegistration) {
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  wait(std::chrono::seconds(2));
  std::vector<model::BrokerEpoch> told;
  one.member.on_epoch([&](model::BrokerEpoch epoch) { told.push_back(epoch); });
  const auto session = one.store->session();
  ASSERT_EQ(state_->nodes.erase(GetParam()), 1u);
  wait(std::chrono::seconds(4));
  EXPECT_TRUE(one.member.registered());
  EXPECT_TRUE(lease(one));
  EXPECT_EQ(one.store->session(), session);
  // CTL-4: above the one before, also where the number itself was lost.
  EXPECT_EQ(told, std::vector{model::BrokerEpoch(1)});
  EXPECT_EQ(version("/brokers/epoch/1"), 1);
  ASSERT_TRUE(has("/brokers/live/1"));
  const auto live = metadata::decode_writer(state_->nodes.at("/brokers/live/1").value);
  const auto epoch = metadata::decode_writer(state_->nodes.at("/brokers/epoch/1").value);
  ASSERT_TRUE(live && epoch);
  EXPECT_TRUE(*live == *epoch) << "of one registration";
  wait(std::chrono::seconds(10));
  EXPECT_EQ(told.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Nodes, RemovedByHand,
                         ::testing::Values("/brokers/live/1", "/brokers/epoch/1"));

TEST_F(MemberTest, AHeartbeatNodeThatIsRemovedIsMadeAgainAndNothingElseHappens) {
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  wait(std::chrono::seconds(2));
  ASSERT_EQ(state_->nodes.erase("/brokers/hb/1"), 1u);
  wait(std::chrono::seconds(3));
  EXPECT_TRUE(has("/brokers/hb/1"));
  EXPECT_TRUE(lease(one));
  EXPECT_EQ(version("/brokers/epoch/1"), 0);
}

// CTL-4: the store was put back to an earlier state, and forgot sessions as well.
TEST_F(MemberTest, AStoreRestoredFromAnOlderCopyGivesNoLowerEpoch) {
  for (int starts = 0; starts < 3; ++starts) {
    auto& one = process(config(1, 1));
    ASSERT_EQ(start(one), Error());
    run(one.member.stop());
  }
  const auto copy = state_->nodes.at("/brokers/epoch/1");
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  for (int losses = 0; losses < 1200; ++losses) {
    const auto last = one.member.epoch();
    metadata::expire_session(*state_, one.store->session());
    const auto again = [&] { return one.member.registered() && one.member.epoch() > last; };
    ASSERT_TRUE(simulator_.run_until(again, std::chrono::seconds(5)));
  }
  const auto before = one.member.epoch();
  EXPECT_GT(before.value(), 1000);
  metadata::expire_session(*state_, one.store->session());
  state_->nodes.at("/brokers/epoch/1") = copy;
  wait(std::chrono::seconds(5));
  EXPECT_TRUE(one.member.registered());
  EXPECT_EQ(one.member.epoch().value(), before.value() + 1);
  EXPECT_EQ(version("/brokers/epoch/1"), before.value() + 1);
}

// Another broker took the id while this one was gone: it stays out, does not disturb it, and tells
// its owner after a minute.
TEST_F(MemberTest, AnIdThatAnotherBrokerHasTakenMeanwhileStaysWithIt) {
  auto& one = process(config(1, 1));
  ASSERT_EQ(start(one), Error());
  metadata::cut_off(*state_, one.store->session());
  metadata::expire_session(*state_, one.store->session());
  auto& other = process(config(1, 2));
  ASSERT_EQ(start(other), Error());
  int told = 0;
  one.member.on_taken([&] { ++told; });
  metadata::reconnect(*state_, one.store->session());
  wait(std::chrono::seconds(50));
  EXPECT_FALSE(one.member.registered());
  EXPECT_TRUE(other.member.registered());
  EXPECT_EQ(version("/brokers/epoch/1"), 1);
  EXPECT_EQ(told, 0);
  wait(std::chrono::minutes(5));
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace mq::controller
