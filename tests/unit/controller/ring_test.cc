#include "controller/ring.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace mq::controller {
namespace {

base::Uuid topic(std::uint64_t n) { return base::Uuid::from_random(n, n * 31 + 1); }

std::vector<Ring::Broker> brokers(std::vector<std::size_t> partitions) {
  std::vector<Ring::Broker> all;
  for (std::size_t i = 0; i < partitions.size(); ++i)
    all.push_back(
        {model::BrokerId(static_cast<std::int32_t>(i + 1)), 1, partitions[i], partitions[i]});
  return all;
}

std::vector<std::int32_t> numbers(std::int32_t count) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::map<std::int32_t, std::size_t> counts(const std::vector<Ring::Replicas>& chosen) {
  std::map<std::int32_t, std::size_t> count;
  for (const auto& replicas : chosen) {
    for (const auto broker : replicas) ++count[broker.value()];
  }
  return count;
}

std::map<std::int32_t, std::size_t> firsts(const std::vector<Ring::Replicas>& chosen) {
  std::map<std::int32_t, std::size_t> count;
  for (const auto& replicas : chosen) ++count[replicas.front().value()];
  return count;
}

TEST(RingTest, WithoutBrokersThereIsNoPlace) {
  EXPECT_TRUE(Ring({}).place(topic(1), numbers(3), {}, 1).empty());
}

TEST(RingTest, OneBrokerGetsEverything) {
  const auto chosen = Ring(brokers({0})).place(topic(1), numbers(7), {}, 1);
  EXPECT_EQ(counts(chosen), (std::map<std::int32_t, std::size_t>{{1, 7}}));
}

TEST(RingTest, TheSameTopicGoesToTheSamePlaces) {
  const Ring ring(brokers({0, 0, 0}));
  EXPECT_EQ(ring.place(topic(1), numbers(9), {}, 1), ring.place(topic(1), numbers(9), {}, 1));
  EXPECT_NE(ring.place(topic(1), numbers(9), {}, 1), ring.place(topic(2), numbers(9), {}, 1));
}

TEST(RingTest, AsManyPartitionsAsBrokersMeansOneEach) {
  for (std::uint64_t n = 0; n < 50; ++n) {
    const auto chosen = Ring(brokers({0, 0, 0})).place(topic(n), numbers(3), {}, 1);
    EXPECT_EQ(counts(chosen), (std::map<std::int32_t, std::size_t>{{1, 1}, {2, 1}, {3, 1}}));
  }
}

TEST(RingTest, NoBrokerGetsMuchMoreThanItsShare) {
  for (std::uint64_t n = 0; n < 20; ++n) {
    const auto chosen = Ring(brokers({0, 0, 0, 0, 0})).place(topic(n), numbers(1000), {}, 1);
    for (const auto& [broker, count] : counts(chosen)) EXPECT_LE(count, 230u) << broker;
  }
}

TEST(RingTest, SmallTopicsTogetherAreSpreadToo) {
  std::vector<std::size_t> have{0, 0, 0};
  for (std::uint64_t n = 0; n < 300; ++n) {
    const auto chosen = Ring(brokers(have)).place(topic(n), numbers(1), {}, 1);
    ++have[static_cast<std::size_t>(chosen[0].front().value() - 1)];
  }
  for (const auto count : have) EXPECT_LE(count, 115u);
}

TEST(RingTest, ATopicThatGrowsStaysSpread) {
  const Ring ring(brokers({2, 0, 0}));
  const std::vector<Ring::Replicas> existing(2, {model::BrokerId(1)});
  const auto chosen = ring.place(topic(1), numbers(4), existing, 1);
  const auto count = counts(chosen);
  EXPECT_EQ(count, (std::map<std::int32_t, std::size_t>{{2, 2}, {3, 2}}));
}

// A new topic is spread over all, although the new broker alone has room for it.
TEST(RingTest, ANewBrokerDoesNotGetAWholeTopic) {
  const auto chosen = Ring(brokers({1000, 1000, 0})).place(topic(1), numbers(6), {}, 1);
  EXPECT_EQ(counts(chosen).at(3), 2u);
  EXPECT_EQ(counts(chosen).size(), 3u);
}

TEST(RingTest, ABrokerWithTwiceTheWeightGetsTwiceAsMuch) {
  auto all = brokers({0, 0});
  all[1].weight = 2;
  const auto count = counts(Ring(all).place(topic(3), numbers(900), {}, 1));
  EXPECT_NEAR(static_cast<double>(count.at(2)), 600, 45);
}

// Most of what is there stays where it would be put again when a broker comes.
TEST(RingTest, AnotherBrokerMovesLittle) {
  const auto before = Ring(brokers({0, 0, 0, 0})).place(topic(1), numbers(1000), {}, 1);
  const auto after = Ring(brokers({0, 0, 0, 0, 0})).place(topic(1), numbers(1000), {}, 1);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i) moved += before[i] == after[i] ? 0 : 1;
  EXPECT_LT(moved, 450u);
}

TEST(RingTest, ReplicasAreOnDifferentBrokers) {
  for (std::size_t copies = 1; copies <= 5; ++copies) {
    const auto chosen = Ring(brokers({0, 0, 0, 0, 0})).place(topic(1), numbers(200), {}, copies);
    ASSERT_EQ(chosen.size(), 200u);
    for (const auto& replicas : chosen) {
      EXPECT_EQ(replicas.size(), copies);
      EXPECT_EQ(std::set(replicas.begin(), replicas.end()).size(), copies);
    }
  }
}

TEST(RingTest, FewerBrokersThanReplicasIsNoPlace) {
  EXPECT_TRUE(Ring(brokers({0, 0})).place(topic(1), numbers(1), {}, 3).empty());
}

TEST(RingTest, ReplicasAndThoseThatLeadAtFirstAreBothSpread) {
  for (std::uint64_t n = 0; n < 20; ++n) {
    const auto chosen = Ring(brokers({0, 0, 0, 0, 0})).place(topic(n), numbers(500), {}, 3);
    for (const auto& [broker, count] : counts(chosen)) EXPECT_LE(count, 345u) << broker;
    for (const auto& [broker, count] : firsts(chosen)) EXPECT_LE(count, 115u) << broker;
  }
  const auto everywhere = Ring(brokers({0, 0, 0})).place(topic(1), numbers(12), {}, 3);
  for (const auto& [broker, count] : firsts(everywhere)) EXPECT_EQ(count, 4u) << broker;
}

TEST(RingTest, ATopicWithReplicasThatGrowsStaysSpread) {
  const Ring ring(brokers({0, 0, 0, 0}));
  const auto existing = ring.place(topic(1), numbers(4), {}, 2);
  const auto more = ring.place(topic(1), numbers(8), existing, 2);
  auto count = counts(existing);
  for (const auto& [broker, added] : counts(more)) count[broker] += added;
  for (const auto& [broker, all] : count) EXPECT_LE(all, 7u) << broker;
}

TEST(RingTest, AFullBrokerGetsNoReplica) {
  auto all = brokers({0, 0, 0});
  all[2].replicas_max = 0;
  const auto chosen = Ring(all).place(topic(1), numbers(10), {}, 2);
  ASSERT_EQ(chosen.size(), 10u);
  EXPECT_FALSE(counts(chosen).contains(3));
  all[1].replicas_max = 5;
  EXPECT_TRUE(Ring(all).place(topic(1), numbers(10), {}, 2).empty());
}

}  // namespace
}  // namespace mq::controller
