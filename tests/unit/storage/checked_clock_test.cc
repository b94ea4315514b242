// LOG-14
#include "storage/checked_clock.h"

#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::minutes;
using std::chrono::seconds;
using storage::CheckedClock;

constexpr std::int64_t kDay = 86'400'000;

class CheckedClockTest : public ::testing::Test {
 protected:
  std::int64_t right() { return runtime_.wall_clock_ms() - skew_; }
  void jump(std::int64_t ms) {
    runtime_.jump_wall_clock(ms);
    skew_ += ms;
  }
  void compare() { clock_.compare_with(right(), runtime_.now()); }

  Simulator simulator_{2};
  SimRuntime runtime_{simulator_};
  CheckedClock clock_;
  std::int64_t skew_ = 0;
};

TEST_F(CheckedClockTest, NothingIsOldBeforeTheOthersHaveSpoken) {
  EXPECT_EQ(clock_.retention_time_ms(runtime_), std::nullopt);
  EXPECT_EQ(clock_.append_time_ms(runtime_), runtime_.wall_clock_ms());
  EXPECT_EQ(clock_.ahead_ms(runtime_), std::nullopt);
  clock_.doubt();
  EXPECT_EQ(clock_.retention_time_ms(runtime_), std::nullopt);
  EXPECT_EQ(clock_.append_time_ms(runtime_), runtime_.wall_clock_ms());
  compare();
  EXPECT_EQ(clock_.retention_time_ms(runtime_), runtime_.wall_clock_ms());
}

TEST_F(CheckedClockTest, AloneItIsBelieved) {
  clock_.believe();
  jump(kDay);
  EXPECT_EQ(clock_.append_time_ms(runtime_), runtime_.wall_clock_ms());
  EXPECT_EQ(clock_.retention_time_ms(runtime_), runtime_.wall_clock_ms());
  EXPECT_FALSE(clock_.is_off(runtime_));
}

// Nobody has to tell it: the time of the others goes on by the monotonic clock.
TEST_F(CheckedClockTest, AStepIsNoticedAtOnce) {
  compare();
  for (const std::int64_t step : {kDay, -kDay / 24, std::int64_t{11'000}}) {
    simulator_.run_for(seconds(30));
    jump(step);
    EXPECT_TRUE(clock_.is_off(runtime_)) << step;
    EXPECT_EQ(clock_.ahead_ms(runtime_), step);
    EXPECT_EQ(clock_.append_time_ms(runtime_), right());
    EXPECT_EQ(clock_.retention_time_ms(runtime_), std::nullopt);
    jump(-step);
    EXPECT_FALSE(clock_.is_off(runtime_));
    EXPECT_EQ(clock_.retention_time_ms(runtime_), right());
  }
}

TEST_F(CheckedClockTest, WithinTenSecondsItIsBelieved) {
  compare();
  jump(9'000);
  EXPECT_FALSE(clock_.is_off(runtime_));
  EXPECT_EQ(clock_.append_time_ms(runtime_), runtime_.wall_clock_ms());
  EXPECT_EQ(clock_.retention_time_ms(runtime_), runtime_.wall_clock_ms());
}

// Who was off before the others fell out stays off: nobody has said anything better since.
TEST_F(CheckedClockTest, WhatTheOthersSaidLastGoesOnWhileTheyDisagree) {
  compare();
  clock_.doubt();
  jump(kDay);
  EXPECT_EQ(clock_.append_time_ms(runtime_), right());
  EXPECT_EQ(clock_.retention_time_ms(runtime_), std::nullopt);
  jump(-kDay);
  EXPECT_EQ(clock_.retention_time_ms(runtime_), std::nullopt);
}

struct ClockedWorld : StorageWorld {
  ClockedWorld() {
    config.clock = &clock;
    settings.retention_age = minutes(10);
    compare();
    start();
  }
  void compare() { clock.compare_with(runtime.wall_clock_ms(), runtime.now()); }
  std::int64_t append_time_of(Offset offset) {
    const auto found = read(offset, 1);
    EXPECT_TRUE(found);
    return model::RecordBatchView::parse_first(found->batches[0].bytes)->append_time_ms();
  }

  CheckedClock clock;
};

TEST(LogWithACheckedClock, AClockThatIsSetAheadDeletesNothingAndStampsNothing) {
  ClockedWorld world;
  world.append(10);
  world.pass(seconds(60));
  world.runtime.jump_wall_clock(kDay);
  world.append(1);
  world.pass(seconds(60));
  EXPECT_EQ(world.log().log_start_offset(), Offset(0));
  EXPECT_EQ(world.log().segments(), 1u);
  EXPECT_NEAR(
      static_cast<double>(world.append_time_of(Offset(10)) - world.append_time_of(Offset(0))),
      60'000, 1000);
  // By the right time they go when they are old, and not a day later.
  world.runtime.jump_wall_clock(-kDay);
  world.pass(minutes(10));
  EXPECT_EQ(world.log().log_start_offset(), Offset(11));
}

TEST(LogWithACheckedClock, AClockThatIsSetBackLeavesAppendTimesAsTheyAre) {
  ClockedWorld world;
  world.append(10);
  world.runtime.jump_wall_clock(-kDay);
  world.pass(seconds(60));
  world.append(1);
  EXPECT_NEAR(
      static_cast<double>(world.append_time_of(Offset(10)) - world.append_time_of(Offset(0))),
      60'000, 1000);
  // Nothing goes for its age meanwhile, what is too much does.
  world.pass(minutes(30));
  EXPECT_EQ(world.log().log_start_offset(), Offset(0));
  world.settings.retention_bytes = 1u << 20;
  world.log().set_settings(world.settings);
  for (int i = 0; i < 200; ++i) {
    world.append(1, 20'000);
    if (i % 10 == 0) world.pass(seconds(5));
  }
  world.pass(seconds(60));
  EXPECT_GT(world.log().log_start_offset(), Offset(10));
}

TEST(LogWithACheckedClock, NothingIsOldWhileNobodyKnowsTheTime) {
  ClockedWorld world;
  world.append(10);
  world.clock.doubt();
  world.pass(minutes(30));
  EXPECT_EQ(world.log().log_start_offset(), Offset(0));
  world.compare();
  world.pass(seconds(60));
  EXPECT_EQ(world.log().log_start_offset(), Offset(10));
}

}  // namespace
}  // namespace mq::testing
