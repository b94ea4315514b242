#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/run.h"
#include "support/sim_disk_executor.h"
#include "support/sim_network.h"
#include "support/sim_runtime.h"

namespace mq::testing {
namespace {

using namespace std::chrono_literals;

asio::awaitable<void> wander(SimRuntime& runtime, SimDiskExecutor& disk, int name) {
  for (int i = 0; i < 20; ++i) {
    co_await runtime.sleep_for(base::Duration(runtime.random() % 1'000'000));
    runtime.simulator().trace(std::to_string(name) + " slept");
    auto nothing = [] {};
    co_await disk.run(nothing);
  }
}

std::uint64_t hash_of_run(std::uint64_t seed) {
  Simulator simulator(seed);
  SimRuntime runtime(simulator);
  SimDiskExecutor disk(simulator, {});
  for (int i = 0; i < 5; ++i) runtime.spawn("wanderer", wander(runtime, disk, i));
  simulator.run_for(1min);
  return simulator.trace_hash();
}

TEST(Simulator, ASeedReplaysExactlyAndAnotherDiffers) {
  EXPECT_EQ(hash_of_run(42), hash_of_run(42));
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) hashes.insert(hash_of_run(seed));
  EXPECT_EQ(hashes.size(), 20u);
}

TEST(Simulator, TheClockJumpsOverIdleTime) {
  Simulator simulator(1);
  const auto start = simulator.now();
  EXPECT_FALSE(simulator.run_until([] { return false; }, 1000h));
  EXPECT_EQ(simulator.now() - start, 1000h);
  EXPECT_LT(simulator.steps(), 10u);
}

void spin(SimRuntime& runtime) {
  runtime.post([&runtime] { spin(runtime); });
}

TEST(Simulator, ALoopThatMovesNoClockIsStuckNotEndless) {
  Simulator simulator(1);
  SimRuntime runtime(simulator);
  spin(runtime);
  EXPECT_FALSE(simulator.run_until([] { return false; }, 1h));
  EXPECT_TRUE(simulator.stuck());
}

TEST(Simulator, ChecksRunAfterEveryStep) {
  Simulator simulator(1);
  SimRuntime runtime(simulator);
  int value = 0;
  int largest_step = 0;
  int seen = 0;
  simulator.on_step([&] {
    largest_step = std::max(largest_step, value - seen);
    seen = value;
  });
  for (int i = 0; i < 10; ++i) runtime.post([&value] { ++value; });
  simulator.run_for(1ms);
  EXPECT_EQ(value, 10);
  EXPECT_EQ(largest_step, 1);
}

TEST(PauseGate, WhatAPausedProcessWouldHaveDoneComesWhenItGoesOn) {
  Simulator simulator(1);
  PauseGate gate(simulator);
  SimRuntime runtime(simulator, gate);
  SimDiskExecutor disk(simulator, {}, &gate);
  std::vector<std::string> done;
  const auto note = [&](const char* what) { return [&done, what] { done.emplace_back(what); }; };
  runtime.spawn("sleeper",
                [](SimRuntime& own, std::vector<std::string>& log) -> asio::awaitable<void> {
                  co_await own.sleep_for(1s);
                  log.emplace_back("slept");
                }(runtime, done));
  simulator.run_for(1ms);
  gate.pause();
  runtime.post(note("posted"));
  runtime.start_timer(runtime.now() + 1s, note("timer"));
  const auto cancelled =
      runtime.start_timer(runtime.now() + 1s, note("cancelled while it stood still"));
  const auto late = runtime.start_timer(runtime.now() + 2s, note("cancelled afterwards"));
  disk.submit(note("disk"));
  simulator.run_for(1min);
  EXPECT_TRUE(done.empty());
  EXPECT_TRUE(runtime.cancel_timer(cancelled));
  gate.resume();
  EXPECT_TRUE(runtime.cancel_timer(late));
  simulator.run_for(1ms);
  std::ranges::sort(done);
  EXPECT_EQ(done, (std::vector<std::string>{"disk", "posted", "slept", "timer"}));
}

TEST(Simulator, WallClocksJumpTheOtherClockDoesNot) {
  Simulator simulator(1);
  SimRuntime runtime(simulator);
  const auto before = runtime.now();
  const auto wall = runtime.wall_clock_ms();
  runtime.jump_wall_clock(-5000);
  EXPECT_EQ(runtime.now(), before);
  EXPECT_EQ(runtime.wall_clock_ms(), wall - 5000);
  simulator.run_for(10ms);
  EXPECT_EQ(runtime.wall_clock_ms(), wall - 4990);
}

asio::awaitable<void> never(SimRuntime& runtime) { co_await runtime.sleep_for(100'000h); }

TEST(Simulator, WaitingCoroutinesGoWithTheWorld) {
  Simulator simulator(1);
  SimRuntime runtime(simulator);
  runtime.spawn("waits for ever", never(runtime));
  simulator.run_for(1ms);
}

TEST(SimRandom, StaysInItsBounds) {
  SimRandom random(9);
  for (int i = 0; i < 1000; ++i) {
    const auto n = random.between(5, 7);
    EXPECT_TRUE(n >= 5 && n <= 7);
    EXPECT_LT(random.below(3), 3u);
  }
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_FALSE(random.chance(0));
  EXPECT_TRUE(random.chance(1));
}

}  // namespace
}  // namespace mq::testing
