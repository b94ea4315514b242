#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::seconds;

TEST(DiskFaults, FullDiskRefusesByNameKeepsReadingAndRecoversByItself) {  // REC-6, LOG-6
  StorageWorld world;
  world.config.low_mark_bytes = 0;  // the appends themselves meet the full disk
  world.start();
  const auto kept = world.append(5, 1'000);
  ASSERT_TRUE(world.settle());
  world.files->set_capacity(world.files->used_bytes() + 8'192);
  int appended = 0;
  base::Result<storage::AppendInfo> last = kept;
  for (int i = 0; i < 50; ++i) {
    last = world.try_append(1, 3'000);
    if (!last) break;
    ++appended;
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error(), make_error_code(StorageErrc::storage_full));
  const auto end = world.log().log_end_offset();
  EXPECT_EQ(end, Offset(5 + appended));
  EXPECT_EQ(world.try_append(1, 10).error(), make_error_code(StorageErrc::storage_full));
  EXPECT_TRUE(world.disk->full());
  EXPECT_FALSE(world.log().failure());
  const auto before = world.read_all();
  EXPECT_FALSE(before.empty());
  world.files->set_capacity(std::uint64_t{1} << 40);
  world.pass(seconds(3));
  EXPECT_FALSE(world.disk->full());
  EXPECT_EQ(world.append(1).base_offset, end);  // no offset is skipped or given twice
  ASSERT_TRUE(world.settle());
  world.kill();
  EXPECT_EQ(world.start().bytes_cut, 0u);
  EXPECT_EQ(world.log().log_end_offset(), Offset(end.value() + 1));
}

TEST(DiskFaults, LowMarkActsBeforeTheDiskIsFull) {
  StorageWorld world;
  world.files->set_capacity(20u << 20);  // mark: a tenth
  world.start();
  world.pass(seconds(2));
  base::Result<storage::AppendInfo> last = world.append(1);
  for (int i = 0; i < 400; ++i) {
    last = world.try_append(1, 100'000);
    if (!last) break;
    world.pass(std::chrono::milliseconds(100));
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error(), make_error_code(StorageErrc::storage_full));
  EXPECT_GT(world.disk->free_bytes(), 500u << 10);
  EXPECT_FALSE(world.disk->failed());
  ASSERT_TRUE(world.stop());  // and a clean stop still has room
}

TEST(DiskFaults, RetentionFreesAFullDisk) {
  StorageWorld world;
  world.files->set_capacity(20u << 20);
  world.start();
  world.pass(seconds(2));
  while (world.try_append(1, 100'000)) world.pass(std::chrono::milliseconds(100));
  ASSERT_TRUE(world.disk->full());
  world.settings.retention_bytes = 5u << 20;
  world.log().set_settings(world.settings);
  world.pass(seconds(30));
  EXPECT_FALSE(world.disk->full());
  EXPECT_TRUE(world.try_append(1, 1'000));
}

TEST(DiskFaults, RetentionWorksWithoutOneFreeByte) {
  StorageWorld world;
  world.config.low_mark_bytes = 0;
  world.start();
  world.pass(seconds(2));
  for (int i = 0; i < 50; ++i) world.append(1, 20'000);
  ASSERT_TRUE(world.settle());
  world.pass(seconds(10));
  world.files->set_capacity(world.files->used_bytes());
  world.settings.retention_age = seconds(1);
  world.log().set_settings(world.settings);
  world.pass(seconds(60));
  EXPECT_GT(world.log().log_start_offset(), Offset(40));
  EXPECT_FALSE(world.disk->failed());
}

TEST(DiskFaults, StartOnAFullDiskCutsNothing) {
  StorageWorld world;
  world.start();
  for (int i = 0; i < 50; ++i) world.append(1, 5'000);
  world.kill();
  world.files->set_capacity(world.files->used_bytes());
  auto summary = world.start();
  EXPECT_EQ(summary.bytes_cut, 0u);
  EXPECT_EQ(world.log().log_end_offset(), Offset(50));
  world.read_all();
  world.kill();
  world.files->set_capacity(std::uint64_t{1} << 40);
  summary = world.start();
  EXPECT_EQ(world.log().log_end_offset(), Offset(50));
  world.append();
}

TEST(DiskFaults, ShortWriteIsUndone) {  // LOG-6
  StorageWorld world;
  world.start();
  world.append(2);
  const auto size = world.files->content(world.segment(0)).size();
  world.files->inject({.operation = FileOperation::write, .path_part = ".log", .short_write = 50});
  EXPECT_EQ(world.try_append(1, 500).error(), make_error_code(StorageErrc::storage_full));
  EXPECT_EQ(world.files->content(world.segment(0)).size(), size);
  EXPECT_EQ(world.log().log_end_offset(), Offset(2));
  world.pass(seconds(3));
  EXPECT_EQ(world.append().base_offset, Offset(2));
}

TEST(DiskFaults, ShortWriteThatCannotBeUndoneTakesTheDiskOffline) {  // REC-5
  StorageWorld world;
  world.start(2);
  world.append(2);
  world.files->inject({.operation = FileOperation::write, .path_part = ".log", .short_write = 50});
  world.files->inject({.operation = FileOperation::truncate, .path_part = ".log"});
  EXPECT_EQ(world.try_append(1, 500).error(), make_error_code(StorageErrc::disk_failed));
  world.pass(seconds(1));
  EXPECT_TRUE(world.disk->failed());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(world.log(i).failure(), make_error_code(StorageErrc::disk_failed));
  world.files->clear_faults();
  EXPECT_EQ(world.stop().error(), make_error_code(StorageErrc::disk_failed));
  EXPECT_FALSE(*world.files->exists("data/clean"));
  world.start(2);
  EXPECT_EQ(world.log().log_end_offset(), Offset(2));
}

TEST(DiskFaults, FailedWriteTakesTheDiskOffline) {
  StorageWorld world;
  world.start();
  world.append(2);
  ASSERT_TRUE(world.settle());
  world.files->inject({.operation = FileOperation::write, .path_part = ".log"});
  EXPECT_EQ(world.try_append().error(), make_error_code(StorageErrc::disk_failed));
  EXPECT_EQ(world.try_append().error(), make_error_code(StorageErrc::disk_failed));
  EXPECT_EQ(world.read(Offset(0)).error(), make_error_code(StorageErrc::disk_failed));
  EXPECT_EQ(world.complaints("is offline"), 1);
}

TEST(DiskFaults, FailedSyncIsNeverRepeatedAndConfirmsNothing) {  // REC-5
  for (const auto* file : {".journal", ".log"}) {
    int calls = 0;  // outlives the log, which calls to the end
    StorageWorld world;
    if (std::string_view(file) == ".log") world.config.journal_bypass_bytes = 1;
    world.start();
    world.append(2);
    ASSERT_TRUE(world.settle());
    world.log().on_changed([&] { ++calls; });
    world.files->inject({.operation = FileOperation::sync, .path_part = file});
    world.append(3);
    world.pass(seconds(90));
    EXPECT_EQ(world.log().durable_offset(), Offset(2));
    EXPECT_EQ(world.log().confirmed_end(), Offset(2));
    EXPECT_EQ(world.log().failure(), make_error_code(StorageErrc::disk_failed));
    EXPECT_GE(calls, 1);
    EXPECT_EQ(world.files->faults_struck(), 1u);
    EXPECT_EQ(world.stop().error(), make_error_code(StorageErrc::disk_failed));
    // What the disk never got is not served after a restart in the same boot either. The segment's
    // own pages are as good as ever if it was the journal's sync that failed.
    world.start();
    EXPECT_EQ(world.log().log_end_offset(), Offset(std::string_view(file) == ".log" ? 2 : 5));
    EXPECT_EQ(world.log().durable_offset(), world.log().log_end_offset());
  }
}

TEST(DiskFaults, FailedAllocationAheadOfNeedIsEarlyNotice) {
  StorageWorld world;
  world.settings.segment_bytes = 64u << 20;
  world.start();
  world.files->inject({.operation = FileOperation::allocate,
                       .path_part = ".log",
                       .error = base::make_error_code(base::BaseErrc::no_space)});
  // Slowly: what is written fast takes nothing ahead.
  for (int i = 0; i < 10 && !world.disk->full(); ++i) {
    world.append(1, 20'000);
    world.simulator.run_until([&] { return world.disk->full(); }, std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(world.disk->full());
  EXPECT_FALSE(world.disk->failed());
}

TEST(DiskFaults, TooManyOpenFilesRefusesTheRollOnly) {
  StorageWorld world;
  world.start();
  while (world.log().bytes_on_disk() < 60'000) world.append(1, 5'000);
  const auto end = world.log().log_end_offset();
  world.files->inject({.operation = FileOperation::open, .path_part = ".log", .times = 2});
  EXPECT_EQ(world.try_append(1, 20'000).error(), make_error_code(StorageErrc::io_failed));
  EXPECT_EQ(world.try_append(1, 20'000).error(), make_error_code(StorageErrc::io_failed));
  EXPECT_EQ(world.append(1, 20'000).base_offset, end);
  EXPECT_FALSE(world.disk->failed());
}

TEST(DiskFaults, FailedRenameOfTheCheckpointTakesTheDiskOffline) {  // REC-2, REC-5
  StorageWorld world;
  world.start();
  world.append(2);
  world.files->inject({.operation = FileOperation::rename, .path_part = "checkpoint"});
  world.pass(seconds(12));
  EXPECT_TRUE(world.disk->failed());
  world.kill();
  world.start();
  EXPECT_EQ(world.log().log_end_offset(), Offset(2));
}

TEST(DiskFaults, GroupCommitSyncsOncePerRoundAndLog) {
  StorageWorld world;
  world.start(2);
  auto& syncs = world.counters.get("storage_syncs_total");
  for (int i = 0; i < 100; ++i) world.append(1, 100, i % 2);
  ASSERT_TRUE(world.settle(0));
  ASSERT_TRUE(world.settle(1));
  EXPECT_LE(syncs.value(), 4);
}

TEST(DiskFaults, NeighbourDiskIsNotConcerned) {
  StorageWorld world;
  StorageWorld other(2);
  world.start();
  other.start();
  world.files->inject({.operation = FileOperation::sync, .path_part = "", .times = -1});
  world.append();
  world.pass(seconds(1));
  EXPECT_TRUE(world.disk->failed());
  other.append();
  EXPECT_TRUE(other.settle());
  EXPECT_FALSE(other.disk->failed());
}

}  // namespace
}  // namespace mq::testing
