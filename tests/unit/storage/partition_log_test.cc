#include "storage/partition_log.h"

#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;

TEST(PartitionLog, AppendGivesOffsetsAndStampsInPlace) {
  StorageWorld world;
  world.start();
  auto batch = make_batch(1, 3, 10);
  const auto first = world.append_batch(batch);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->base_offset, Offset(0));
  EXPECT_EQ(first->end_offset, Offset(3));
  const auto view = model::RecordBatchView::parse(batch.bytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->base_offset(), Offset(0));
  EXPECT_EQ(view->leader_epoch(), world.log().leader_epoch());
  EXPECT_EQ(view->append_time_ms(), first->append_time_ms);
  EXPECT_EQ(world.append(2).base_offset, Offset(3));  // LOG-1
  EXPECT_EQ(world.log().log_end_offset(), Offset(5));
}

TEST(PartitionLog, DiskDurabilityConfirmsOnlyWhatIsSynced) {
  int calls = 0;  // outlives the log, which calls to the end
  StorageWorld world;
  world.start();
  world.log().on_changed([&] { ++calls; });
  world.append(4);
  EXPECT_EQ(world.log().confirmed_end(), Offset(0));
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(world.settle());
  EXPECT_EQ(world.log().confirmed_end(), Offset(4));
  EXPECT_EQ(world.log().durable_offset(), Offset(4));
  EXPECT_EQ(calls, 1);
}

TEST(PartitionLog, MemoryDurabilityConfirmsAtOnceAndSyncsWithinAMinute) {
  StorageWorld world;
  world.settings.durability = model::Durability::memory;
  world.start();
  world.append(4);
  EXPECT_EQ(world.log().confirmed_end(), Offset(4));
  EXPECT_EQ(world.log().durable_offset(), Offset(0));
  world.pass(std::chrono::seconds(62));
  EXPECT_EQ(world.log().durable_offset(), Offset(4));
}

TEST(PartitionLog, ReadGivesWholeBatchesAndAlwaysTheFirst) {
  StorageWorld world;
  world.start();
  for (int i = 0; i < 10; ++i) world.append(5, 1'000);
  const auto one = world.read(Offset(7), 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->end_offset, Offset(10));
  EXPECT_EQ(model::RecordBatchView::parse_first(one->batches[0].bytes)->base_offset(), Offset(5));
  const auto two = world.read(Offset(0), one->bytes * 2 + 10);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->end_offset, Offset(10));
}

TEST(PartitionLog, ReadStopsAtLimit) {
  StorageWorld world;
  world.start();
  for (int i = 0; i < 4; ++i) world.append(5);
  const auto result = world.log().read(Offset(0), Offset(13), 1 << 20);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end_offset, Offset(10));
  const auto nothing = world.log().read(Offset(10), Offset(13), 1 << 20);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->bytes, 0u);
  EXPECT_EQ(nothing->end_offset, Offset(10));
}

TEST(PartitionLog, OffsetsOutsideTheLogAreRefused) {  // LOG-11
  StorageWorld world;
  world.start();
  world.append(3);
  EXPECT_EQ(world.read(Offset(4)).error(), make_error_code(StorageErrc::offset_out_of_range));
  EXPECT_EQ(world.read(Offset(-1)).error(), make_error_code(StorageErrc::offset_out_of_range));
  const auto at_end = world.read(Offset(3));
  ASSERT_TRUE(at_end);
  EXPECT_EQ(at_end->bytes, 0u);
}

TEST(PartitionLog, DamagedBatchIsRefusedWithoutMovingLogEnd) {  // LOG-4
  StorageWorld world;
  world.start();
  world.append(1);
  auto batch = make_batch(9, 2, 50);
  const_cast<std::byte&>(batch.bytes[120]) ^= std::byte{1};
  EXPECT_EQ(world.append_batch(batch).error(), make_error_code(StorageErrc::corrupt_batch));
  EXPECT_EQ(world.log().log_end_offset(), Offset(1));
  auto short_one = make_batch(9, 2, 50);
  short_one.bytes = short_one.bytes.first(60);
  EXPECT_EQ(world.append_batch(short_one).error(), make_error_code(StorageErrc::corrupt_batch));
}

TEST(PartitionLog, BatchAboveTopicLimitIsRefused) {
  StorageWorld world;
  world.settings.batch_bytes = 2'000;
  world.start();
  EXPECT_EQ(world.try_append(1, 2'000).error(), make_error_code(StorageErrc::batch_too_large));
  EXPECT_TRUE(world.try_append(1, 1'800));
}

TEST(PartitionLog, StaleLeaderEpochIsRefused) {  // PAR-4
  StorageWorld world;
  world.start();
  const auto epoch = world.log().leader_epoch();
  EXPECT_EQ(world.log().start_epoch(epoch).error(),
            make_error_code(StorageErrc::stale_leader_epoch));
  EXPECT_TRUE(world.log().start_epoch(model::LeaderEpoch(epoch.value() + 5)));
}

TEST(PartitionLog, AppendTimeNeverFalls) {  // LOG-8
  StorageWorld world;
  world.start();
  const auto before = world.append().append_time_ms;
  world.runtime.jump_wall_clock(-3'600'000);
  EXPECT_EQ(world.append().append_time_ms, before);
  ASSERT_TRUE(world.settle());
  world.kill();
  world.start();
  EXPECT_GE(world.append().append_time_ms, before);
}

TEST(PartitionLog, RollsBySizeAndReadsAcrossSegmentsFromFile) {
  StorageWorld world;
  world.config.tail_cache_bytes = 1;  // next to nothing stays in memory
  world.start();
  std::vector<std::byte> sent;
  for (int i = 0; i < 300; ++i) {
    auto batch = make_batch(static_cast<std::uint64_t>(i), 1 + i % 4, 300);
    ASSERT_TRUE(world.append_batch(batch));
    sent.insert(sent.end(), batch.bytes.begin(), batch.bytes.end());
  }
  EXPECT_GT(world.log().segments(), 2u);
  EXPECT_EQ(world.read_all(), sent);
  EXPECT_EQ(world.read_all(0, 1), sent);
  EXPECT_EQ(world.read_all(0, 5'000), sent);
}

TEST(PartitionLog, ReadsWhenNothingIsCached) {
  StorageWorld world;
  world.config.tail_cache_bytes = 1;
  world.config.index_stride_bytes = 1'000;
  world.start();
  std::vector<std::byte> sent;
  for (int i = 0; i < 300; ++i) {
    auto batch = make_batch(static_cast<std::uint64_t>(i), 2, 300);
    ASSERT_TRUE(world.append_batch(batch));
    sent.insert(sent.end(), batch.bytes.begin(), batch.bytes.end());
  }
  world.files->set_cold_share(1.0);
  EXPECT_EQ(world.read_all(0, 3'000), sent);
}

TEST(PartitionLog, BatchLargerThanSegmentGetsOneOfItsOwn) {
  StorageWorld world;
  world.start();
  world.append(1, 10);
  world.append(1, 200'000);
  world.append(1, 10);
  EXPECT_EQ(world.log().segments(), 3u);
  const auto all = world.read_all();
  EXPECT_GT(all.size(), 200'000u);
}

TEST(PartitionLog, RollsByAgeOfTheFirstBatch) {
  StorageWorld world;
  world.settings.segment_age = std::chrono::minutes(5);
  world.start();
  world.append();
  world.pass(std::chrono::minutes(4));
  world.append();
  EXPECT_EQ(world.log().segments(), 1u);
  world.pass(std::chrono::minutes(2));
  world.append();
  EXPECT_EQ(world.log().segments(), 2u);
}

TEST(PartitionLog, TailReadersShareTheAppendedBytes) {
  StorageWorld world;
  world.start();
  auto batch = make_batch(1, 1, 40'000);
  ASSERT_TRUE(world.append_batch(batch));
  const auto result = world.log().read(Offset(0), Offset(1), 1);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->batches[0].bytes.data(), batch.bytes.data());
}

TEST(PartitionLog, ManySmallBatchesComeInOnePiece) {
  StorageWorld world;
  world.start();
  for (int i = 0; i < 20; ++i) world.append(1, 20);
  const auto result = world.log().read(Offset(0), Offset(20), 1 << 20);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end_offset, Offset(20));
  EXPECT_LE(result->batches.size(), 2u);
}

}  // namespace
}  // namespace mq::testing
