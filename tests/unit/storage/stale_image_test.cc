// Images of blocks from a sync that a power cut broke off: they stay in the journal's old files for
// a while, but say nothing about what is appended after the cut.

#include <gtest/gtest.h>

#include <algorithm>

#include "storage/disk_files.h"
#include "storage/journal_reader.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Durability;
using model::Offset;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// So many that the flusher syncs them in steps: between the beginning of a step and its syncs
/// there is time for appends, and for their images to become durable.
constexpr int kLogs = 16;
constexpr std::size_t kValueBytes = 1'000;

storage::JournalReplay replay_of(StorageWorld& world) {
  const auto read = storage::read_identity(*world.files, StorageWorld::kPath);
  const auto& identity = *read;
  const storage::JournalOwner owner{identity->cluster, identity->broker, identity->disk,
                                    identity->journal};
  return *storage::replay_journal(*world.files, "data/journal", owner);
}

class StaleImageWorld : public StorageWorld {
 public:
  explicit StaleImageWorld(std::uint64_t seed) : StorageWorld(seed) {
    settings.durability = Durability::memory;
    settings.segment_bytes = 64u << 10;
    config.memory_sync_interval = seconds(1);
    times.stall_chance = 0;
    start(kLogs);
  }

  void append_to_all() {
    for (int i = 0; i < kLogs; ++i) append(1, kValueBytes, i);
  }

  /// Syncs of all logs begin; behind that each gets another batch, and with it an image of its last
  /// block. The power goes when one is durable.
  void cut_the_power_in_a_sync() {
    const auto in_sync = [this] { return !log(0).appends_inline(); };
    ASSERT_TRUE(simulator.run_until(in_sync, seconds(10)));
    const auto groups = counters.get("storage_journal_groups_total").value();
    append_to_all();
    const auto durable = [&] {
      return counters.get("storage_journal_groups_total").value() > groups;
    };
    ASSERT_TRUE(simulator.run_until(durable, seconds(10)));
    crash();
  }

  /// Goes on above the images, and is killed. Returns how many logs had any above their ends.
  int go_on() {
    const auto replay = replay_of(*this);
    EXPECT_TRUE(start(kLogs).offline.empty());
    int stale = 0;
    std::vector<std::vector<std::byte>> all;
    for (int i = 0; i < kLogs; ++i) {
      stale += has_images_above(replay, i);
      for (int n = 0; n < 8; ++n) append(1, kValueBytes, i);
      all.push_back(read_all(i));
    }
    kill();
    EXPECT_TRUE(start(kLogs).offline.empty());
    for (int i = 0; i < kLogs; ++i)
      EXPECT_TRUE(read_all(i) == all[static_cast<std::size_t>(i)]) << i;
    return stale;
  }

 private:
  [[nodiscard]] bool has_images_above(const storage::JournalReplay& replay, int partition) const {
    const auto known = replay.logs.find(id(partition));
    if (known == replay.logs.end()) return false;
    const auto there = files->files_below(directory(partition));
    return std::ranges::any_of(known->second.writes, [&](const storage::JournalWrite& write) {
      const auto path = segment(write.segment_base.value(), partition);
      const auto bytes = std::ranges::count(there, path) > 0 ? files->content(path).size() : 0;
      return write.base < Offset(0) && write.position + write.bytes > bytes;
    });
  }
};

TEST(StaleImage, IsNotPutBackOverWhatFollowsItsBlock) {
  int stale = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    StaleImageWorld world(seed);
    for (int n = 0; n < 10; ++n) world.append_to_all();
    world.cut_the_power_in_a_sync();
    stale += world.go_on();
  }
  EXPECT_GT(stale, 5);
}

/// The segment before is whole, so the log goes on in another one of the same name.
TEST(StaleImage, OfASegmentThatTheCrashTookIsNotPutBackIntoTheNextOne) {
  int stale = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    StaleImageWorld world(seed);
    while (world.log(0).bytes_on_disk() + kValueBytes + 200 < world.settings.segment_bytes)
      world.append_to_all();
    world.pass(seconds(5));
    world.executor->stall(seconds(2));
    while (world.log(0).segments() == 1) world.append_to_all();
    world.cut_the_power_in_a_sync();
    stale += world.go_on();
  }
  EXPECT_GT(stale, 5);
}

}  // namespace
}  // namespace mq::testing
