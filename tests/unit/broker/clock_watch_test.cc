// LOG-14
#include "broker/clock_watch.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "support/sim_runtime.h"

namespace mq::broker {
namespace {

using protocol::ClockVerdict;
using protocol::ClusterTime;
using std::chrono::seconds;

class ClockWatchTest : public ::testing::Test {
 protected:
  ClockWatchTest() {
    base::set_log_sink([this](base::LogLevel level, std::string_view, std::string_view text) {
      (level == base::LogLevel::info ? infos_ : warnings_).emplace_back(text);
    });
  }
  ~ClockWatchTest() override { base::set_log_sink({}); }

  void jump(std::int64_t ms) {
    runtime_.jump_wall_clock(ms);
    skew_ += ms;
  }
  void agree() {
    watch_.note({ClockVerdict::agreed, runtime_.wall_clock_ms() - skew_, 0, 3}, runtime_.now());
  }
  void expect_alarm(const std::string& part) const {
    EXPECT_NE(watch_.alarm().find(part), std::string::npos) << watch_.alarm();
  }

  mq::testing::Simulator simulator_{2};
  mq::testing::SimRuntime runtime_{simulator_};
  storage::CheckedClock clock_;
  ClockWatch watch_{model::BrokerId(2), clock_, runtime_};
  std::int64_t skew_ = 0;
  std::vector<std::string> infos_;
  std::vector<std::string> warnings_;
};

TEST_F(ClockWatchTest, AClockThatIsOffIsAnAlarmUntilItIsRight) {
  agree();
  EXPECT_EQ(watch_.alarm(), "");
  jump(86'400'000);
  expect_alarm("broker 2 is 24.0 hours ahead of");  // before anybody has told
  for (int i = 0; i < 10; ++i) agree();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("24.0 hours ahead"), std::string::npos);
  jump(-90'000'000);
  expect_alarm("60.0 minutes behind");
  jump(3'600'000);
  agree();
  EXPECT_EQ(watch_.alarm(), "");
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(infos_.size(), 1u);
}

TEST_F(ClockWatchTest, ClocksWithoutAMajorityAreAnAlarmOfAll) {
  agree();
  watch_.note({ClockVerdict::split, 0, 3'600'000, 2}, runtime_.now());
  expect_alarm("the clocks of the 2 brokers are up to 60.0 minutes apart");
  // What is not known changes nothing.
  watch_.note({}, runtime_.now());
  expect_alarm("up to 60.0 minutes apart");
  agree();
  EXPECT_EQ(watch_.alarm(), "");
}

TEST_F(ClockWatchTest, NobodyToCompareWithIsTold) {
  watch_.note({}, runtime_.now());
  EXPECT_EQ(watch_.alarm(), "");
  simulator_.run_for(seconds(61));
  expect_alarm("no other broker");
  watch_.note({ClockVerdict::alone, 0, 0, 1}, runtime_.now());
  EXPECT_EQ(watch_.alarm(), "");
}

}  // namespace
}  // namespace mq::broker
