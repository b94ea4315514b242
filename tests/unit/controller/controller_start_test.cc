#include <gmock/gmock.h>

#include "controller/error.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "unit/controller/controller_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::MetadataErrc;

class ControllerStart : public mq::testing::ControllerFixture {
 protected:
  model::LeaderEpoch leader_epoch(const std::string& name, std::int32_t partition = 0) {
    return topic(name)->find(partition)->leader_epoch;
  }
};

TEST_F(ControllerStart, FirstStartMakesTheFoldersAndRegistersTheBroker) {
  ASSERT_FALSE(start());
  for (const auto& folder : layout::folders()) EXPECT_TRUE(state_->nodes.contains(folder));
  const auto& node = state_->nodes.at("/brokers/epoch/1");
  EXPECT_EQ(node.version, 0);
  const auto value = metadata::decode_broker_epoch(node.value);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->incarnation, base::Uuid::from_random(1001, 1));
  EXPECT_EQ(value->disks.size(), 1u);
  EXPECT_NE(state_->nodes.at("/brokers/live/1").ephemeral_owner, 0u);
  const auto image = controller().image();
  ASSERT_EQ(image->brokers().size(), 1u);
  EXPECT_EQ(image->brokers()[0].epoch, model::BrokerEpoch(0));
  EXPECT_EQ(image->controller(), model::BrokerId(1));
  expect_consistent();
}

// MET-3, PAR-4: every start of a leader is a new epoch.
TEST_F(ControllerStart, EveryStartRaisesBrokerAndLeaderEpochs) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("orders", 3).status.ok());
  EXPECT_EQ(leader_epoch("orders"), model::LeaderEpoch(0));
  for (int starts = 1; starts < 4; ++starts) {
    const auto version = controller().image()->version();
    ASSERT_FALSE(start());
    EXPECT_EQ(controller().image()->brokers()[0].epoch, model::BrokerEpoch(starts));
    for (int partition = 0; partition < 3; ++partition)
      EXPECT_EQ(leader_epoch("orders", partition), model::LeaderEpoch(starts));
    EXPECT_GT(controller().image()->version(), version);
    expect_consistent();
  }
}

TEST_F(ControllerStart, IsrNamesTheNewBrokerEpoch) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("orders", 1).status.ok());
  ASSERT_FALSE(start());
  const auto path = layout::partition_state({topic("orders")->id, 0});
  const auto state = metadata::decode_partition_state(state_->nodes.at(path).value);
  ASSERT_TRUE(state);
  ASSERT_EQ(state->isr.size(), 1u);
  EXPECT_EQ(state->isr[0].epoch, model::BrokerEpoch(1));
}

// MET-3: registration and leader epochs are one step.
TEST_F(ControllerStart, RegistrationAndLeaderEpochsAreOneWrite) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("orders", 50).status.ok());
  int writes = 0;
  state_->on_applied = [&] { ++writes; };
  ASSERT_FALSE(start());
  EXPECT_EQ(writes, 1);
}

TEST_F(ControllerStart, MorePartitionsThanOneMultiHoldsAreAllRaised) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("many", 10'000).status.ok());
  ASSERT_FALSE(start());
  EXPECT_EQ(topic("many")->partitions.size(), 10'000u);
  for (const auto& partition : topic("many")->partitions)
    ASSERT_EQ(partition.leader_epoch, model::LeaderEpoch(1));
  expect_consistent();
}

TEST_F(ControllerStart, LiveBrokerOfTheSameIdIsNotDisturbed) {
  ASSERT_FALSE(start());
  state_->nodes.at("/brokers/live/1").ephemeral_owner = 4711;
  stop();
  EXPECT_EQ(start(), make_error_code(ControllerErrc::broker_id_in_use));
  EXPECT_EQ(state_->nodes.at("/brokers/epoch/1").version, 0);
}

TEST_F(ControllerStart, MissingOrBrokenNodesAreNamedNotGuessed) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("orders", 2).status.ok());
  auto healthy = state_->nodes;
  healthy.erase("/brokers/live/1");
  const auto state = layout::partition_state({topic("orders")->id, 1});
  stop();
  for (const std::string& path : {state, std::string("/topics/orders")}) {
    state_->nodes = healthy;
    state_->nodes.at(path).value = "\xff\xff";
    EXPECT_EQ(start(), make_error_code(ControllerErrc::damaged_metadata)) << path;
  }
  state_->nodes = healthy;
  state_->nodes.erase(state);
  EXPECT_EQ(start(), make_error_code(ControllerErrc::damaged_metadata));
  state_->nodes = healthy;
  EXPECT_FALSE(start());
}

TEST_F(ControllerStart, LostAnswerOfTheRegistrationIsResolvedByReading) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("orders", 3).status.ok());
  stop();
  state_->fault = [this](bool write) {
    if (!write) return metadata::StoreFault::none;
    state_->fault = nullptr;
    return metadata::StoreFault::lost_answer;
  };
  ASSERT_FALSE(start());
  EXPECT_EQ(leader_epoch("orders"), model::LeaderEpoch(1));
  expect_consistent();
}

TEST_F(ControllerStart, LostRequestOfTheRegistrationIsAnErrorAndTheNextStartWorks) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("orders", 3).status.ok());
  stop();
  state_->fault = [this](bool write) {
    if (!write) return metadata::StoreFault::none;
    state_->fault = nullptr;
    return metadata::StoreFault::lost_request;
  };
  EXPECT_EQ(start(), make_error_code(MetadataErrc::unavailable));
  ASSERT_FALSE(start());
  EXPECT_EQ(leader_epoch("orders"), model::LeaderEpoch(1));
}

// PAR-4: a metadata store restored from a backup must not lead with epochs that a log has seen.
TEST_F(ControllerStart, LeaderEpochsAreRaisedAboveWhatTheLogsHaveSeen) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("orders", 3).status.ok());
  const auto id = topic("orders")->id;
  const auto version = controller().image()->version();
  const std::vector<LogEpoch> logs{{{id, 0}, model::LeaderEpoch(7)},
                                   {{id, 1}, model::LeaderEpoch(-1)},
                                   {{id, 2}, model::LeaderEpoch(0)},
                                   {{base::Uuid::from_random(8, 8), 0}, model::LeaderEpoch(9)}};
  ASSERT_TRUE(run(controller().raise_leader_epochs(logs)));
  EXPECT_EQ(leader_epoch("orders", 0), model::LeaderEpoch(8));
  EXPECT_EQ(leader_epoch("orders", 1), model::LeaderEpoch(0));
  EXPECT_EQ(leader_epoch("orders", 2), model::LeaderEpoch(1));
  EXPECT_GT(controller().image()->version(), version);
  expect_consistent();
  ASSERT_FALSE(start());
  EXPECT_EQ(leader_epoch("orders", 0), model::LeaderEpoch(9));
}

}  // namespace
}  // namespace mq::controller
