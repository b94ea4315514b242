// Which partitions go back to the first of their replicas, and when.
#include "controller/leader_balance.h"

#include <gtest/gtest.h>

namespace mq::controller {
namespace {

using namespace std::chrono_literals;
using model::BrokerId;
using model::PartitionId;
using Seen = LeaderBalance::Seen;

const base::Uuid kTopic = base::Uuid::from_random(1, 1);

class LeaderBalanceTest : public ::testing::Test {
 protected:
  /// Partitions of which broker 1 is the first, and how many of them it leads.
  void partitions(int all, int led) {
    seen_.clear();
    for (int i = 0; i < all; ++i) seen_.push_back({{kTopic, i}, BrokerId(1), i < led, true});
  }
  std::vector<PartitionId> after(base::Duration span) {
    now_ += span;
    return balance_.due(seen_, now_);
  }
  void move(const std::vector<PartitionId>& ids) {
    for (const auto& id : ids) {
      balance_.moved(id, now_);
      seen_[static_cast<std::size_t>(id.partition)].leads = true;
    }
  }

  LeaderBalance balance_{BalanceRules()};
  base::TimePoint now_{1000s};
  std::vector<Seen> seen_;
};

TEST_F(LeaderBalanceTest, ABrokerThatIsBackGetsItsLeadersAfterAMinuteAndFewAtATime) {
  partitions(120, 0);
  EXPECT_TRUE(after(0s).empty());
  EXPECT_TRUE(balance_.something_waits());
  EXPECT_TRUE(after(59s).empty());
  auto moves = after(1s);
  EXPECT_EQ(moves.size(), 50u);
  move(moves);
  moves = after(1s);
  EXPECT_EQ(moves.size(), 50u);
  move(moves);
  EXPECT_EQ(after(1s).size(), 20u);
}

TEST_F(LeaderBalanceTest, AFewThatAreLedElsewhereAreLeftAlone) {
  partitions(30, 27);
  EXPECT_TRUE(after(0s).empty());
  EXPECT_TRUE(after(1h).empty());
  EXPECT_FALSE(balance_.something_waits());
  partitions(30, 26);
  EXPECT_EQ(after(0s).size(), 3u) << "the fourth has not waited yet";
  EXPECT_EQ(after(1min).size(), 4u);
}

TEST_F(LeaderBalanceTest, OnlyWhoMayLeadIsGivenAnything) {
  partitions(4, 0);
  for (auto& one : seen_) one.may_lead = false;
  EXPECT_TRUE(after(0s).empty());
  EXPECT_TRUE(after(10min).empty());
  for (auto& one : seen_) one.may_lead = true;
  EXPECT_TRUE(after(1s).empty());
  EXPECT_TRUE(after(59s).empty());
  EXPECT_EQ(after(1s).size(), 4u);
}

// A broker that cannot keep what it leads.
TEST_F(LeaderBalanceTest, EachLossDoublesTheTimeBeforeTheNextMove) {
  partitions(1, 0);
  EXPECT_TRUE(after(0s).empty());
  base::Duration wait = 1min;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(after(wait - 1s).empty()) << i;
    const auto moves = after(1s);
    ASSERT_EQ(moves.size(), 1u) << i;
    move(moves);
    EXPECT_TRUE(after(10s).empty());
    seen_[0].leads = false;
    EXPECT_TRUE(after(1s).empty());
    wait = std::min<base::Duration>(2 * wait, 128min);
  }
  // Kept for half an hour it is trusted again.
  ASSERT_TRUE(after(wait - 1s).empty());
  move(after(1s));
  EXPECT_TRUE(after(31min).empty());
  seen_[0].leads = false;
  EXPECT_TRUE(after(1s).empty());
  EXPECT_EQ(after(1min).size(), 1u);
}

TEST_F(LeaderBalanceTest, WhatIsHeldStaysWhereItIs) {
  partitions(2, 0);
  EXPECT_TRUE(after(0s).empty());
  balance_.hold(seen_[0].id, now_ + 1h);
  EXPECT_EQ(after(2min), std::vector{seen_[1].id});
  EXPECT_EQ(after(59min).size(), 2u);
}

TEST_F(LeaderBalanceTest, SwitchedOffItMovesNothing) {
  BalanceRules off;
  off.on = false;
  balance_ = LeaderBalance(off);
  partitions(4, 0);
  EXPECT_TRUE(after(0s).empty());
  EXPECT_TRUE(after(1h).empty());
}

}  // namespace
}  // namespace mq::controller
