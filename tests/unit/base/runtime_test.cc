#include "base/runtime.h"

#include <gtest/gtest.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/log.h"
#include "both_worlds.h"

namespace mq::base {
namespace {

using namespace std::chrono_literals;
using namespace boost::asio::experimental::awaitable_operators;

template <class World>
class RuntimeTest : public WorldTest<World> {};
TYPED_TEST_SUITE(RuntimeTest, BothWorlds);

asio::awaitable<Duration> sleep_measured(Runtime& runtime, Duration span) {
  const auto start = runtime.now();
  co_await runtime.sleep_for(span);
  co_return runtime.now() - start;
}

TYPED_TEST(RuntimeTest, SleepLastsAtLeastItsTime) {
  EXPECT_GE(this->world.run(sleep_measured(this->world.runtime, 5ms)), 5ms);
  EXPECT_GE(this->world.run(sleep_measured(this->world.runtime, 0ms)), 0ms);
}

asio::awaitable<std::size_t> race(Runtime& runtime) {
  auto winner = co_await (runtime.sleep_for(1h) || runtime.sleep_for(2ms));
  co_return winner.index();
}

TYPED_TEST(RuntimeTest, TheLoserOfARaceIsNotWaitedFor) {
  EXPECT_EQ(this->world.run(race(this->world.runtime)), 1u);
}

asio::awaitable<std::vector<int>> timers_in_order(Runtime& runtime) {
  std::vector<int> fired;
  const auto start = runtime.now();
  runtime.start_timer(start + 3ms, [&fired] { fired.push_back(3); });
  runtime.start_timer(start + 1ms, [&fired] { fired.push_back(1); });
  const auto dropped = runtime.start_timer(start + 2ms, [&fired] { fired.push_back(2); });
  const auto early = runtime.start_timer(start, [&fired] { fired.push_back(0); });
  EXPECT_TRUE(runtime.cancel_timer(dropped));
  EXPECT_FALSE(runtime.cancel_timer(dropped));
  co_await runtime.sleep_until(start + 10ms);
  EXPECT_FALSE(runtime.cancel_timer(early));
  co_return fired;
}

TYPED_TEST(RuntimeTest, TimersFireOnceInOrderUnlessCancelled) {
  EXPECT_EQ(this->world.run(timers_in_order(this->world.runtime)), (std::vector<int>{0, 1, 3}));
}

asio::awaitable<int> timer_cancels_timer(Runtime& runtime) {
  int fired = 0;
  const auto due = runtime.now() + 1ms;
  Runtime::TimerId second = 0;
  runtime.start_timer(due, [&] {
    ++fired;
    runtime.cancel_timer(second);
    runtime.start_timer(runtime.now(), [&fired] { fired += 10; });
  });
  second = runtime.start_timer(due, [&fired] { fired += 100; });
  co_await runtime.sleep_for(5ms);
  // On a busy machine both dues may have passed before the first timer was looked at.
  for (int i = 0; i < 1000 && fired < 11; ++i) co_await runtime.sleep_for(1ms);
  co_return fired;
}

TYPED_TEST(RuntimeTest, ATimerMayCancelAndStartOthers) {
  EXPECT_EQ(this->world.run(timer_cancels_timer(this->world.runtime)), 11);
}

asio::awaitable<void> fails() {
  throw std::runtime_error("went wrong");
  co_return;
}
asio::awaitable<void> spawn_failing(Runtime& runtime) {
  runtime.spawn("the failing task", fails());
  co_await runtime.sleep_for(1ms);
}

TYPED_TEST(RuntimeTest, AnExceptionThatLeavesATaskIsLogged) {
  std::string logged;
  set_log_sink([&logged](LogLevel, std::string_view, std::string_view text) { logged = text; });
  this->world.run(spawn_failing(this->world.runtime));
  set_log_sink({});
  EXPECT_NE(logged.find("the failing task"), std::string::npos);
  EXPECT_NE(logged.find("went wrong"), std::string::npos);
}

asio::awaitable<void> count_down(Runtime& runtime, int& running, Duration span) {
  co_await runtime.sleep_for(span);
  --running;
}
asio::awaitable<int> group_waits(Runtime& runtime) {
  TaskGroup group(runtime);
  co_await group.wait();  // nothing runs: returns at once
  int running = 3;
  for (int i = 1; i <= 3; ++i) group.spawn("child", count_down(runtime, running, i * 1ms));
  EXPECT_EQ(group.running(), 3u);
  co_await group.wait();
  EXPECT_EQ(group.running(), 0u);
  co_return running;
}

TYPED_TEST(RuntimeTest, AGroupEndsWhenItsLastTaskEnded) {
  EXPECT_EQ(this->world.run(group_waits(this->world.runtime)), 0);
}

asio::awaitable<void> wait_for_flag(Runtime& runtime, const bool& flag) {
  while (!flag) co_await runtime.sleep_for(1ms);
}

TEST(RealRuntime, PostComesFromAnyThread) {
  RealRuntime runtime;
  bool flag = false;
  std::thread other([&] { runtime.post([&flag] { flag = true; }); });
  testing::run(runtime, wait_for_flag(runtime, flag));
  other.join();
  EXPECT_TRUE(flag);
}

TEST(RealRuntime, RandomWordsDiffer) {
  RealRuntime first;
  RealRuntime second;
  EXPECT_NE(first.random(), first.random());
  EXPECT_NE(first.random(), second.random());
  EXPECT_GT(first.wall_clock_ms(), 1'600'000'000'000);
}

}  // namespace
}  // namespace mq::base
