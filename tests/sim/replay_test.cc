// A seed is of use only if it replays: whatever ran before in the process, and wherever memory was
// given out, a world goes the same way.

#include <gtest/gtest.h>

#include <algorithm>

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

struct Failed {
  std::string_view world;
  std::uint64_t seed;
};

/// Seeds that once found something. A world that has changed since goes another way under them;
/// what they found has a test of its own as well.
TEST(ReplayOnce, SeedsThatFailedOnceDoNotFailAgain) {
  const Failed failed[] = {
      {"replicated", 12},     // a damaged leader that people put back did not give way again
      {"replicated", 149},    // nor to a replica that came later
      {"replicated", 7024},   // nor waited for the controller's answer
      {"replicated", 112},    // a store that did not answer was taken for an unknown broker
      {"replicated", 1072},   // a replica that reported before the last leader was lost
      {"replicated", 41021},  // a topic that was deleted after the copy of a disk was made
      {"replicated",
       41057},  // a connection that was closed here ended what was asked for the caller
      {"replicated", 7000240},   // a start after a power cut that was broken off
      {"replicated", 900027},    // a damaged replica that its leader took in again
      {"replicated", 93168656},  // a batch sent again under a new epoch, which another replica had
  };
  for (const auto& [name, seed] : failed) {
    const auto world = std::ranges::find(worlds(), name, &World::name);
    ASSERT_NE(world, worlds().end());
    EXPECT_EQ(world->run(seed).violation, "") << name << " " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Replay, ::testing::ValuesIn(worlds()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mq::sim
