#include "mqctl/bench/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace mq::mqctl {
namespace {

using std::chrono::nanoseconds;

TEST(Histogram, EmptyHasZeroPercentiles) {
  const Histogram histogram;
  EXPECT_EQ(histogram.percentile(0.99).count(), 0);
  EXPECT_EQ(histogram.max().count(), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.add(nanoseconds(i));
  EXPECT_EQ(histogram.percentile(0.5).count(), 50);
  EXPECT_EQ(histogram.percentile(0.99).count(), 99);
  EXPECT_EQ(histogram.percentile(1.0).count(), 100);
}

TEST(Histogram, TakesTheWholeRange) {
  Histogram histogram;
  histogram.add(nanoseconds(-5));
  histogram.add(nanoseconds(INT64_MAX));
  EXPECT_EQ(histogram.count(), 2U);
  EXPECT_EQ(histogram.percentile(0.5).count(), 0);
  EXPECT_EQ(histogram.percentile(1.0).count(), INT64_MAX);
}

/// The promise: never below the true percentile, at most 1/128 above it, over many sizes and
/// shapes.
TEST(Histogram, PercentilesAreWithinTheirBoundOfTheTruth) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    Histogram histogram;
    std::vector<std::int64_t> values;
    const auto count = 1 + random() % 3000;
    const double scale = std::pow(10.0, static_cast<double>(random() % 12));
    std::exponential_distribution<double> shape(1.0);
    for (std::uint64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<std::int64_t>(shape(random) * scale));
      histogram.add(nanoseconds(values.back()));
    }
    std::sort(values.begin(), values.end());
    for (const double share : {0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank =
          static_cast<std::size_t>(std::max(1.0, std::ceil(share * static_cast<double>(count))));
      const auto truth = values[rank - 1];
      const auto said = histogram.percentile(share).count();
      EXPECT_GE(said, truth) << "round " << round << " share " << share;
      EXPECT_LE(said, truth + truth / 128 + 1) << "round " << round << " share " << share;
    }
    EXPECT_EQ(histogram.max().count(), values.back());
  }
}

TEST(Histogram, MergedEqualsOneThatSawAll) {
  std::mt19937_64 random(9);
  Histogram all;
  Histogram left;
  Histogram right;
  for (int i = 0; i < 10'000; ++i) {
    const nanoseconds value(static_cast<std::int64_t>(random() % 1'000'000));
    all.add(value);
    (i % 3 == 0 ? left : right).add(value);
  }
  left.merge(right);
  EXPECT_EQ(left.count(), all.count());
  for (const double share : {0.1, 0.5, 0.99, 1.0})
    EXPECT_EQ(left.percentile(share), all.percentile(share));
}

}  // namespace
}  // namespace mq::mqctl
