#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::seconds;

TEST(Retention, IdleTopicLosesAllItsOldRecords) {
  StorageWorld world;
  world.settings.retention_age = seconds(60);
  world.settings.segment_bytes = 1u << 30;
  world.start();
  world.append(10);
  world.pass(seconds(50));
  EXPECT_EQ(world.log().log_start_offset(), Offset(0));
  world.pass(seconds(40));
  EXPECT_EQ(world.log().log_start_offset(), Offset(10));
  EXPECT_EQ(world.log().log_end_offset(), Offset(10));
  EXPECT_EQ(world.log().segments(), 1u);
  EXPECT_FALSE(world.files->files_below(world.directory()).empty());
  // LOG-10: the next offset survives, whatever comes.
  world.crash();
  world.start();
  EXPECT_EQ(world.log().log_start_offset(), Offset(10));
  ASSERT_TRUE(world.stop());
  world.start();
  EXPECT_EQ(world.append(1).base_offset, Offset(10));
  EXPECT_EQ(world.read(Offset(3)).error(), make_error_code(StorageErrc::offset_out_of_range));
}

/// A log of which the only segment is about to get old, on a disk that is busy for long.
struct IdleWorld : StorageWorld {
  IdleWorld() {
    settings.retention_age = std::chrono::milliseconds(0);
    settings.segment_age = std::chrono::minutes(5);
    start();
    append(10);
    settle();
    pass(seconds(295));
    executor->stall(seconds(30));
    pass(seconds(20));
  }
  [[nodiscard]] bool has_next_file() const { return *files->exists(segment(10)); }
};

TEST(Retention, AnIdleLogsNextFileIsMadeByAThreadForWhichAppendsWait) {
  IdleWorld world;
  EXPECT_FALSE(world.has_next_file());
  EXPECT_FALSE(world.log().appends_inline());
  auto batch = make_batch(2, 1, 100);
  const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
  auto appending =
      world.log().append_later(batch.owner, bytes, *model::parse_produced(bytes, 1u << 20));
  const auto appended = start_for_outcome(world.simulator.executor(), std::move(appending), [] {});
  world.pass(seconds(5));
  EXPECT_FALSE(appended->value);
  EXPECT_FALSE(world.has_next_file());
  EXPECT_EQ(world.log().segments(), 1u);
  world.pass(seconds(20));
  EXPECT_TRUE(world.has_next_file());
  ASSERT_TRUE(appended->value && *appended->value);
  EXPECT_EQ((*appended->value)->base_offset, Offset(10));
  EXPECT_EQ(world.log().segments(), 2u);
}

TEST(Retention, WhoDoesNotWaitForAnIdleLogsNextFileMakesItHimself) {
  IdleWorld world;
  ASSERT_FALSE(world.has_next_file());
  EXPECT_EQ(world.append(1).base_offset, Offset(10));
  EXPECT_TRUE(world.has_next_file());
  EXPECT_EQ(world.append(1).base_offset, Offset(11));
  world.pass(seconds(60));
  EXPECT_EQ(world.log().segments(), 2u);
  EXPECT_EQ(world.append(1).base_offset, Offset(12));
  const auto all = world.read_all();
  world.kill();
  EXPECT_TRUE(world.start().offline.empty());
  EXPECT_EQ(world.read_all(), all);
}

TEST(Retention, AStopWaitsForAnIdleLogsNextFile) {
  IdleWorld world;
  ASSERT_FALSE(world.has_next_file());
  ASSERT_TRUE(world.stop());
  EXPECT_TRUE(world.has_next_file());
  EXPECT_TRUE(world.start().clean);
  EXPECT_EQ(world.append(1).base_offset, Offset(10));
}

// LOG-10
TEST(Retention, NothingAboveItsLimitGoes) {
  StorageWorld world;
  world.settings.retention_age = seconds(60);
  world.settings.segment_bytes = 1u << 30;
  world.start();
  world.append(10);
  world.pass(seconds(90));
  ASSERT_EQ(world.log().log_start_offset(), Offset(10));
  world.log().set_retention_limit(Offset(15));
  world.append(10);
  world.pass(seconds(90));
  EXPECT_EQ(world.log().log_start_offset(), Offset(10));
  world.log().set_retention_limit(Offset(20));
  world.pass(seconds(30));
  EXPECT_EQ(world.log().log_start_offset(), Offset(20));
  world.log().set_retention_limit(Offset());
  world.append(10);
  world.pass(seconds(90));
  EXPECT_EQ(world.log().log_start_offset(), Offset(30));
}

TEST(Retention, OldestReadableRecordIsNeverMuchOlderThanTheLimit) {
  StorageWorld world;
  world.settings.retention_age = seconds(60);
  world.settings.segment_bytes = 1u << 30;
  world.start();
  const auto check = std::chrono::milliseconds(world.config.retention_interval).count();
  for (int i = 0; i < 300; ++i) {
    world.append(1, 1'000);
    world.pass(seconds(1));
    const auto result = world.read(world.log().log_start_offset(), 1);
    ASSERT_TRUE(result);
    if (result->bytes == 0) continue;
    const auto oldest = model::RecordBatchView::parse_first(result->batches[0].bytes);
    const auto age = world.runtime.wall_clock_ms() - oldest->append_time_ms();
    ASSERT_LE(age, 60'000 + 15'000 + check + 2'000);
  }
  EXPECT_GT(world.log().log_start_offset(), Offset(200));
}

TEST(Retention, SizeLimitBelowOneSegmentKeepsTheNewestRecord) {
  StorageWorld world;
  world.settings.retention_bytes = 1u << 20;
  world.settings.retention_age = std::chrono::milliseconds(0);
  world.settings.segment_bytes = 128u << 20;
  world.start();
  for (int i = 0; i < 400; ++i) {
    const auto info = world.append(1, 20'000);
    if (i % 10 == 0) world.pass(seconds(5));
    const auto newest = world.read(info.base_offset, 1);
    ASSERT_TRUE(newest);
    ASSERT_GT(newest->bytes, 20'000u);
    ASSERT_GE(world.log().bytes_on_disk(), std::min<std::uint64_t>(1u << 20, (i + 1) * 20'000ull));
  }
  world.pass(seconds(20));
  EXPECT_GT(world.log().log_start_offset(), Offset(300));
  EXPECT_LT(world.log().bytes_on_disk(), (1u << 20) + (600u << 10));
}

TEST(Retention, ShorterAgeActsOnOldDataWithinTwoChecks) {
  StorageWorld world;
  world.start();
  for (int i = 0; i < 100; ++i) world.append(1, 5'000);
  world.pass(std::chrono::hours(1));
  EXPECT_EQ(world.log().log_start_offset(), Offset(0));
  world.settings.retention_age = seconds(60);
  world.log().set_settings(world.settings);
  world.pass(2 * world.config.retention_interval);
  EXPECT_EQ(world.log().log_start_offset(), Offset(100));
}

TEST(Retention, EachRemovalIsOneLineWithPartitionAndNewStart) {
  StorageWorld world;
  world.settings.retention_age = seconds(60);
  world.start();
  world.append(5, 40'000);
  world.append(3, 40'000);
  world.pass(seconds(120));
  int lines = 0;
  bool last = false;
  for (const auto& line : world.lines) {
    if (line.find("removed 0") == std::string::npos) continue;
    ++lines;
    EXPECT_NE(line.find(world.id().text()), std::string::npos);
    last = line.find("log start is now 8") != std::string::npos;
  }
  EXPECT_EQ(lines, 2);
  EXPECT_TRUE(last);
}

TEST(Retention, AppendTimesOfSealedSegmentsComeFromTheirIndexAfterARestart) {
  for (const bool lose_indexes : {false, true}) {
    StorageWorld world;
    world.settings.retention_age = std::chrono::hours(1);
    world.start();
    for (int i = 0; i < 50; ++i) world.append(1, 5'000);
    ASSERT_TRUE(world.stop());
    if (lose_indexes) {
      for (const auto& file : world.files->files_below(world.directory())) {
        if (file.ends_with(".index")) world.files->remove_tree(file);
      }
    }
    world.start();
    world.pass(std::chrono::minutes(30));
    EXPECT_EQ(world.log().log_start_offset(), Offset(0));
    world.pass(std::chrono::minutes(35));
    EXPECT_EQ(world.log().log_start_offset(), Offset(50));
  }
}

TEST(Retention, RemovalBrokenOffByACrashIsFinishedAtStart) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    StorageWorld world(seed);
    world.settings.retention_age = seconds(60);
    world.start();
    for (int i = 0; i < 60; ++i) world.append(1, 5'000);
    world.pass(seconds(59));
    world.pass(std::chrono::milliseconds(seed * 200));
    const auto start_seen = world.log().log_start_offset();
    if (seed % 2) {
      world.crash();
    } else {
      world.kill();
    }
    const auto summary = world.start();
    ASSERT_TRUE(summary.offline.empty()) << seed;
    ASSERT_GE(world.log().log_start_offset(), start_seen);
    ASSERT_EQ(world.log().log_end_offset(), Offset(60));
    world.read_all();
  }
}

}  // namespace
}  // namespace mq::testing
