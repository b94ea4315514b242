// A seed is of use only if it replays: whatever ran before in the process, and wherever memory was
// given out, a world goes the same way.

#include <gtest/gtest.h>

#include "sim/worlds.h"

namespace mq::sim {
namespace {

class Replay : public ::testing::TestWithParam<World> {};

/// Some have several workers, some fail half way; what runs between moves addresses.
TEST_P(Replay, ASeedGoesTheSameWayAgain) {
  constexpr std::uint64_t kSeeds = 4;
  std::vector<Report> first;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) first.push_back(GetParam().run(seed));
  for (std::uint64_t seed = kSeeds; seed > 0; --seed) {
    const Report again = GetParam().run(seed);
    const Report& before = first[seed - 1];
    EXPECT_EQ(again.steps, before.steps) << "seed " << seed;
    EXPECT_EQ(again.records, before.records) << "seed " << seed;
    EXPECT_EQ(again.trace_hash, before.trace_hash) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Replay, ::testing::ValuesIn(worlds()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mq::sim
