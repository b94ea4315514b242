#include "random_history.h"

#include <chrono>
#include <cstdlib>

#include "base/mutants.h"

namespace mq::testing {
namespace {

/// Real seconds to spend; MQ_STORAGE_SECONDS for longer runs, MQ_STORAGE_SEED for a single seed.
std::chrono::seconds time_budget() {
  const char* seconds = std::getenv("MQ_STORAGE_SECONDS");
  return std::chrono::seconds(seconds ? std::atoi(seconds) : 8);
}

constexpr int kOperations = 3'000;

TEST(RandomHistory, LogKeepsItsPromises) {
  if (const char* seed = std::getenv("MQ_STORAGE_SEED")) {
    const auto broken = RandomHistory(std::strtoull(seed, nullptr, 10)).run(kOperations);
    ASSERT_FALSE(broken) << *broken;
    return;
  }
  const auto deadline = std::chrono::steady_clock::now() + time_budget();
  std::uint64_t seed = 0;
  std::uint64_t restarts = 0;
  while (seed < 3 || std::chrono::steady_clock::now() < deadline) {
    RandomHistory history(++seed);
    const auto broken = history.run(kOperations);
    ASSERT_FALSE(broken) << *broken << "\nreplay with MQ_STORAGE_SEED=" << seed;
    restarts += history.restarts();
  }
  RecordProperty("seeds", static_cast<int>(seed));
  RecordProperty("restarts", static_cast<int>(restarts));
}

/// What the first history that notices the mistake says.
std::string noticed(const char* mutant, int seeds) {
  const base::EnabledMutant enabled(mutant);
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto broken = RandomHistory(static_cast<std::uint64_t>(seed)).run(kOperations);
    if (broken) return *broken;
  }
  return "nothing";
}

// A checker that never failed is not trusted.
TEST(RandomHistoryMutants, RepeatedFsyncIsCaught) {
  EXPECT_NE(noticed("retry_fsync_after_eio", 60), "nothing");
}
TEST(RandomHistoryMutants, UnsyncedTailIsCaught) {
  EXPECT_NE(noticed("serve_unsynced_tail", 60), "nothing");
}

/// The mistakes that histories without damage from outside cannot meet.
TEST(RecoveryMutants, BadCrcThatCutsTheLogIsCaught) {
  const auto length_after_damage = [] {
    StorageWorld world;
    world.start();
    for (int i = 0; i < 20; ++i) world.append(1, 500);
    world.settle();
    world.pass(std::chrono::seconds(70));  // below the recovery point: the journal does not help
    world.kill();
    world.files->flip(world.segment(0), 3'000, std::byte{1});
    world.start();
    return world.files->content(world.segment(0)).size();
  };
  const auto whole = length_after_damage();
  const base::EnabledMutant enabled("bad_crc_cuts_the_log");
  EXPECT_LT(length_after_damage(), whole);
}

TEST(RecoveryMutants, AppendTimeThatFollowsTheClockIsCaught) {
  const auto step = [] {
    StorageWorld world;
    world.start();
    const auto before = world.append().append_time_ms;
    world.runtime.jump_wall_clock(-5'000);
    return world.append().append_time_ms - before;
  };
  EXPECT_GE(step(), 0);
  const base::EnabledMutant enabled("append_time_follows_the_clock");
  EXPECT_LT(step(), 0);
}

TEST(RecoveryMutants, DeletedUnknownDirectoryIsCaught) {
  const auto files_left = [] {
    StorageWorld world;
    world.start(2);
    world.append(1, 100, 1);
    EXPECT_TRUE(world.stop());
    world.start(1);
    return world.files->files_below("data").size();
  };
  const auto kept = files_left();
  const base::EnabledMutant enabled("unknown_directories_deleted");
  EXPECT_LT(files_left(), kept);
}

}  // namespace
}  // namespace mq::testing
