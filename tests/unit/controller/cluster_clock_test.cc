#include "controller/cluster_clock.h"

#include <gtest/gtest.h>

namespace mq::controller {
namespace {

using namespace std::chrono_literals;
using model::BrokerId;
using protocol::ClockVerdict;

constexpr std::int64_t kDay = 86'400'000;
constexpr std::int64_t kWall = 1'800'000'000'000;

class ClusterClockTest : public ::testing::Test {
 protected:
  /// Broker n tells a clock that is `ahead_ms[n - 1]` off.
  void tell(const std::vector<std::int64_t>& ahead_ms, base::Duration under_way = {}) {
    for (std::size_t i = 0; i < ahead_ms.size(); ++i)
      tell_one(static_cast<int>(i) + 1, ahead_ms[i], under_way);
  }
  void tell_one(int broker, std::int64_t ahead_ms, base::Duration under_way = {}) {
    clock_.told(BrokerId(broker), wall() + ahead_ms - under_way / 1ms, now_);
  }
  std::int64_t wall() const { return kWall + now_.time_since_epoch() / 1ms; }
  protocol::ClusterTime time(int live, std::size_t registered = 0) const {
    std::set<BrokerId> ids;
    for (int i = 1; i <= live; ++i) ids.insert(BrokerId(i));
    return clock_.time(ids, std::max<std::size_t>(registered, ids.size()), now_);
  }
  void expect_right(const protocol::ClusterTime& time) {
    EXPECT_EQ(time.verdict, ClockVerdict::agreed);
    EXPECT_NEAR(static_cast<double>(time.median_ms - wall()), 0, 2000);
  }

  ClusterClock clock_;
  base::TimePoint now_{1000s};
};

TEST_F(ClusterClockTest, TheMedianIsTheMajoritysTime) {
  tell({0, kDay, 200});
  expect_right(time(3));
  tell({-3'600'000, 0, 200});
  tell({-3'600'000, 0, 200});
  expect_right(time(3));
  EXPECT_EQ(time(3).brokers, 3u);
  // It goes on by itself.
  now_ += 20s;
  expect_right(time(3));
}

TEST_F(ClusterClockTest, NothingIsKnownBeforeAMajorityHasToldTheSame) {
  EXPECT_EQ(time(3).verdict, ClockVerdict::unknown);
  tell({kDay});
  EXPECT_EQ(time(3).verdict, ClockVerdict::unknown);
  tell({kDay, 0});
  EXPECT_EQ(time(3).verdict, ClockVerdict::unknown);
  tell({kDay, 0, 0});
  expect_right(time(3));
}

TEST_F(ClusterClockTest, OfTwoThatDifferNeitherIsRight) {
  tell({0, 9'000});
  expect_right(time(2, 3));
  tell({0, 12'000});
  EXPECT_EQ(time(2, 3).verdict, ClockVerdict::split);
  EXPECT_EQ(time(2, 3).spread_ms, 12'000);
  tell({0, kDay, 0, kDay});
  EXPECT_EQ(time(4).verdict, ClockVerdict::split);
  tell({0, kDay, 0, 0});
  tell({0, kDay, 0, 0});
  expect_right(time(4));
}

TEST_F(ClusterClockTest, OneThatIsLeftOfSeveralSaysNothing) {
  tell({kDay, 0, 0});
  EXPECT_EQ(time(1, 3).verdict, ClockVerdict::unknown);
  EXPECT_EQ(time(1, 1).verdict, ClockVerdict::alone);
}

TEST_F(ClusterClockTest, APullThatWasLongUnderWayMakesNoClockLate) {
  tell({0, 0, 0});
  now_ += 2s;
  tell({0, 0, 0}, 40s);
  expect_right(time(3));
  // A clock that was set back is believed with the second pull.
  now_ += 2s;
  tell_one(1, -kDay);
  tell_one(2, -kDay);
  now_ += 2s;
  tell_one(1, -kDay);
  tell_one(2, -kDay);
  EXPECT_NEAR(static_cast<double>(time(3).median_ms - wall() + kDay), 0, 2000);
}

TEST_F(ClusterClockTest, WhoHasFallenSilentIsNotCompared) {
  tell({0, kDay, 0});
  now_ += 31s;
  tell_one(2, kDay);
  EXPECT_EQ(time(3).verdict, ClockVerdict::unknown);
  tell_one(1, 0);
  EXPECT_EQ(time(3).verdict, ClockVerdict::unknown);
  tell_one(3, 0);
  expect_right(time(3));
}

TEST_F(ClusterClockTest, AClockThatIsNotToldDoesNotCount) {
  clock_.told(BrokerId(1), 0, now_);
  tell_one(2, 0);
  EXPECT_EQ(time(2).verdict, ClockVerdict::unknown);
}

}  // namespace
}  // namespace mq::controller
