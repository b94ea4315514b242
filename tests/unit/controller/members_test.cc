#include "controller/members.h"

#include <gtest/gtest.h>

#include "metadata/memory_store.h"
#include "metadata/znode_layout.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::controller {
namespace {

const model::BrokerId kOne(1);

/// Brokers in a store: 1 lives under epoch 2, 2 is away.
class MembersTest : public ::testing::Test {
 protected:
  MembersTest() {
    for (const auto& folder : metadata::layout::folders()) state_->nodes[folder] = {};
    const metadata::WriterTag tag{base::Uuid::from_random(1, 1), 1};
    const metadata::BrokerEpochValue epoch{tag, tag.incarnation, {}, {"one", 1}};
    const metadata::BrokerLiveValue live{tag, tag.incarnation, {"one", 1}};
    state_->nodes["/brokers/epoch/1"] = {metadata::encode(epoch), 2, 0};
    state_->nodes["/brokers/epoch/2"] = {metadata::encode(epoch), 0, 0};
    state_->nodes["/brokers/live/1"] = {metadata::encode(live), 0, 9};
    refresh();
  }
  void refresh() { ASSERT_TRUE(mq::testing::run(simulator_, members_.refresh())); }
  [[nodiscard]] bool lives(std::int64_t epoch) const {
    return members_.live_brokers().has({kOne, model::BrokerEpoch(epoch)});
  }
  [[nodiscard]] bool stays(std::int64_t epoch) const {
    return members_.live_brokers().stays({kOne, model::BrokerEpoch(epoch)});
  }

  mq::testing::Simulator simulator_{1};
  mq::testing::SimRuntime runtime_{simulator_};
  std::shared_ptr<metadata::MemoryStoreState> state_ =
      std::make_shared<metadata::MemoryStoreState>();
  std::unique_ptr<metadata::MetadataStore> store_ = metadata::open_memory_store(state_, runtime_);
  Members members_{*store_};
};

TEST_F(MembersTest, ABrokerLivesUnderItsRegistration) {
  EXPECT_TRUE(lives(2));
  EXPECT_FALSE(lives(1));
  EXPECT_TRUE(stays(2));
}

TEST_F(MembersTest, ABrokerWithoutALiveNodeIsAway) {
  state_->nodes.erase("/brokers/live/1");
  refresh();
  EXPECT_FALSE(lives(2));
}

TEST_F(MembersTest, WhoIsAwayIsKnownWithItsLastAddress) {
  const auto infos = members_.infos();
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_TRUE(infos[0].alive);
  EXPECT_FALSE(infos[1].alive);
  EXPECT_EQ(infos[1].advertised.text(), "one:1");
}

// The two nodes are of different writes: it registers just now.
TEST_F(MembersTest, NodesThatDoNotFitTogetherAreNoLiveBroker) {
  const metadata::WriterTag other{base::Uuid::from_random(2, 2), 1};
  const metadata::BrokerLiveValue live{other, other.incarnation, {"one", 1}};
  state_->nodes["/brokers/live/1"].value = metadata::encode(live);
  refresh();
  EXPECT_FALSE(members_.find(kOne)->alive);
  EXPECT_FALSE(lives(2));
}

TEST_F(MembersTest, WhoIsAboutToStopIsThatUntilItsNextRegistration) {
  members_.leaving(kOne);
  EXPECT_TRUE(lives(2));
  EXPECT_FALSE(stays(2));
  refresh();
  EXPECT_FALSE(stays(2));
  state_->nodes["/brokers/epoch/1"].version = 3;
  refresh();
  EXPECT_TRUE(stays(3));
}

}  // namespace
}  // namespace mq::controller
