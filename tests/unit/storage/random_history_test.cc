#include "random_history.h"

#include <chrono>
#include <cstdlib>

#include "base/mutants.h"

namespace mq::testing {
namespace {

/// MQ_STORAGE_SEED replays one seed; else MQ_STORAGE_SEEDS of them are tried, or as many as there
/// is time for in MQ_STORAGE_SECONDS.
std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

constexpr int kOperations = 3'000;

TEST(RandomHistory, LogKeepsItsPromises) {
  if (const auto seed = number("MQ_STORAGE_SEED", 0); seed != 0) {
    const auto broken = RandomHistory(seed).run(kOperations);
    ASSERT_FALSE(broken) << *broken;
    return;
  }
  const auto seeds = number("MQ_STORAGE_SEEDS", 0);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(number("MQ_STORAGE_SECONDS", 5));
  std::uint64_t seed = number("MQ_STORAGE_FIRST", 1) - 1;
  const std::uint64_t last = seed + std::max<std::uint64_t>(seeds, 3);
  std::uint64_t restarts = 0;
  while (seed < last || (seeds == 0 && std::chrono::steady_clock::now() < deadline)) {
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

/// The checkpoint stands in for a lost journal: what it does not name is taken for a torn tail.
TEST(RecoveryMutants, CheckpointByTimeOnlyIsCaught) {
  const auto offline = [] {
    StorageWorld world;
    world.start();
    while (world.log().segments() < 2) world.append(1, 500);
    world.settle();
    world.pass(std::chrono::milliseconds(600));
    world.kill();
    world.files->remove_tree("data/journal");
    world.files->truncate_file(world.segment(0), world.files->content(world.segment(0)).size() - 9);
    return world.start().offline.size();
  };
  EXPECT_EQ(offline(), 1u);
  const base::EnabledMutant enabled("checkpoint_by_time_only");
  EXPECT_EQ(offline(), 0u);
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
