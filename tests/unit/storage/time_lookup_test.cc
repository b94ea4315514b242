#include "storage/time_index.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Three segments of one batch a second each; offset n was appended n / 2 seconds after the first.
struct TimedLog : StorageWorld {
  TimedLog() {
    settings.retention_age = milliseconds(0);
    config.index_stride_bytes = 4 << 10;
    start();
    for (int i = 0; i < 60; ++i) {
      append(2, 1'400);
      if (i == 0) first_ms = runtime.wall_clock_ms();
      pass(seconds(1));
    }
    settle();
    EXPECT_GE(log().segments(), 3u);
  }

  /// The offset that `after` ms behind the first append finds; -1: none.
  std::int64_t at(std::int64_t after) {
    const auto found = find_time(first_ms + after);
    EXPECT_TRUE(found) << found.error().message();
    if (!found) return -2;
    return found->append_time_ms < 0 ? -1 : found->offset.value();
  }
  void check() {
    EXPECT_EQ(at(-5'000), 0);
    EXPECT_EQ(at(0), 0);
    EXPECT_EQ(at(59'001), -1);
    for (int i = 1; i < 60; ++i) {
      ASSERT_EQ(at(i * 1'000), i * 2);
      ASSERT_EQ(at(i * 1'000 - 999), i * 2);
    }
  }

  std::int64_t first_ms = 0;
};

TEST(TimeLookup, FindsTheFirstOffsetAppendedThenOrLater) {
  TimedLog world;
  world.check();
  EXPECT_EQ(world.find_time(world.first_ms + 100'000)->offset, Offset(120));
  EXPECT_EQ(world.find_time(world.first_ms + 30'000)->append_time_ms, world.first_ms + 30'000);
}

TEST(TimeLookup, AnswersTheSameAfterEveryKindOfStart) {
  TimedLog world;
  ASSERT_TRUE(world.stop());
  world.start();
  world.check();
  world.crash();
  world.start();
  world.check();
  // Some of the active segment before the start, some after it.
  world.pass(seconds(10));
  const auto late_ms = world.runtime.wall_clock_ms();
  const auto late = world.append(1, 100);
  EXPECT_EQ(world.find_time(late_ms)->offset, late.base_offset);
  EXPECT_EQ(world.find_time(late_ms - 5)->offset, late.base_offset);
  EXPECT_EQ(world.at(59'000), 118);
  EXPECT_EQ(world.at(30'000), 60);
}

TEST(TimeLookup, SealedSegmentsHaveATimeIndexOnDisk) {
  TimedLog world;
  int times = 0;
  for (const auto& file : world.files->files_below(world.directory()))
    times += file.ends_with(".time");
  EXPECT_EQ(times, static_cast<int>(world.log().segments()) - 1);
}

/// LOG-5: whatever becomes of the indexes, the answers stay.
TEST(TimeLookup, DamagedOrMissingIndexesChangeNoAnswer) {
  SimRandom random(5);
  for (int round = 0; round < 12; ++round) {
    TimedLog world;
    ASSERT_TRUE(world.stop());
    for (const auto& file : world.files->files_below(world.directory())) {
      if (!file.ends_with(".time") && (round % 2 == 0 || !file.ends_with(".index"))) continue;
      const auto size = world.files->content(file).size();
      if (round < 2) {
        world.files->remove_tree(file);
      } else if (round < 4) {
        world.files->truncate_file(file, random.below(size));
      } else {
        world.files->flip(file, random.below(size), static_cast<std::byte>(1 << random.below(8)));
      }
    }
    world.start();
    world.check();
    world.check();  // from what was made anew
  }
}

/// A time index that says wrong things under a right checksum.
TEST(TimeLookup, IndexThatDoesNotFitItsSegmentIsNotBelieved) {
  TimedLog world;
  ASSERT_TRUE(world.stop());
  for (const auto& file : world.files->files_below(world.directory())) {
    if (!file.ends_with(".log")) continue;
    const auto bytes = world.files->content(file).size();
    const auto base = Offset(std::stoll(file.substr(file.size() - 24, 20)));
    storage::TimeIndex wrong(base, 1);
    wrong.note(world.first_ms - 10, model::advance(base, 5), 2'000);  // no batch begins there
    wrong.note(world.first_ms + 1'000, model::advance(base, 6), bytes - 100);
    ASSERT_TRUE(storage::write_time_index(*world.files, file.substr(0, file.size() - 4) + ".time",
                                          wrong, bytes));
  }
  world.start();
  world.check();
}

TEST(TimeLookup, EmptyAndExpiredLogsFindTheirEnd) {
  StorageWorld world;
  world.settings.retention_age = seconds(60);
  world.start();
  EXPECT_EQ(world.find_time(0)->offset, Offset(0));
  EXPECT_EQ(world.find_time(0)->append_time_ms, -1);
  world.append(10);
  world.pass(seconds(120));
  EXPECT_EQ(world.log().log_start_offset(), Offset(10));
  EXPECT_EQ(world.find_time(0)->offset, Offset(10));
  EXPECT_EQ(world.find_time(0)->append_time_ms, -1);
}

TEST(TimeLookup, DamagedBatchIsRefusedByNameAndReportsItsPlace) {
  TimedLog world;
  ASSERT_TRUE(world.stop());
  const auto segment = world.files->content(world.segment(0));
  const auto second = model::RecordBatchView::parse_first(segment)->batch_bytes();
  for (const auto& file : world.files->files_below(world.directory()))
    if (file.ends_with(".time")) world.files->remove_tree(file);
  world.start();
  world.files->flip(world.segment(0), second + 20, std::byte{1});
  const auto found = world.find_time(world.first_ms + 10'000);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), make_error_code(StorageErrc::partition_corrupt));
  EXPECT_EQ(world.complaints("cannot be read at byte"), 1) << world.lines.back();
}

TEST(TimeLookup, DiskThatFailedIsNamed) {
  TimedLog world;
  world.files->inject({.operation = FileOperation::sync, .path_part = ".log"});
  static_cast<void>(world.try_append());
  world.pass(seconds(1));
  EXPECT_EQ(world.find_time(0).error(), make_error_code(StorageErrc::disk_failed));
}

}  // namespace
}  // namespace mq::testing
