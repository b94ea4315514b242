#include "replication/isr_keeper.h"

#include <gtest/gtest.h>

#include "fake_log.h"
#include "produced_batch.h"
#include "scripted_controller.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::replication {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ScriptedController;

constexpr LeaderEpoch kEpoch{5};

/// Broker 1 leads one partition; 2 is in sync with it, 3 may be.
class IsrKeeperTest : public ::testing::Test {
 protected:
  static IsrMember member(std::int32_t id) { return {BrokerId(id), BrokerEpoch(10L * id)}; }
  static IsrState state_of(std::int32_t version, std::vector<IsrMember> isr) {
    return {BrokerId(1), kEpoch, model::PartitionVersion(version), std::move(isr), 2};
  }

  IsrKeeperTest() {
    publish(1);
    EXPECT_TRUE(log.start_epoch(kEpoch));
    LeaderRole role{member(1),
                    {BrokerId(1), BrokerId(2), BrokerId(3)},
                    state_of(7, {member(1), member(2)}),
                    {}};
    auto made = std::make_shared<Partition>(runtime, log, counters, std::move(role));
    partition = made.get();
    partition->on_isr_change_wanted([this] { keeper.wake(); });
    table.add(std::move(made));
    controller.on_alter_isr = [this](const protocol::AlterIsrRequest& request) {
      return agree(request);
    };
    keeper.start();
    follow(2);
  }
  ~IsrKeeperTest() override {
    mq::testing::run(simulator, keeper.stop());
    partition->close();
  }

  void publish(std::uint64_t version) {
    std::vector<metadata::BrokerInfo> brokers;
    for (int id = 1; id <= 3; ++id)
      brokers.push_back({BrokerId(id), BrokerEpoch(10L * id), {}, id != away});
    view.publish(
        std::make_shared<metadata::ClusterImage>(testing::uuid(9), BrokerId(1), std::move(brokers),
                                                 std::vector<metadata::TopicPtr>{}, version));
  }
  void follow(std::int32_t id) {
    protocol::ReplicaSubscribe from;
    from.leader_epoch = kEpoch;
    from.appended = from.durable = from.log_start = Offset(0);
    EXPECT_TRUE(partition->subscribe(member(id), from));
  }
  base::Result<protocol::AlterIsrResponse> agree(const protocol::AlterIsrRequest& request) const {
    protocol::AlterIsrResponse response;
    for (const auto& entry : request.entries) {
      protocol::IsrResult result;
      result.partition = entry.partition;
      result.state = state_of(entry.version.value() + 1, entry.isr);
      response.results.push_back(result);
    }
    return response;
  }
  std::vector<std::vector<IsrMember>> asked() const {
    std::vector<std::vector<IsrMember>> all;
    for (const auto& request : controller.isr_requests) {
      EXPECT_EQ(request.broker, 1);
      EXPECT_EQ(request.broker_epoch, 10);
      for (const auto& entry : request.entries) all.push_back(entry.isr);
    }
    return all;
  }

  std::vector<IsrMember> all_three{member(1), member(2), member(3)};
  std::vector<IsrMember> two{member(1), member(2)};
  int away = 0;
  bool may_ask = true;
  mq::testing::Simulator simulator{1};
  mq::testing::SimRuntime runtime{simulator};
  base::Counters counters;
  mq::testing::FakeLog log{true};
  ClusterView view{runtime};
  ScriptedController controller{runtime};
  PartitionTable table;
  Partition* partition = nullptr;
  IsrKeeper keeper{{BrokerId(1)},
                   runtime,
                   controller,
                   view,
                   {{&runtime, &table}},
                   [] { return BrokerEpoch(10); },
                   [this] { return may_ask; }};
};

TEST_F(IsrKeeperTest, AsksSoonForWhoHasCaughtUp) {
  simulator.run_for(seconds(1));
  EXPECT_TRUE(asked().empty());
  follow(3);
  simulator.run_for(milliseconds(200));
  ASSERT_EQ(asked().size(), 1U);
  EXPECT_EQ(asked()[0], all_three);
  EXPECT_EQ(partition->isr_state().isr, all_three);
  simulator.run_for(seconds(60));
  EXPECT_EQ(asked().size(), 1U);
}

TEST_F(IsrKeeperTest, AFollowerThatIsAwayIsNotAskedFor) {
  away = 3;
  publish(2);
  follow(3);
  simulator.run_for(seconds(30));
  EXPECT_TRUE(asked().empty());
  away = 0;
  publish(3);
  simulator.run_for(seconds(3));
  EXPECT_EQ(asked().size(), 1U);
}

TEST_F(IsrKeeperTest, AsksAgainWhileNobodyAnswers) {
  int failures = 3;
  controller.on_alter_isr =
      [&](const protocol::AlterIsrRequest& request) -> base::Result<protocol::AlterIsrResponse> {
    if (failures-- > 0) return make_error_code(base::BaseErrc::connection_lost);
    return agree(request);
  };
  follow(3);
  simulator.run_for(seconds(10));
  EXPECT_EQ(asked().size(), 4U);
  EXPECT_EQ(partition->isr_state().isr, all_three);
}

TEST_F(IsrKeeperTest, ARefusalBringsTheStateThatIsInForce) {
  controller.on_alter_isr = [&](const protocol::AlterIsrRequest& request) {
    auto response = agree(request);
    auto& result = response->results[0];
    result.status = protocol::Status::of(protocol::WireError::invalid_request, "another version");
    result.state = state_of(9, {member(1)});
    return response;
  };
  follow(3);
  simulator.run_for(milliseconds(50));
  ASSERT_EQ(asked().size(), 1U);
  EXPECT_EQ(partition->isr_state().isr, std::vector<IsrMember>{member(1)});
  EXPECT_FALSE(partition->enough_replicas());
}

TEST_F(IsrKeeperTest, APartitionThatTheControllerDoesNotKnowKeepsItsState) {
  controller.on_alter_isr = [&](const protocol::AlterIsrRequest& request) {
    auto response = agree(request);
    response->results[0].status = protocol::Status::of(protocol::WireError::not_leader, "gone");
    response->results[0].state = {};
    return response;
  };
  follow(3);
  simulator.run_for(seconds(3));
  EXPECT_FALSE(asked().empty());
  EXPECT_EQ(partition->isr_state().isr, two);
}

TEST_F(IsrKeeperTest, WithoutALeaseNothingIsAskedFor) {
  // PAR-9
  may_ask = false;
  follow(3);
  simulator.run_for(seconds(10));
  EXPECT_TRUE(asked().empty());
  may_ask = true;
  simulator.run_for(seconds(5));
  EXPECT_EQ(asked().size(), 1U);
}

TEST_F(IsrKeeperTest, WhoLagsIsThrownOutWithinALittleMoreThanTheLagTime) {
  follow(3);
  simulator.run_for(seconds(1));
  auto batch = mq::testing::one_record_batch("record");
  ASSERT_TRUE(partition->append({}, batch, {7, 1, 0}));
  simulator.run_for(seconds(9));
  const auto before = asked().size();
  simulator.run_for(seconds(5));
  ASSERT_EQ(asked().size(), before + 1);
  EXPECT_EQ(asked().back(), std::vector<IsrMember>{member(1)});
}

TEST_F(IsrKeeperTest, AfterStopNothingIsAskedFor) {
  mq::testing::run(simulator, keeper.stop());
  follow(3);
  keeper.wake();
  simulator.run_for(seconds(10));
  EXPECT_TRUE(asked().empty());
}

}  // namespace
}  // namespace mq::replication
