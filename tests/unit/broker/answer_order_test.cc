#include "broker/answer_order.h"

#include <gtest/gtest.h>

namespace mq::broker {
namespace {

struct AnswerOrderTest : ::testing::Test {
  AnswerOrder order;
  std::vector<int> answered;

  static model::PartitionId partition(int number) { return {{}, number}; }
  void done(AnswerOrder::Ticket ticket, int request) {
    order.done(ticket, [this, request] { answered.push_back(request); });
  }
};

// PRO-3
TEST_F(AnswerOrderTest, ALaterRequestOfOnePartitionWaitsForTheEarlier) {
  const auto first = order.begin({partition(1)});
  const auto second = order.begin({partition(1)});
  done(second, 2);
  EXPECT_TRUE(answered.empty());
  done(first, 1);
  EXPECT_EQ(answered, (std::vector<int>{1, 2}));
  EXPECT_TRUE(order.empty());
}

TEST_F(AnswerOrderTest, OtherPartitionsDoNotWait) {
  const auto first = order.begin({partition(1)});
  const auto second = order.begin({partition(2)});
  done(second, 2);
  EXPECT_EQ(answered, (std::vector<int>{2}));
  done(first, 1);
  EXPECT_TRUE(order.empty());
}

TEST_F(AnswerOrderTest, ARequestOfTwoPartitionsTiesThemTogether) {
  const auto first = order.begin({partition(1), partition(3)});
  const auto second = order.begin({partition(1), partition(2)});
  const auto third = order.begin({partition(2)});
  done(third, 3);
  done(second, 2);
  EXPECT_TRUE(answered.empty());
  done(first, 1);
  EXPECT_EQ(answered, (std::vector<int>{1, 2, 3}));
}

TEST_F(AnswerOrderTest, APartitionNamedTwiceCountsOnce) {
  const auto first = order.begin({partition(1), partition(1)});
  const auto second = order.begin({partition(1), partition(2), partition(1)});
  done(second, 2);
  EXPECT_TRUE(answered.empty());
  done(first, 1);
  EXPECT_EQ(answered, (std::vector<int>{1, 2}));
  EXPECT_TRUE(order.empty());
}

}  // namespace
}  // namespace mq::broker
