#include "controller/elections.h"

#include <gtest/gtest.h>

#include <limits>

#include "metadata/memory_store.h"
#include "metadata/znode_layout.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::controller {
namespace {

using model::BrokerEpoch;
using model::BrokerId;
using model::LeaderEpoch;

const BrokerId kOne(1);
const BrokerId kTwo(2);
const std::vector<BrokerId> kReplicas{kOne};

metadata::PartitionStateValue state(BrokerId leader, std::int32_t leader_epoch,
                                    std::int64_t isr_epoch) {
  metadata::PartitionStateValue value;
  value.leader = leader;
  value.leader_epoch = LeaderEpoch(leader_epoch);
  value.isr = {{kOne, BrokerEpoch(isr_epoch)}};
  return value;
}

protocol::ReplicaReport report(std::int32_t last_leader_epoch) {
  protocol::ReplicaReport report;
  report.last_leader_epoch = LeaderEpoch(last_leader_epoch);
  report.intact_since = BrokerEpoch(0);
  return report;
}

// PAR-4: whatever was there before, the next start of a leader is above it.
TEST(Elections, AReportedReplicaLeadsAboveTheStoredEpochAndAboveItsLog) {
  const auto above_store =
      with_reported_replica(state(BrokerId(), 7, 3), kReplicas, kOne, BrokerEpoch(4), report(5));
  ASSERT_TRUE(above_store);
  EXPECT_EQ(above_store->leader, kOne);
  EXPECT_EQ(above_store->leader_epoch, LeaderEpoch(8));
  ASSERT_EQ(above_store->isr.size(), 1u);
  EXPECT_EQ(above_store->isr[0].epoch, BrokerEpoch(4));
  const auto above_log =
      with_reported_replica(state(BrokerId(), 7, 3), kReplicas, kOne, BrokerEpoch(4), report(20));
  ASSERT_TRUE(above_log);
  EXPECT_EQ(above_log->leader_epoch, LeaderEpoch(21));
}

TEST(Elections, ALeaderThatReportsAgainStaysAsItIs) {
  EXPECT_FALSE(
      with_reported_replica(state(kOne, 7, 4), kReplicas, kOne, BrokerEpoch(4), report(7)));
  EXPECT_FALSE(
      with_reported_replica(state(kOne, 7, 4), kReplicas, kOne, BrokerEpoch(4), report(-1)));
}

// The metadata came from a backup: the log has seen more.
TEST(Elections, ALeaderWhoseLogIsAheadGetsAnEpochAboveIt) {
  const auto raised =
      with_reported_replica(state(kOne, 7, 4), kReplicas, kOne, BrokerEpoch(4), report(9));
  ASSERT_TRUE(raised);
  EXPECT_EQ(raised->leader_epoch, LeaderEpoch(10));
}

TEST(Elections, ANewRegistrationIsANewStart) {
  const auto again =
      with_reported_replica(state(kOne, 7, 4), kReplicas, kOne, BrokerEpoch(5), report(7));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->leader_epoch, LeaderEpoch(8));
  EXPECT_EQ(again->isr[0].epoch, BrokerEpoch(5));
}

TEST(Elections, WhoKeepsNoReplicaLeadsNothing) {
  EXPECT_FALSE(
      with_reported_replica(state(BrokerId(), 7, 3), kReplicas, kTwo, BrokerEpoch(4), report(50)));
}

TEST(Elections, WithOneReplicaAFailedOneLeadsToo) {
  auto failed = report(-1);
  failed.state = protocol::ReplicaState::failed;
  const auto led =
      with_reported_replica(state(BrokerId(), 7, 3), kReplicas, kOne, BrokerEpoch(4), failed);
  ASSERT_TRUE(led);
  EXPECT_EQ(led->leader, kOne);
  EXPECT_EQ(led->leader_epoch, LeaderEpoch(8));
}

TEST(Elections, AtTheEndOfTheNumbersNobodyLeads) {
  constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_FALSE(with_reported_replica(state(BrokerId(), 7, 3), kReplicas, kOne, BrokerEpoch(4),
                                     report(kMax)));
  EXPECT_FALSE(with_reported_replica(state(BrokerId(), kMax, 3), kReplicas, kOne, BrokerEpoch(4),
                                     report(1)));
}

/// Brokers in a store: 1 lives under epoch 2, 2 is away.
class LostLeaders : public ::testing::Test {
 protected:
  LostLeaders() {
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

  mq::testing::Simulator simulator_{1};
  mq::testing::SimRuntime runtime_{simulator_};
  std::shared_ptr<metadata::MemoryStoreState> state_ =
      std::make_shared<metadata::MemoryStoreState>();
  std::unique_ptr<metadata::MetadataStore> store_ = metadata::open_memory_store(state_, runtime_);
  Members members_{*store_};
};

TEST_F(LostLeaders, ALeaderUnderItsRegistrationStays) {
  EXPECT_FALSE(without_lost_leader(state(kOne, 7, 2), members_));
}

TEST_F(LostLeaders, ALeaderUnderAnEarlierRegistrationIsLostAndTheIsrStays) {
  const auto lost = without_lost_leader(state(kOne, 7, 1), members_);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->leader, BrokerId());
  EXPECT_EQ(lost->leader_epoch, LeaderEpoch(8));
  ASSERT_EQ(lost->isr.size(), 1u);
  EXPECT_EQ(lost->isr[0].broker, kOne);
  EXPECT_EQ(lost->isr[0].epoch, BrokerEpoch(1));
}

TEST_F(LostLeaders, ALeaderWithoutALiveNodeIsLost) {
  state_->nodes.erase("/brokers/live/1");
  refresh();
  EXPECT_TRUE(without_lost_leader(state(kOne, 7, 2), members_));
}

TEST_F(LostLeaders, WhoIsAwayIsKnownWithItsLastAddress) {
  EXPECT_EQ(members_.live(), std::vector{kOne});
  const auto infos = members_.infos();
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_FALSE(infos[1].alive);
  EXPECT_EQ(infos[1].advertised.text(), "one:1");
}

// The two nodes are of different writes: it registers just now.
TEST_F(LostLeaders, NodesThatDoNotFitTogetherAreNoLiveBroker) {
  const metadata::WriterTag other{base::Uuid::from_random(2, 2), 1};
  const metadata::BrokerLiveValue live{other, other.incarnation, {"one", 1}};
  state_->nodes["/brokers/live/1"].value = metadata::encode(live);
  refresh();
  EXPECT_TRUE(members_.live().empty());
}

TEST_F(LostLeaders, APartitionWithoutLeaderHasNoneToLose) {
  EXPECT_FALSE(without_lost_leader(state(BrokerId(), 7, 1), members_));
}

}  // namespace
}  // namespace mq::controller
