#include "controller/change_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::controller {
namespace {

asio::awaitable<void> take_turn(ChangeQueue& queue, base::Runtime& runtime, int number,
                                std::vector<int>& order, int& inside) {
  const auto turn = co_await queue.wait_for_turn();
  EXPECT_EQ(++inside, 1);
  order.push_back(number);
  co_await runtime.sleep_for(std::chrono::milliseconds(10 - number));
  --inside;
}

TEST(ChangeQueue, OneAtATimeInOrderOfArrival) {
  mq::testing::Simulator simulator(1);
  mq::testing::SimRuntime runtime(simulator);
  ChangeQueue queue(runtime);
  base::TaskGroup tasks(runtime);
  std::vector<int> order;
  int inside = 0;
  for (int number = 0; number < 5; ++number)
    tasks.spawn("turn", take_turn(queue, runtime, number, order, inside));
  simulator.run_until([&] { return queue.length() == 5; }, std::chrono::seconds(1));
  EXPECT_EQ(queue.length(), 5u);
  mq::testing::run(simulator, tasks.wait());
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(queue.length(), 0u);
}

}  // namespace
}  // namespace mq::controller
