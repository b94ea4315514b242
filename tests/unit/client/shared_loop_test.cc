#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "client/shell_shared_loop.h"

namespace mq::client {
namespace {

using namespace std::chrono_literals;
using Clock = SharedLoop::Clock;

/// A loop with its I/O thread.
class SharedLoopTest : public ::testing::Test {
 protected:
  SharedLoopTest() : loop(runtime), io([this] { loop.serve(); }) {}
  ~SharedLoopTest() override { stop(); }

  void stop() {
    if (!io.joinable()) return;
    loop.stop();
    io.join();
  }
  /// Which thread runs what is posted.
  std::future<std::thread::id> ask() {
    auto answer = std::make_shared<std::promise<std::thread::id>>();
    runtime.post([answer] { answer->set_value(std::this_thread::get_id()); });
    return answer->get_future();
  }
  static Clock::time_point late() { return Clock::now() + 20s; }

  base::RealRuntime runtime;
  SharedLoop loop;
  std::thread io;
};

TEST_F(SharedLoopTest, TheGuestRunsTheLoopWhileItWaits) {
  EXPECT_EQ(ask().get(), io.get_id());
  bool posted = false;
  std::thread::id ran;
  EXPECT_TRUE(loop.visit(late(), [&] {
    if (!std::exchange(posted, true)) runtime.post([&] { ran = std::this_thread::get_id(); });
    return ran != std::thread::id();
  }));
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST_F(SharedLoopTest, AThreadWithSomethingToDoRunsALoopThatWasSteppedBackFrom) {
  bool here = false;
  for (int tries = 0; tries < 1000 && !here; ++tries) {
    runtime.post([this] { loop.step_back(); });
    loop.hurry();
    while (!loop.on_loan()) {
      runtime.post([this] { loop.step_back(); });  // the one before may have come too early
      std::this_thread::sleep_for(SharedLoop::kPause);
    }
    auto ran = ask();
    loop.nudge();
    here = ran.get() == std::this_thread::get_id();  // else the loan was over already
  }
  EXPECT_TRUE(here);
  EXPECT_EQ(ask().get(), io.get_id());
}

TEST_F(SharedLoopTest, WhatIsPostedAndNudgedWhileTheIoThreadStepsBackIsNotForgotten) {
  for (int i = 0; i < 300; ++i) {
    std::this_thread::sleep_for(SharedLoop::kPause);  // sooner, it would not step back
    runtime.post([this] { loop.step_back(); });
    auto ran = ask();
    loop.nudge();
    ran.get();
  }
}

TEST_F(SharedLoopTest, TheIoThreadGoesOnOnceTheLoanIsOver) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(loop.visit(Clock::now(), [] { return false; }));
    EXPECT_EQ(ask().get(), io.get_id());  // nobody comes back
  }
}

TEST_F(SharedLoopTest, HurryEndsTheLoanAndIsKeptWhileAGuestIsThere) {
  EXPECT_TRUE(loop.visit(late(), [&] {
    loop.hurry();
    return true;
  }));
  EXPECT_EQ(ask().get(), io.get_id());
  EXPECT_TRUE(loop.visit(late(), [] { return true; }));
  loop.hurry();
  EXPECT_EQ(ask().get(), io.get_id());
}

TEST_F(SharedLoopTest, TimersOfTheLoopFireWhileAGuestWaits) {
  bool fired = false;
  std::promise<void> started;
  runtime.post([&] {
    runtime.start_timer(runtime.now() + 5ms, [&] { fired = true; });
    started.set_value();
  });
  started.get_future().wait();
  EXPECT_TRUE(loop.visit(late(), [&] { return fired; }));
}

TEST_F(SharedLoopTest, AGuestLeavesAtItsDeadlineAndWhenInterrupted) {
  const auto before = Clock::now();
  EXPECT_TRUE(loop.visit(before + 20ms, [] { return false; }));
  EXPECT_GE(Clock::now() - before, 20ms);
  std::atomic<bool> enough{false};
  std::thread other([&] {
    std::this_thread::sleep_for(10ms);
    enough = true;
    loop.interrupt();
  });
  EXPECT_TRUE(loop.visit(late(), [&] { return enough.load(); }));
  other.join();
}

TEST_F(SharedLoopTest, OneGuestAtATimeAndNoneAfterTheEnd) {
  std::atomic<bool> inside{false};
  std::atomic<bool> enough{false};
  std::thread first([&] {
    EXPECT_TRUE(loop.visit(late(), [&] {
      inside = true;
      return enough.load();
    }));
  });
  while (!inside) std::this_thread::yield();
  EXPECT_FALSE(loop.visit(late(), [] { return true; }));
  enough = true;
  loop.interrupt();
  first.join();

  inside = false;
  std::thread last([&] {
    EXPECT_TRUE(loop.visit(late(), [&] {
      inside = true;
      return false;
    }));
  });
  while (!inside) std::this_thread::yield();
  loop.stop();
  last.join();
  stop();
  EXPECT_FALSE(loop.visit(late(), [] { return true; }));
}

TEST_F(SharedLoopTest, PostsFromManyThreadsAllRunOneAtATime) {
  constexpr int kThreads = 3;
  constexpr int kPosts = 2000;
  int count = 0;  // of the loop, whoever runs it
  std::vector<std::thread> posters;
  for (int t = 0; t < kThreads; ++t) {
    posters.emplace_back([&] {
      for (int i = 0; i < kPosts; ++i) {
        runtime.post([&] { ++count; });
        if (i % 100 == 0) loop.hurry();
      }
    });
  }
  int seen = 0;
  while (seen < kThreads * kPosts) {
    const int target = std::min(seen + 50, kThreads * kPosts);
    EXPECT_TRUE(loop.visit(late(), [&] { return (seen = count) >= target; }));
  }
  for (auto& poster : posters) poster.join();
}

}  // namespace
}  // namespace mq::client
