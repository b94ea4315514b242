#include "net/memory_budget.h"

#include <gtest/gtest.h>

#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::net {
namespace {

struct MemoryBudgetTest : ::testing::Test {
  testing::Simulator simulator{1};
  testing::SimRuntime runtime{simulator};

  auto start(asio::awaitable<std::size_t> take) {
    auto outcome = testing::start_for_outcome(simulator.executor(), std::move(take), [] {});
    settle();
    return outcome;
  }
  void settle() {
    while (simulator.step()) {
    }
  }
};

// PRO-1
TEST_F(MemoryBudgetTest, WhoeverFindsItSpentWaitsForARelease) {
  MemoryBudget budget(runtime, 100);
  EXPECT_EQ(testing::run(simulator, budget.take(60)), 60U);
  const auto second = start(budget.take(50));
  EXPECT_FALSE(second->value);
  EXPECT_EQ(budget.used(), 60U);
  budget.release(60);
  settle();
  EXPECT_EQ(second->value, 50U);
  EXPECT_EQ(budget.used(), 50U);
  budget.release(50);
}

TEST_F(MemoryBudgetTest, FirstComeFirstServed) {
  MemoryBudget budget(runtime, 100);
  ASSERT_TRUE(budget.try_take(60));
  const auto large = start(budget.take(90));
  const auto small = start(budget.take(10));
  EXPECT_FALSE(large->value);
  EXPECT_FALSE(small->value);  // it would fit, but nobody overtakes
  EXPECT_FALSE(budget.try_take(1));
  budget.release(60);
  settle();
  EXPECT_TRUE(large->value);
  EXPECT_TRUE(small->value);
  budget.release(100);
}

TEST_F(MemoryBudgetTest, MoreThanEverythingIsEverything) {
  MemoryBudget budget(runtime, 100);
  EXPECT_EQ(testing::run(simulator, budget.take(1000)), 100U);
  budget.release(100);
}

TEST_F(MemoryBudgetTest, ALeaseGivesBackWhatItHas) {
  MemoryBudget budget(runtime, 100);
  ASSERT_TRUE(budget.try_take(80));
  {
    Lease lease(budget, 80);
    lease.shrink(30);
    EXPECT_EQ(budget.used(), 30U);
    Lease moved = std::move(lease);
    EXPECT_EQ(budget.used(), 30U);
    EXPECT_EQ(moved.bytes(), 30U);
  }
  EXPECT_EQ(budget.used(), 0U);
}

}  // namespace
}  // namespace mq::net
