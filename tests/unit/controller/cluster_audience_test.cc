// A controller that has its session and hears of no broker is no use to anybody.
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using std::chrono::seconds;

class ClusterAudience : public mq::testing::Cluster {
 protected:
  /// The network between the controller and everybody else is cut; the metadata store is not.
  mq::testing::FakeBroker& cut_controller_off() {
    auto& cut = *controlling();
    cut.hears_others = false;
    return cut;
  }
  std::int32_t epoch() const {
    return state_->nodes.at(std::string(layout::kControllerEpoch)).version;
  }
};

TEST_F(ClusterAudience, AControllerThatNoBrokerReachesGivesTheOfficeToOneThatTheyReach) {
  start(3);
  ASSERT_TRUE(create_replicated("orders", 6, 3).status.ok());
  wait_until_settled();
  auto& cut = cut_controller_off();
  const auto began = runtime_.now();
  ASSERT_TRUE(wait_until([&] { return controlling() != nullptr && controlling() != &cut; }));
  EXPECT_LT(runtime_.now() - began, seconds(9));
  // The other two hear each other, so that it stays theirs.
  const auto elected = epoch();
  simulator_.run_for(seconds(60));
  EXPECT_EQ(epoch(), elected);
  EXPECT_NE(controlling(), &cut);
  EXPECT_TRUE(cut.member.has_lease(runtime_.now()));
}

TEST_F(ClusterAudience, WhoGaveTheOfficeUpTakesItAgainWhereNobodyElseDoes) {
  start(3);
  auto& cut = cut_controller_off();
  // Both others are dead: their sessions end later than the patience of the controller.
  for (const auto& broker : brokers_)
    if (broker.get() != &cut) broker->kill();
  ASSERT_TRUE(wait_until([&] { return cut.candidate.controller() == nullptr; }, seconds(8)));
  ASSERT_TRUE(wait_until([&] { return cut.candidate.controller() != nullptr; }, seconds(3)));
  const auto elected = epoch();
  simulator_.run_for(seconds(60));
  EXPECT_EQ(epoch(), elected);  // nobody else lives, so that nobody is missed
}

// Their disks stand still, or they make thousands of logs: nobody else would be the better one.
TEST_F(ClusterAudience, BrokersThatAskForNothingAndCanBeReachedAreBusy) {
  looks_for_the_dead_ = true;
  start(3);
  auto& controller = cut_controller_off();
  const auto elected = epoch();
  simulator_.run_for(seconds(30));
  EXPECT_EQ(epoch(), elected);
  for (const auto& broker : brokers_)
    if (broker.get() != &controller) network_.silent.insert("broker-" + std::to_string(broker->id));
  ASSERT_TRUE(wait_until([&] { return controlling() != nullptr && controlling() != &controller; },
                         seconds(8)));
}

TEST_F(ClusterAudience, OneOtherBrokerThatIsSilentProvesNothing) {
  start(2);
  cut_controller_off();
  const auto elected = epoch();
  simulator_.run_for(seconds(60));
  EXPECT_EQ(epoch(), elected);
}

TEST_F(ClusterAudience, OneBrokerThatIsHeardIsEnough) {
  start(4);
  int silent = 0;
  for (const auto& broker : brokers_) {
    if (broker.get() == controlling() || silent == 2) continue;
    broker->pulling = false;
    ++silent;
  }
  const auto elected = epoch();
  simulator_.run_for(seconds(60));
  EXPECT_EQ(epoch(), elected);
}

// Everybody is cut from everybody: the office goes round, and more slowly with every turn.
TEST_F(ClusterAudience, WhereNobodyHearsAnybodyElectionsGetFewer) {
  start(3);
  for (const auto& broker : brokers_) broker->hears_others = false;
  const auto elected = epoch();
  simulator_.run_for(seconds(120));
  EXPECT_GT(epoch(), elected);
  EXPECT_LT(epoch() - elected, 30);
}

// Clocks

class ClusterClocks : public mq::testing::Cluster {
 protected:
  void expect_agreed(std::int64_t ahead_ms) {
    for (const auto& broker : brokers_) {
      EXPECT_EQ(broker->cluster_time.verdict, protocol::ClockVerdict::agreed) << broker->id;
      EXPECT_NEAR(
          static_cast<double>(broker->cluster_time.median_ms - runtime_.wall_clock_ms() - ahead_ms),
          0, 4000);
    }
  }
};

// LOG-14
TEST_F(ClusterClocks, EveryBrokerIsToldTheMedian) {
  start(3);
  simulator_.run_for(seconds(5));
  expect_agreed(0);
  broker(2).clock_ahead_ms = 86'400'000;
  simulator_.run_for(seconds(10));
  expect_agreed(0);
  // Also by the next controller, whose own clock may be the one that is off.
  controlling()->kill();
  simulator_.run_for(seconds(20));
  EXPECT_EQ(controlling()->cluster_time.verdict,
            broker(2).reachable() ? protocol::ClockVerdict::split : protocol::ClockVerdict::agreed);
}

TEST_F(ClusterClocks, OneBrokerHasNobodyToCompareWith) {
  start(1);
  simulator_.run_for(seconds(5));
  EXPECT_EQ(broker(1).cluster_time.verdict, protocol::ClockVerdict::alone);
}

}  // namespace
}  // namespace mq::controller
