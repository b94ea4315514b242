#include "base/wait_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::base {
namespace {

using namespace std::chrono_literals;

class WaitListTest : public ::testing::Test {
 protected:
  testing::Simulator simulator{1};
  testing::SimRuntime runtime{simulator};
  std::vector<std::pair<int, bool>> woken;

  asio::awaitable<void> waiter(WaitList& list, int name, TimePoint deadline) {
    const bool notified = co_await list.wait_until(deadline);
    woken.emplace_back(name, notified);
  }
  void start(WaitList& list, int name, TimePoint deadline = TimePoint::max()) {
    runtime.spawn("waiter", waiter(list, name, deadline));
  }
  void settle() { simulator.run_for(1ms); }
};

TEST_F(WaitListTest, NotifyWakesAllInTheOrderTheyCame) {
  WaitList list(runtime);
  for (int i = 0; i < 3; ++i) start(list, i);
  settle();
  EXPECT_FALSE(list.empty());
  EXPECT_TRUE(woken.empty());
  list.notify_all();
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(woken.empty()) << "they run later, from the executor";
  settle();
  EXPECT_EQ(woken, (std::vector<std::pair<int, bool>>{{0, true}, {1, true}, {2, true}}));
}

TEST_F(WaitListTest, ADeadlineWakesOnlyItsOwnWaiter) {
  WaitList list(runtime);
  start(list, 1, runtime.now() + 10ms);
  start(list, 2, runtime.now() + 1h);
  simulator.run_for(20ms);
  EXPECT_EQ(woken, (std::vector<std::pair<int, bool>>{{1, false}}));
  list.notify_all();
  settle();
  ASSERT_EQ(woken.size(), 2u);
  EXPECT_EQ(woken.back(), std::pair(2, true));
}

TEST_F(WaitListTest, ANotifiedWaiterIsNotWokenAgainByItsDeadline) {
  WaitList list(runtime);
  start(list, 1, runtime.now() + 10ms);
  settle();
  list.notify_all();
  simulator.run_for(1h);
  EXPECT_EQ(woken.size(), 1u);
}

TEST_F(WaitListTest, DestructionWakesEveryone) {
  auto list = std::make_unique<WaitList>(runtime);
  start(*list, 1, runtime.now() + 1h);
  start(*list, 2);
  settle();
  list.reset();
  settle();
  EXPECT_EQ(woken.size(), 2u);
}

TEST_F(WaitListTest, WhoWaitsAgainFromItsWakeUpIsNotWokenTwice) {
  WaitList list(runtime);
  start(list, 1);
  settle();
  list.notify_all();
  start(list, 2);
  settle();
  EXPECT_EQ(woken.size(), 1u);
  EXPECT_FALSE(list.empty());
}

}  // namespace
}  // namespace mq::base
