#include "replication/epoch_history.h"

#include <gtest/gtest.h>

#include <vector>

namespace mq::replication {
namespace {

using model::LeaderEpoch;
using model::Offset;
using storage::EpochStart;

std::vector<EpochStart> starts(std::vector<std::pair<int, int>> epochs) {
  std::vector<EpochStart> all;
  for (const auto& [epoch, start] : epochs) all.push_back({LeaderEpoch(epoch), Offset(start)});
  return all;
}
EpochEnd at(int epoch, int end) { return {LeaderEpoch(epoch), Offset(end)}; }

TEST(EpochHistory, AnEpochEndsWhereTheNextOneBegins) {
  const auto log = starts({{1, 0}, {3, 10}, {7, 25}});
  EXPECT_EQ(end_of_epoch(log, Offset(40), LeaderEpoch(1)), at(1, 10));
  EXPECT_EQ(end_of_epoch(log, Offset(40), LeaderEpoch(3)), at(3, 25));
  EXPECT_EQ(end_of_epoch(log, Offset(40), LeaderEpoch(7)), at(7, 40));
}

TEST(EpochHistory, AnUnknownEpochIsAnsweredWithTheOneBelow) {
  const auto log = starts({{1, 0}, {3, 10}, {7, 25}});
  EXPECT_EQ(end_of_epoch(log, Offset(40), LeaderEpoch(2)), at(1, 10));
  EXPECT_EQ(end_of_epoch(log, Offset(40), LeaderEpoch(6)), at(3, 25));
  EXPECT_EQ(end_of_epoch(log, Offset(40), LeaderEpoch(9)), at(7, 40));
}

TEST(EpochHistory, BelowTheOldestEpochNothingIsKnown) {
  EXPECT_EQ(end_of_epoch(starts({{3, 10}}), Offset(40), LeaderEpoch(2)), at(-1, 10));
  EXPECT_EQ(end_of_epoch({}, Offset(0), LeaderEpoch(2)), at(-1, 0));
}

TEST(EpochHistory, AnEmptyEpochEndsWhereItBegins) {
  const auto log = starts({{1, 0}, {3, 10}});
  EXPECT_EQ(end_of_epoch(log, Offset(10), LeaderEpoch(3)), at(3, 10));
  EXPECT_EQ(end_of_epoch(log, Offset(10), LeaderEpoch(2)), at(1, 10));
}

TEST(Divergence, APrefixOfTheLeadersLogIsNone) {
  const auto log = starts({{1, 0}, {3, 10}});
  EXPECT_FALSE(divergence(log, Offset(20), LeaderEpoch(1), Offset(6)));
  EXPECT_FALSE(divergence(log, Offset(20), LeaderEpoch(1), Offset(10)));
  EXPECT_FALSE(divergence(log, Offset(20), LeaderEpoch(3), Offset(20)));
}

TEST(Divergence, WhatGoesPastTheEndOfItsEpochIsOne) {
  const auto log = starts({{1, 0}, {3, 10}});
  EXPECT_EQ(divergence(log, Offset(20), LeaderEpoch(1), Offset(12)), at(1, 10));
  EXPECT_EQ(divergence(log, Offset(20), LeaderEpoch(3), Offset(21)), at(3, 20));
}

TEST(Divergence, AnEpochThatTheLeaderNeverSawIsOneHoweverShortTheLog) {
  const auto log = starts({{1, 0}, {3, 10}});
  EXPECT_EQ(divergence(log, Offset(20), LeaderEpoch(2), Offset(5)), at(1, 10));
}

TEST(Divergence, AnEmptyLogGoesAlongAsFarAsTheLeaderReaches) {
  const auto log = starts({{3, 10}});
  EXPECT_FALSE(divergence(log, Offset(20), LeaderEpoch(), Offset(15)));
  EXPECT_EQ(divergence(log, Offset(20), LeaderEpoch(), Offset(21)), at(-1, 20));
}

TEST(Cut, GoesToTheEarlierOfBothEnds) {
  const auto own = starts({{1, 0}, {2, 8}});
  EXPECT_EQ(cut_for(own, Offset(12), at(1, 10)), Offset(8));
  EXPECT_EQ(cut_for(own, Offset(12), at(1, 5)), Offset(5));
  EXPECT_EQ(cut_for(own, Offset(12), at(2, 11)), Offset(11));
  EXPECT_EQ(cut_for(own, Offset(12), at(-1, 0)), Offset(0));
}

}  // namespace
}  // namespace mq::replication
