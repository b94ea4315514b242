#include "storage/write_behind.h"

#include <gtest/gtest.h>

#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::milliseconds;
using storage::AppendInfo;
using storage::DirtyBytes;
using storage::WriteBehind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct WriteBehindTest : ::testing::Test {
  Simulator simulator{1};
  SimRuntime runtime{simulator};
  SimFileSystem files;
  SimDiskExecutor threads{simulator, {}};
  base::Counters counters;
  std::shared_ptr<base::File> file;
  std::shared_ptr<DirtyBytes> log = std::make_shared<DirtyBytes>();
  int asked = 0;
  base::Error failed;
  base::DiskExecutor* turns = nullptr;  // where strides wait for the head, if they have to
  int turns_ended = 0;
  std::shared_ptr<WriteBehind> behind;

  void SetUp() override {
    file = *files.open("segment", base::OpenMode::create);
    WriteBehind::Hooks hooks;
    hooks.more = [this] { ++asked; };
    hooks.failed = [this](const base::Error& error) { failed = error; };
    hooks.turns = [this] { return turns; };
    hooks.turn_ends = [this] { ++turns_ended; };
    behind = std::make_shared<WriteBehind>(threads, counters, 64 * kMiB, std::move(hooks));
  }
  void write(std::uint64_t position, std::uint64_t bytes) {
    WriteBehind::Stride stride;
    stride.file = file;
    stride.position = position;
    stride.bytes = bytes;
    stride.log = log;
    stride.clean = position + bytes;
    behind->write(std::move(stride));
  }
};

TEST_F(WriteBehindTest, AppendsWaitAboveTheBudgetAndGoOnWithSomeRoom) {
  behind->appended(*log, 40 * kMiB);
  EXPECT_TRUE(behind->has_room());
  EXPECT_EQ(asked, 1);  // half the budget: small strides are welcome
  behind->appended(*log, 24 * kMiB);
  EXPECT_FALSE(behind->has_room());
  int woken = 0;
  behind->when_room(runtime, [&] { ++woken; });
  simulator.run_for(std::chrono::seconds(1));
  EXPECT_EQ(woken, 0);
  write(0, 4 * kMiB);
  simulator.run_for(std::chrono::seconds(2));
  EXPECT_EQ(behind->dirty(), 60 * kMiB);
  EXPECT_EQ(woken, 0);  // not at once when one batch has gone
  write(4 * kMiB, 8 * kMiB);
  simulator.run_for(std::chrono::seconds(2));
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(behind->dirty(), 52 * kMiB);
}

TEST_F(WriteBehindTest, StridesWaitForTheirTurnWhileOthersWantTheHead) {
  struct Counted final : base::DiskExecutor {
    explicit Counted(base::DiskExecutor& executor) : threads(executor) {}
    void submit(std::function<void()> work) override {
      ++turns;
      threads.submit(std::move(work));
    }
    base::DiskExecutor& threads;
    int turns = 0;
  } counted(threads);
  turns = &counted;
  behind->appended(*log, 12 * kMiB);
  for (std::uint64_t at = 0; at < 8; at += 4) write(at * kMiB, 4 * kMiB);
  simulator.run_for(std::chrono::seconds(1));
  EXPECT_EQ(counted.turns, 2);
  EXPECT_EQ(turns_ended, 2);
  turns = nullptr;
  write(8 * kMiB, 4 * kMiB);
  simulator.run_for(std::chrono::seconds(1));
  EXPECT_EQ(counted.turns, 2);
  EXPECT_EQ(turns_ended, 2);
  EXPECT_EQ(behind->dirty(), 0u);
}

TEST_F(WriteBehindTest, WhatASyncCoveredIsNotCountedTwice) {
  behind->appended(*log, 10 * kMiB);
  behind->settled(*log, 8 * kMiB);
  write(0, 4 * kMiB);
  simulator.run_for(std::chrono::seconds(2));
  EXPECT_EQ(behind->dirty(), 2 * kMiB);
  EXPECT_EQ(log->now(), 2 * kMiB);
}

TEST_F(WriteBehindTest, AFailedWriteBackIsReported) {
  Fault fault;
  fault.operation = FileOperation::write_back;
  files.inject(fault);
  behind->appended(*log, kMiB);
  write(0, kMiB);
  simulator.run_for(std::chrono::seconds(2));
  EXPECT_TRUE(failed);
  EXPECT_EQ(behind->dirty(), kMiB);
}

TEST_F(WriteBehindTest, NobodyWaitsBehindTheEnd) {
  behind->appended(*log, 100 * kMiB);
  int woken = 0;
  behind->when_room(runtime, [&] { ++woken; });
  behind->end();
  behind->when_room(runtime, [&] { ++woken; });
  simulator.run_for(milliseconds(1));
  EXPECT_EQ(woken, 2);
}

/// Appends through a log that may have to wait.
struct LaterTest : ::testing::Test {
  StorageWorld world;
  void start(model::Durability durability) {
    world.settings.durability = durability;
    world.settings.segment_bytes = 4u << 20;
    world.start();
  }
  base::Result<AppendInfo> append_later(std::size_t value_bytes) {
    auto batch = make_batch(++world.batches, 1, value_bytes);
    const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
    auto parsed = model::parse_produced(bytes, 16u << 20);
    auto appending = world.log().append_later(batch.owner, bytes, *parsed);
    return run(world.simulator, std::move(appending));
  }
  std::int64_t counter(const std::string& name) { return world.counters.snapshot()[name]; }
};

TEST_F(LaterTest, AppendsWaitForADiskThatIsBehindAndRecoverByThemselves) {
  for (const auto durability : {model::Durability::memory, model::Durability::disk}) {
    world.config.dirty_bytes_max = 256u << 10;
    start(durability);
    int inline_appends = 0;
    while (world.log().appends_inline() && inline_appends < 100) {
      world.append(1, 20'000);
      ++inline_appends;
    }
    EXPECT_LT(inline_appends, 20);
    const auto end = world.log().log_end_offset();
    for (int i = 0; i < 100; ++i) {
      const auto info = append_later(20'000);
      ASSERT_TRUE(info) << info.error().message();
      EXPECT_EQ(info->base_offset, model::advance(end, i));
    }
    EXPECT_GT(counter("storage_dirty_waits_total"), 0);
    world.pass(std::chrono::seconds(5));
    ASSERT_TRUE(append_later(100));  // in a block that was synced meanwhile
    EXPECT_TRUE(world.log().appends_inline());
    EXPECT_FALSE(world.read_all().empty());
    ASSERT_TRUE(world.stop());
    world.files->remove_tree("data");
  }
}

TEST_F(LaterTest, ASegmentBeginsOnAThreadSoThatTheWorkerDoesNotWaitForTheDisk) {
  for (const auto durability : {model::Durability::memory, model::Durability::disk}) {
    start(durability);
    int inline_appends = 0;
    while (world.log().segments() < 4) {
      const auto segments = world.log().segments();
      if (!world.log().appends_inline()) {
        ASSERT_TRUE(append_later(20'000));
        continue;
      }
      world.append(1, 20'000);
      ASSERT_EQ(world.log().segments(), segments);
      ++inline_appends;
    }
    EXPECT_GT(inline_appends, 300);  // of some 600
    EXPECT_FALSE(world.read_all().empty());
    ASSERT_TRUE(world.stop());
    world.files->remove_tree("data");
  }
}

TEST_F(LaterTest, SoDoesTheOneBehindASegmentThatIsOld) {
  world.config.retention_interval = world.config.memory_sync_interval = std::chrono::hours(1);
  world.settings.segment_age = std::chrono::minutes(5);
  start(model::Durability::memory);
  world.append(1, 100);
  world.pass(std::chrono::minutes(4));
  EXPECT_TRUE(world.log().appends_inline());
  world.pass(std::chrono::seconds(59));
  EXPECT_FALSE(world.log().appends_inline());
  ASSERT_TRUE(append_later(100));
  EXPECT_EQ(world.log().segments(), 1u);
  world.pass(std::chrono::seconds(1));
  ASSERT_TRUE(append_later(100));
  EXPECT_EQ(world.log().segments(), 2u);
  EXPECT_TRUE(world.log().appends_inline());
}

TEST_F(LaterTest, WhoWaitsIsToldOfTheDisksEnd) {
  world.config.dirty_bytes_max = 64u << 10;
  start(model::Durability::memory);
  world.append(1, 70'000);
  Fault fault;
  fault.operation = FileOperation::write_back;
  fault.times = -1;
  world.files->inject(fault);
  EXPECT_EQ(append_later(100).error(), make_error_code(StorageErrc::disk_failed));
}

TEST_F(LaterTest, SlowAppendsGoThroughAThreadUntilASecondPassesWithoutOne) {
  start(model::Durability::disk);
  world.files->on_write([this] { world.simulator.pass(milliseconds(30)); });
  world.append(1, 100);
  EXPECT_FALSE(world.log().appends_inline());
  world.files->on_write({});
  for (int i = 0; i < 5; ++i) {
    const auto info = append_later(100);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->base_offset, Offset(i + 1));
    EXPECT_EQ(world.log().log_end_offset(), Offset(i + 2));
  }
  EXPECT_EQ(counter("storage_appends_on_thread_total"), 5);
  EXPECT_FALSE(world.log().appends_inline());
  world.pass(milliseconds(1'100));
  EXPECT_TRUE(world.log().appends_inline());
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(world.log().durable_offset(), Offset(6));
}

TEST_F(LaterTest, RollsAndFailsOnTheThreadAsItDoesInline) {
  start(model::Durability::memory);
  world.files->on_write([this] { world.simulator.pass(milliseconds(30)); });
  world.append(1, 100);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(append_later(1'500'000 / 2));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(append_later(1'500'000 / 2));
  EXPECT_GT(world.log().segments(), 1u);
  const auto end = world.log().log_end_offset();
  Fault full;
  full.operation = FileOperation::write;
  full.path_part = ".log";
  full.short_write = 10;
  world.files->inject(full);
  // LOG-6
  EXPECT_EQ(append_later(100).error(), make_error_code(StorageErrc::storage_full));
  EXPECT_EQ(world.log().log_end_offset(), end);
  world.files->on_write({});
  world.pass(std::chrono::seconds(3));
  EXPECT_EQ(world.append(1, 100).base_offset, end);
  EXPECT_FALSE(world.read_all().empty());
}

}  // namespace
}  // namespace mq::testing
