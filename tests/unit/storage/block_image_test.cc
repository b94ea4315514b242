// Appends into a block of a segment that is synced already: a power cut while it is written again
// may take it whole, so what it held is in the journal before.

#include <gtest/gtest.h>

#include "base/mutants.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using base::Result;
using model::Durability;
using model::Offset;
using storage::AppendInfo;

asio::awaitable<Result<AppendInfo>> append_as_a_caller_does(StorageWorld& world) {
  auto batch = make_batch(++world.batches, 1, 100);
  const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
  auto& log = world.log();
  if (log.appends_inline()) co_return log.append(batch.owner, bytes);
  const auto parsed = model::parse_produced(bytes, 1u << 20);
  co_return co_await log.append_later(batch.owner, bytes, *parsed);
}

Result<AppendInfo> append(StorageWorld& world) {
  auto appending = append_as_a_caller_does(world);
  return run(world.simulator, std::move(appending));
}

/// A log whose last block is synced.
void start_with_a_synced_block(StorageWorld& world, Durability durability) {
  world.settings.durability = durability;
  world.start();
  EXPECT_TRUE(append(world));
  EXPECT_TRUE(world.stop());
  world.start();
}

/// The kernel writes the block back as soon as the append is made.
bool survives_early_write_back(Durability durability) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    StorageWorld world(seed);
    start_with_a_synced_block(world, durability);
    world.files->set_early_write_back(1);
    EXPECT_TRUE(append(world));
    world.crash();
    world.start();
    if (world.log().failure() || world.log().log_end_offset() < Offset(1)) return false;
    EXPECT_FALSE(world.read_all().empty());
  }
  return true;
}

TEST(BlockImage, IsDurableBeforeTheBlockIsWrittenAgain) {
  EXPECT_TRUE(survives_early_write_back(Durability::disk));
  EXPECT_TRUE(survives_early_write_back(Durability::memory));
}

TEST(BlockImageMutants, OneAfterItsAppendIsCaught) {
  const base::EnabledMutant enabled("block_image_after_its_append");
  EXPECT_FALSE(survives_early_write_back(Durability::disk));
}

TEST(BlockImage, OneSyncCostsOneWait) {
  StorageWorld world;
  start_with_a_synced_block(world, Durability::disk);
  EXPECT_FALSE(world.log().appends_inline());
  ASSERT_TRUE(append(world));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(world.log().appends_inline());
    ASSERT_TRUE(append(world));
  }
  EXPECT_EQ(world.counters.snapshot()["storage_images_ahead_total"], 1);
}

/// What a roll syncs lies in the segments before: nothing of the new one counts as synced yet, and
/// on a busy disk the wait for the journal would hold up a tenth of a second of appends.
TEST(BlockImage, ARollCostsNoWait) {
  StorageWorld world;
  world.settings.durability = Durability::memory;
  world.settings.segment_bytes = 64u << 10;
  world.start();
  while (world.log().segments() == 1) {
    ASSERT_LT(world.batches, 1000u);
    ASSERT_TRUE(append(world));
  }
  world.pass(std::chrono::seconds(1));
  EXPECT_GT(world.counters.snapshot()["storage_syncs_total"], 0);
  EXPECT_TRUE(world.log().appends_inline());
  ASSERT_TRUE(append(world));
  EXPECT_EQ(world.counters.snapshot()["storage_images_ahead_total"], 0);
}

/// `memory` logs are synced once a minute. One that is being written then leaves out its last
/// block, one that is not is synced to its end.
TEST(BlockImage, ASyncNowAndThenCostsAWriterNoWait) {
  StorageWorld world;
  world.settings.durability = Durability::memory;
  world.start();
  for (int i = 0; i < 3'500; ++i) {
    ASSERT_TRUE(append(world));
    world.pass(std::chrono::milliseconds(20));
  }
  EXPECT_GT(world.counters.snapshot()["storage_syncs_total"], 0);
  EXPECT_EQ(world.counters.snapshot()["storage_images_ahead_total"], 0);
  world.pass(std::chrono::seconds(60));
  EXPECT_FALSE(world.log().appends_inline());
  ASSERT_TRUE(append(world));
  EXPECT_EQ(world.counters.snapshot()["storage_images_ahead_total"], 1);
}

/// It asks for a recovery point above the log's end, which would never come.
TEST(BlockImage, OneThatNoAppendFollowedIsNotKeptForEver) {
  StorageWorld world;
  start_with_a_synced_block(world, Durability::disk);
  Fault full;
  full.operation = FileOperation::write;
  full.path_part = ".log";
  full.short_write = 10;
  world.files->inject(full);
  EXPECT_EQ(append(world).error(), make_error_code(StorageErrc::storage_full));
  world.pass(std::chrono::seconds(3));
  EXPECT_FALSE(world.log().appends_inline());  // the next one needs another
  ASSERT_TRUE(world.stop());
  const auto summary = world.start();
  EXPECT_TRUE(summary.clean);
  // The journal ended with a file of its own: no other one was needed any more.
  EXPECT_LT(summary.journal_bytes_read, 16u << 10);
}

TEST(BlockImage, OfABlockThatLeftThePageCacheIsReadByAThread) {
  for (const bool other_goes_first : {false, true}) {
    StorageWorld world;
    start_with_a_synced_block(world, Durability::disk);
    world.files->set_cold_share(1);
    world.executor->stall(std::chrono::seconds(5));
    Result<AppendInfo> appended = make_error_code(StorageErrc::io_failed);
    auto appending = [](StorageWorld& of, Result<AppendInfo>& result) -> asio::awaitable<void> {
      result = co_await append_as_a_caller_does(of);
    };
    world.runtime.spawn("append", appending(world, appended));
    const auto images = [&] { return world.counters.snapshot()["storage_images_ahead_total"]; };
    world.pass(std::chrono::seconds(1));
    EXPECT_EQ(images(), 0);
    EXPECT_FALSE(appended);
    if (other_goes_first) world.append();
    world.pass(std::chrono::seconds(20));
    EXPECT_EQ(images(), other_goes_first ? 0 : 1);
    ASSERT_TRUE(appended) << appended.error().message();
    EXPECT_EQ(appended->base_offset, model::Offset(other_goes_first ? 2 : 1));
    ASSERT_TRUE(world.settle());
    const auto all = world.read_all();
    world.crash();
    EXPECT_TRUE(world.start().offline.empty());
    EXPECT_EQ(world.read_all(), all);
  }
}

TEST(BlockImage, AStopWaitsForTheAppendBehindIt) {
  StorageWorld world;
  start_with_a_synced_block(world, Durability::disk);
  Result<AppendInfo> appended = make_error_code(StorageErrc::io_failed);
  auto appending = [](StorageWorld& of, Result<AppendInfo>& result) -> asio::awaitable<void> {
    result = co_await append_as_a_caller_does(of);
  };
  world.runtime.spawn("append", appending(world, appended));
  world.simulator.run_until(
      [&] { return world.counters.snapshot()["storage_images_ahead_total"] > 0; },
      std::chrono::seconds(1));
  ASSERT_TRUE(world.stop());
  EXPECT_EQ(appended.error(), make_error_code(StorageErrc::closed));
  const auto summary = world.start();
  EXPECT_TRUE(summary.clean);
  EXPECT_LT(summary.journal_bytes_read, 16u << 10);
  EXPECT_EQ(world.log().log_end_offset(), Offset(1));
}

}  // namespace
}  // namespace mq::testing
