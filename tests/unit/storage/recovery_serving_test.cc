#include "storage_world.h"

namespace mq::testing {
namespace {

using model::LeaderEpoch;
using model::Offset;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kPartitions = 12;

/// Partitions with records above their recovery points, whose process was killed.
struct RecoveryServing : ::testing::Test {
  void SetUp() override {
    world.start(kPartitions);
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < kPartitions; ++i) world.append(3, 2'000, i);
    }
    for (int i = 0; i < kPartitions; ++i) ASSERT_TRUE(world.settle(i));
    for (int i = 0; i < kPartitions; ++i) before.push_back(world.read_all(i));
    world.kill();
  }
  /// Serves the partition and appends one record.
  void serve(const model::PartitionId& id) {
    auto& log = world.log(id.partition);
    ASSERT_TRUE(log.start_epoch(LeaderEpoch(static_cast<int>(++world.epoch))));
    appended[id.partition] = world.append(1, 100, id.partition);
  }
  void expect_everything() {
    for (int i = 0; i < kPartitions; ++i) {
      const auto now = world.read_all(i);
      ASSERT_GE(now.size(), before[static_cast<std::size_t>(i)].size()) << i;
      EXPECT_TRUE(std::equal(before[static_cast<std::size_t>(i)].begin(),
                             before[static_cast<std::size_t>(i)].end(), now.begin()))
          << i;
    }
  }

  StorageWorld world{3};
  std::vector<std::vector<std::byte>> before;
  std::map<int, storage::AppendInfo> appended;
};

TEST_F(RecoveryServing, EachPartitionTakesAppendsAsSoonAsItIsRecovered) {
  std::size_t left_at_first = 0;
  world.ready = [&](const model::PartitionId& id) {
    serve(id);
    if (left_at_first > 0) return;
    for (int i = 0; i < kPartitions; ++i) left_at_first += world.disk->find(world.id(i)) == nullptr;
  };
  world.start(kPartitions);
  EXPECT_GT(left_at_first, std::size_t{kPartitions} / 2);
  EXPECT_EQ(appended.size(), std::size_t{kPartitions});
  for (int i = 0; i < kPartitions; ++i) EXPECT_TRUE(world.settle(i));
  world.crash();
  world.ready = {};
  world.start(kPartitions);
  expect_everything();
  for (const auto& [partition, info] : appended)
    EXPECT_EQ(world.log(partition).log_end_offset(), info.end_offset) << partition;
}

/// A second crash in the middle finds in the journal what was not recovered yet, and what was
/// appended since.
TEST_F(RecoveryServing, ACrashInTheMiddleLosesNothing) {
  for (std::size_t after = 1; after < kPartitions; after += 2) {
    appended.clear();
    world.ready = [&](const model::PartitionId& id) {
      if (appended.size() == after) return;
      serve(id);
      if (appended.size() == after) world.process->kill();
    };
    ASSERT_FALSE(world.try_start(kPartitions));
    if (after % 4 == 1) {
      world.crash();
    } else {
      world.kill();
    }
    world.ready = {};
    auto files = world.files->clone();
    world.start(kPartitions);
    expect_everything();
    world.crash();
    world.files = std::move(files);
  }
}

TEST_F(RecoveryServing, WhatIsDoneIsNotDoneAgain) {
  world.times.work_min = world.times.work_max = seconds(2);
  world.times.stall_chance = 0;
  world.config.checkpoint_interval = milliseconds(100);
  std::size_t ready = 0;
  world.ready = [&](const model::PartitionId&) {
    if (++ready == kPartitions - 2) world.process->kill();
  };
  ASSERT_FALSE(world.try_start(kPartitions));
  world.kill();
  world.ready = {};
  std::size_t bytes = 0;
  for (const auto& log : before) bytes += log.size();
  const auto summary = world.start(kPartitions);
  EXPECT_LT(summary.bytes_scanned, bytes / 2);
  expect_everything();
}

/// By the time the last one is there every one has been told, and none before it can be used.
TEST_F(RecoveryServing, WithoutItsJournalNothingIsServedBeforeTheLast) {
  world.files->remove_tree("data/journal");
  std::size_t ready = 0;
  world.ready = [&](const model::PartitionId& id) {
    ++ready;
    for (int i = 0; i < kPartitions; ++i) EXPECT_NE(world.disk->find(world.id(i)), nullptr);
    serve(id);
  };
  world.start(kPartitions);
  EXPECT_EQ(ready, std::size_t{kPartitions});
}

TEST_F(RecoveryServing, OneThatStaysOfflineDoesNotHoldUpTheJournal) {
  world.files->flip(world.segment(0, 4), 100, std::byte{1});
  world.start(kPartitions);
  // Its files are used again: more is written than all of them hold.
  for (int n = 0; n < 600; ++n) {
    ASSERT_TRUE(world.try_append(1, 8'000, n % 4)) << n;
    if (n % 8 == 0) world.pass(milliseconds(50));
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(world.settle(i));
}

}  // namespace
}  // namespace mq::testing
