#include "base/disk_executor.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/real/real_runtime.h"
#include "base/real/thread_disk_executor.h"
#include "support/run.h"
#include "support/sim_disk_executor.h"
#include "support/sim_runtime.h"

namespace mq::base {
namespace {

asio::awaitable<std::thread::id> run_one(DiskExecutor& disk, std::thread::id& worked_on) {
  auto work = [&worked_on] { worked_on = std::this_thread::get_id(); };
  co_await disk.run(work);
  co_return std::this_thread::get_id();
}

TEST(ThreadDiskExecutor, WorksElsewhereAndResumesTheCallerAtHome) {
  RealRuntime runtime;
  ThreadDiskExecutor disk(2);
  std::thread::id worked_on;
  EXPECT_EQ(testing::run(runtime, run_one(disk, worked_on)), std::this_thread::get_id());
  EXPECT_NE(worked_on, std::this_thread::get_id());
}

TEST(ThreadDiskExecutor, DestructorRunsWhatIsQueued) {
  std::atomic<int> done = 0;
  {
    ThreadDiskExecutor disk(1);
    for (int i = 0; i < 100; ++i) disk.submit([&done] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(ThreadDiskExecutor, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  {
    ThreadDiskExecutor disk(1);
    for (int i = 0; i < 100; ++i) disk.submit([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(ThreadDiskExecutor, ItsThreadsCarryItsName) {
  std::array<char, 16> name{};
  {
    ThreadDiskExecutor disk(1, "mq-append-and-more");
    disk.submit([&] { ::pthread_getname_np(::pthread_self(), name.data(), name.size()); });
  }
  EXPECT_STREQ(name.data(), "mq-append-and-m");
}

TEST(SimDiskExecutor, WorkTakesSimulatedTimeInThisThread) {
  testing::Simulator simulator(3);
  testing::SimDiskExecutor disk(simulator, {});
  std::thread::id worked_on;
  const auto start = simulator.now();
  EXPECT_EQ(testing::run(simulator, run_one(disk, worked_on)), std::this_thread::get_id());
  EXPECT_EQ(worked_on, std::this_thread::get_id());
  EXPECT_GE(simulator.now() - start, testing::SimDiskTimes{}.work_min);
  EXPECT_EQ(disk.waiting(), 0u);
}

TEST(SimDiskExecutor, OneThreadKeepsTheOrderSeveralDoNot) {
  for (const std::size_t threads : {1, 4}) {
    testing::Simulator simulator(5);
    testing::SimDiskTimes times;
    times.threads = threads;
    testing::SimDiskExecutor disk(simulator, times);
    std::vector<int> order;
    for (int i = 0; i < 100; ++i) disk.submit([&order, i] { order.push_back(i); });
    simulator.run_for(std::chrono::seconds(60));
    ASSERT_EQ(order.size(), 100u);
    EXPECT_EQ(std::is_sorted(order.begin(), order.end()), threads == 1);
  }
}

TEST(SimDiskExecutor, DestructorRunsWhatIsQueued) {
  testing::Simulator simulator(3);
  int done = 0;
  {
    testing::SimDiskExecutor disk(simulator, {});
    for (int i = 0; i < 10; ++i) disk.submit([&done] { ++done; });
  }
  EXPECT_EQ(done, 10);
  simulator.run_for(std::chrono::seconds(60));
  EXPECT_EQ(done, 10);
}

}  // namespace
}  // namespace mq::base
