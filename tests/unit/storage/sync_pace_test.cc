// Recovery points of many logs on a disk with one head: each costs a seek, and whoever syncs
// anything meanwhile waits until the disk has done them all.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::milliseconds;

/// What was written back lies in the disk's cache; a sync waits for a seek for each piece of it and
/// for one turn of its own.
class Head {
 public:
  explicit Head(StorageWorld& world) : world_(world) {
    world.files->on_sync([this](FileOperation operation, const std::string& path) {
      if (operation == FileOperation::write_back && path.ends_with(".log")) cached_.insert(path);
      if (operation != FileOperation::sync) return;
      most_ = std::max(most_, cached_.size());
      world_.simulator.pass(milliseconds(8 + 6 * cached_.size()));
      cached_.clear();
    });
  }
  ~Head() { world_.files->on_sync({}); }
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  /// Seeks that one sync had to wait for.
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  StorageWorld& world_;
  std::set<std::string> cached_;
  std::size_t most_ = 0;
};

std::int64_t counted(StorageWorld& world, const char* name) {
  return world.counters.get(name).value();
}

/// Appends to all logs again and again, each as soon as its last append is durable.
class Writers {
 public:
  Writers(StorageWorld& world, int logs) : world_(world), all_(static_cast<std::size_t>(logs)) {}

  /// The longest that one append took.
  base::Duration run_for(base::Duration span) {
    const auto end = world_.simulator.now() + span;
    while (world_.simulator.now() < end) {
      for (std::size_t i = 0; i < all_.size(); ++i) look_at(static_cast<int>(i), all_[i]);
      world_.pass(milliseconds(1));
    }
    while (std::ranges::any_of(all_, &Writer::appending)) world_.pass(milliseconds(1));
    return longest_;
  }

 private:
  struct Writer {
    bool appending = false;
    bool under_way = false;
    base::TimePoint began{};
  };

  void look_at(int partition, Writer& writer) {
    auto& log = world_.log(partition);
    if (writer.appending || log.durable_offset() < log.log_end_offset()) return;
    const auto now = world_.simulator.now();
    if (writer.under_way) longest_ = std::max(longest_, now - writer.began);
    writer.began = now;
    writer.under_way = true;
    if (log.appends_inline()) {
      world_.append(1, 200, partition);
    } else {
      writer.appending = true;
      world_.runtime.spawn("append", append_later(world_, partition, writer));
    }
  }
  static asio::awaitable<void> append_later(StorageWorld& world, int partition, Writer& writer) {
    auto batch = make_batch(++world.batches, 1, 200);
    const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
    const auto parsed = model::parse_produced(bytes, 1u << 20);
    const auto done = co_await world.log(partition).append_later(batch.owner, bytes, *parsed);
    EXPECT_TRUE(done);
    writer.appending = false;
  }

  StorageWorld& world_;
  std::vector<Writer> all_;
  base::Duration longest_{};
};

TEST(SyncPace, AppendsWaitForAFewLogsWhileAllRecoveryPointsMove) {
  constexpr int kLogs = 200;
  StorageWorld world;
  world.times.stall_chance = 0;
  world.config.journal_file_bytes_min = 1u << 20;
  world.config.journal_file_bytes_max = 16u << 20;
  world.settings.segment_bytes = 16u << 20;  // so that not all begin one in the same moment
  world.start(kLogs);
  const Head head(world);
  const auto longest = Writers(world, kLogs).run_for(std::chrono::seconds(60));
  // More than one round of all of them.
  EXPECT_GT(counted(world, "storage_sync_steps_total"), kLogs / 16);
  EXPECT_LE(head.most(), 32U);
  EXPECT_LT(longest, std::chrono::seconds(1));
  EXPECT_EQ(counted(world, "storage_journal_stalls_total"), 0);
}

TEST(SyncPace, StepsGrowWhereThereIsNoHead) {
  constexpr int kLogs = 1'000;
  StorageWorld world;
  world.config.memory_sync_interval = std::chrono::seconds(1);
  world.settings.durability = model::Durability::memory;
  world.start(kLogs);
  for (int i = 0; i < kLogs; ++i) world.append(1, 100, i);
  world.pass(std::chrono::seconds(5));
  EXPECT_LE(counted(world, "storage_sync_steps_total"), 10);
  const auto before = counted(world, "storage_syncs_total");
  for (int i = 0; i < kLogs; ++i) world.append(1, 100, i);
  world.pass(std::chrono::seconds(5));
  // All of them in one sync of the file system.
  EXPECT_LE(counted(world, "storage_syncs_total") - before, 4);
  world.crash();
  EXPECT_TRUE(world.start(kLogs).offline.empty());
  for (int i = 0; i < kLogs; ++i) ASSERT_EQ(world.log(i).log_end_offset(), Offset(2));
}

/// What is appended to a log in the middle of its sync costs that sync another seek.
TEST(SyncPace, LogsOfAStepTakeAppendsBehindIt) {
  StorageWorld world;
  world.config.memory_sync_interval = std::chrono::seconds(1);
  world.start(3);
  for (int i = 0; i < 3; ++i) world.append(1, 5'000, i);
  int seen = 0;
  world.files->on_sync([&](FileOperation operation, const std::string& path) {
    for (int i = 0; i < 3; ++i) {
      if (operation != FileOperation::sync || path != world.segment(0, i)) continue;
      ++seen;
      EXPECT_FALSE(world.log(i).appends_inline()) << i;
    }
  });
  world.pass(std::chrono::seconds(2));
  EXPECT_EQ(seen, 3);
  world.files->on_sync({});
  // They go on by themselves.
  for (int i = 0; i < 3; ++i) {
    auto batch = make_batch(++world.batches, 1, 100);
    const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
    const auto parsed = model::parse_produced(bytes, 1u << 20);
    auto appending = world.log(i).append_later(batch.owner, bytes, *parsed);
    EXPECT_TRUE(run(world.simulator, std::move(appending)));
  }
}

TEST(SyncPace, MuchOfALogIsWrittenBeforeItsStep) {
  StorageWorld world;
  world.config.memory_sync_interval = std::chrono::seconds(1);
  world.config.write_behind_bytes = 64u << 20;
  world.config.journal_file_bytes_min = world.config.journal_file_bytes_max = 64u << 20;
  world.config.journal_bypass_bytes = 8u << 20;
  world.settings.segment_bytes = 64u << 20;
  world.start(1);
  for (int i = 0; i < 30; ++i) world.append(1, 100'000);
  std::vector<bool> taken;  // appends, while it was written and while it was synced
  world.files->on_sync([&](FileOperation operation, const std::string& path) {
    if (path != world.segment(0, 0)) return;
    if (operation == FileOperation::write_back || operation == FileOperation::sync)
      taken.push_back(world.log(0).appends_inline());
  });
  world.pass(std::chrono::seconds(3));
  world.files->on_sync({});
  ASSERT_GE(taken.size(), 2U);
  EXPECT_TRUE(taken.front());
  EXPECT_FALSE(taken.back());
}

/// Logs that grow side by side are not all due for a stride at once.
TEST(SyncPace, StridesOfLogsThatGrowSideBySideBeginAtDifferentPlaces) {
  constexpr int kLogs = 16;
  StorageWorld world;
  world.settings.durability = model::Durability::memory;
  world.config.write_behind_bytes = 8u << 20;
  world.config.dirty_bytes_max = std::uint64_t{1} << 30;
  world.settings.segment_bytes = 64u << 20;
  world.start(kLogs);
  std::set<int> rounds;  // in which a log was written for the first time
  std::set<std::string> seen;
  int round = 0;
  world.files->on_sync([&](FileOperation operation, const std::string& path) {
    if (operation == FileOperation::write_back && seen.insert(path).second) rounds.insert(round);
  });
  for (; round < 100; ++round) {
    for (int i = 0; i < kLogs; ++i) world.append(1, 100'000, i);
    world.pass(milliseconds(1));
  }
  world.files->on_sync({});
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kLogs));
  EXPECT_GT(rounds.size(), 4U);
}

TEST(SyncPace, WhatIsSyncedIsNotSyncedAgain) {
  StorageWorld world;
  world.config.memory_sync_interval = std::chrono::seconds(1);
  world.start(20);
  for (int i = 0; i < 20; ++i) world.append(1, 100, i);
  world.pass(std::chrono::seconds(3));
  const auto before = counted(world, "storage_syncs_total");
  EXPECT_GT(before, 0);
  world.pass(std::chrono::minutes(1));
  EXPECT_EQ(counted(world, "storage_syncs_total"), before);
  ASSERT_TRUE(world.stop());
  EXPECT_EQ(counted(world, "storage_syncs_total"), before);
}

TEST(SyncPace, AFailedWriteBackOfAStepFailsTheDisk) {
  StorageWorld world;
  world.config.memory_sync_interval = std::chrono::seconds(1);
  world.start(3);
  for (int i = 0; i < 3; ++i) world.append(1, 100, i);
  ASSERT_TRUE(world.settle(2));
  world.files->inject({.operation = FileOperation::write_back, .path_part = world.segment(0, 1)});
  world.pass(std::chrono::seconds(2));
  EXPECT_TRUE(world.disk->failed());
}

/// Files of the journal are used while they are made. A crash anywhere in between takes nothing.
TEST(SyncPace, JournalFilesAreUsedWhileTheyGrow) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    StorageWorld world(seed);
    world.config.journal_file_bytes_min = 64u << 10;
    world.config.journal_file_bytes_max = 1u << 20;
    world.config.journal_grow_bytes = 32u << 10;
    world.start(2);
    int appended = 0;
    const auto upto = 20 + static_cast<int>(seed) * 5;
    for (; appended < upto; ++appended) {
      world.append(1, 4'000, appended % 2);
      ASSERT_TRUE(world.settle(appended % 2)) << seed;
    }
    world.crash();
    const auto summary = world.start(2);
    ASSERT_TRUE(summary.journal_problem.empty()) << seed << summary.journal_problem;
    for (int i = 0; i < 2; ++i)
      ASSERT_EQ(world.log(i).log_end_offset(), Offset((appended + 1 - i) / 2)) << seed;
    for (int i = 0; i < 50; ++i) {
      world.append(1, 4'000, i % 2);
      ASSERT_TRUE(world.settle(i % 2)) << seed;
    }
    ASSERT_TRUE(world.stop());
    EXPECT_TRUE(world.start(2).clean);
  }
}

/// A disk that gets full in the middle: what is there of the file is used.
TEST(SyncPace, AGrowingJournalFileTakesWhatThereIs) {
  StorageWorld world;
  world.config.journal_file_bytes_min = 64u << 10;
  world.config.journal_file_bytes_max = 8u << 20;
  world.config.journal_grow_bytes = 64u << 10;
  world.config.low_mark_bytes = 0;
  world.start(2);
  world.files->set_capacity(world.files->used_bytes() + (600u << 10));
  for (int i = 0; i < 60; ++i) {
    if (!world.try_append(1, 4'000, i % 2)) break;
    ASSERT_TRUE(world.settle(i % 2)) << i;
  }
  EXPECT_FALSE(world.disk->failed());
  world.files->set_capacity(1u << 30);
  world.pass(std::chrono::seconds(5));
  const auto end = world.log(0).log_end_offset();
  world.crash();
  EXPECT_TRUE(world.start(2).journal_problem.empty());
  EXPECT_EQ(world.log(0).log_end_offset(), end);
}

}  // namespace
}  // namespace mq::testing
