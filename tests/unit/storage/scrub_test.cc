#include <gmock/gmock.h>

#include "base/mutants.h"
#include "storage/disk_files.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// Two partitions with three finished segments of about 64 KiB each.
struct Scrub : ::testing::Test {
  void start() {
    world.config.scrub_bytes_per_second = rate;
    world.start(2);
  }
  void fill() {
    for (int i = 0; i < 2; ++i) {
      while (world.log(i).segments() < 4) world.append(10, 1000, i);
      ASSERT_TRUE(world.settle(i));
    }
    world.pass(seconds(10));  // a flush after the last roll, and a checkpoint
  }
  [[nodiscard]] std::int64_t scrubbed() {
    return world.counters.get("storage_scrubbed_bytes_total").value();
  }
  /// Until a pass has ended.
  bool until_done() {
    return world.simulator.run_until([&] { return !world.disk->scrub().running; }, hours(1));
  }
  /// The second segment of partition 0.
  std::string second_segment() {
    for (const auto& file : world.files->files_below(world.directory(0)))
      if (file.ends_with(".log") && file != world.segment(0)) return file;
    return {};
  }

  std::uint64_t rate = 1u << 20;
  StorageWorld world;
};

TEST_F(Scrub, ReadsEveryFinishedSegmentOnceInAnInterval) {
  start();
  fill();
  world.pass(hours(1));
  const auto first = scrubbed();
  EXPECT_GT(first, 6 * 50'000);
  EXPECT_LT(first, 6 * 66'000);
  world.pass(hours(22));
  EXPECT_EQ(scrubbed(), first);
  world.pass(hours(2));
  EXPECT_EQ(scrubbed(), 2 * first);
  EXPECT_EQ(world.disk->scrub().damaged_segments, 0u);
}

TEST_F(Scrub, AFlippedBitIsNamedAndTheRestIsServed) {
  world.config.tail_cache_bytes = 0;  // else readers are served from memory
  start();
  fill();
  const auto file = second_segment();
  world.files->flip(file, 30'000, std::byte{4});
  const auto other = world.read_all(1);
  world.pass(hours(25));
  EXPECT_THAT(world.log(0).read_damage(), HasSubstr(file.substr(file.rfind('/') + 1)));
  EXPECT_EQ(world.log(1).read_damage(), "");
  EXPECT_EQ(world.disk->scrub().damaged_segments, 1u);
  EXPECT_EQ(world.complaints("cannot be read at byte"), 1);
  // LOG-4: readers are not given its bytes.
  const auto base = *storage::parse_segment_file_name(file.substr(file.rfind('/') + 1));
  bool refused = false;
  for (auto at = base; at < world.log(0).log_end_offset();) {
    const auto read = world.read(at);
    if (!read) {
      EXPECT_EQ(read.error(), make_error_code(StorageErrc::partition_corrupt));
      refused = true;
      break;
    }
    at = read->end_offset;
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(world.read(Offset(0)));
  EXPECT_EQ(world.read_all(1), other);
  EXPECT_TRUE(world.try_append());
}

TEST_F(Scrub, WhatWasTrimmedAwayMayBeDamaged) {
  start();
  fill();
  const auto file = second_segment();
  const auto base = *storage::parse_segment_file_name(file.substr(file.rfind('/') + 1));
  // Batches of ten records, a little above ten thousand bytes each.
  world.files->flip(file, 5'000, std::byte{4});
  world.files->flip(file, 15'000, std::byte{4});
  ASSERT_TRUE(world.trim(model::advance(base, 20)));
  world.pass(hours(25));
  EXPECT_EQ(world.log(0).read_damage(), "");
  EXPECT_EQ(world.disk->scrub().damaged_segments, 0u);
  world.files->flip(file, 45'000, std::byte{4});
  world.pass(hours(25));
  ASSERT_EQ(world.log(0).damaged_places().size(), 1u);
  const auto place = world.log(0).damaged_places().front();
  EXPECT_EQ(place.offset, model::advance(base, 40));
  EXPECT_EQ(place.end, model::advance(base, 50));
  EXPECT_EQ(world.disk->scrub().damaged_segments, 1u);
}

// LOG-4: what a reader finds in the page cache came from the disk, too.
TEST_F(Scrub, WhatIsInThePageCacheIsCheckedBeforeItIsHandedOut) {
  world.config.tail_cache_bytes = 0;
  start();
  fill();
  const auto file = second_segment();
  world.files->flip(file, 100, std::byte{4});  // in its first batch
  const auto base = *storage::parse_segment_file_name(file.substr(file.rfind('/') + 1));
  EXPECT_EQ(world.read(base).error(), make_error_code(StorageErrc::partition_corrupt));
  const base::EnabledMutant mutant("page_reads_unchecked");
  EXPECT_TRUE(world.read(base));
}

TEST_F(Scrub, KeepsToItsRate) {
  rate = 64u << 10;
  start();
  fill();
  world.pass(hours(24));
  const auto bytes = scrubbed();
  ASSERT_TRUE(world.simulator.run_until([&] { return scrubbed() > bytes; }, hours(24)));
  const auto begun = world.simulator.now();
  ASSERT_TRUE(until_done());
  const auto took = std::chrono::duration<double>(world.simulator.now() - begun).count();
  // All but the first piece, whose reading began it.
  EXPECT_GT(took, 5 * 50'000.0 / (64 << 10));
  EXPECT_LT(took, 3 * 6 * 66'000.0 / (64 << 10));
}

TEST_F(Scrub, GoesOnBehindTheLastSegmentAfterARestart) {
  rate = 8u << 10;
  start();
  fill();
  // In the middle of a pass.
  ASSERT_TRUE(world.simulator.run_until([&] { return scrubbed() > 130'000; }, hours(48)));
  const auto first = scrubbed();
  ASSERT_TRUE(world.stop());
  start();
  world.pass(seconds(1));
  EXPECT_TRUE(world.disk->scrub().running);
  ASSERT_TRUE(until_done());
  // No more than a segment is read twice.
  EXPECT_LT(scrubbed(), 7 * 66'000);
  EXPECT_GT(scrubbed(), first);
  world.pass(hours(12));
  EXPECT_FALSE(world.disk->scrub().running);
}

TEST_F(Scrub, AStopBeforeAPartitionsFirstSegmentLeavesNoneOut) {
  rate = 8u << 10;
  start();
  fill();
  // The third segment of the first partition is read; the next one's turn has not come yet.
  ASSERT_TRUE(world.simulator.run_until([&] { return scrubbed() > 3 * 50'000; }, hours(48)));
  world.pass(seconds(1));
  const auto first = scrubbed();
  ASSERT_LT(first, 3 * 66'000);
  ASSERT_TRUE(world.stop());
  start();
  world.pass(seconds(1));
  ASSERT_TRUE(until_done());
  EXPECT_GT(scrubbed() - first, 3 * 50'000);
}

TEST_F(Scrub, AMarkThatIsDamagedOnlyBeginsAnew) {
  start();
  fill();
  world.pass(hours(25));
  ASSERT_TRUE(world.stop());
  world.files->flip("data/scrub", 30, std::byte{1});
  const auto before = scrubbed();
  start();
  world.pass(hours(1));
  EXPECT_GT(scrubbed(), before + 6 * 50'000);
}

TEST_F(Scrub, ZeroIsOff) {
  rate = 0;
  start();
  fill();
  world.pass(hours(50));
  EXPECT_EQ(scrubbed(), 0);
  EXPECT_FALSE(*world.files->exists("data/scrub"));
}

TEST(ScrubMark, GoesBothWaysAndRefusesWhatCannotBe) {
  storage::ScrubMark mark;
  mark.id = {base::Uuid::from_random(1, 2), 3};
  mark.segment = Offset(44);
  mark.began_ms = 1'700'000'000'000;
  mark.bytes = 12'345;
  mark.damaged_segments = 2;
  const auto body = storage::encode_scrub_mark(mark);
  EXPECT_EQ(*storage::decode_scrub_mark(body), mark);
  for (std::size_t n = 0; n < body.size(); ++n)
    EXPECT_FALSE(storage::decode_scrub_mark(base::Bytes(body).first(n)));
}

}  // namespace
}  // namespace mq::testing
