#include "base/log.h"
#include "storage/disk_files.h"
#include "storage/offset_index.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"
#include "storage/time_index.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using storage::Checkpoint;
using storage::LogCheckpoint;

LogCheckpoint sample_log() {
  LogCheckpoint log;
  log.id = {base::Uuid::from_random(3, 4), 5};
  log.log_start_offset = Offset(100);
  log.recovery_point = {Offset(900), Offset(500), 12'345, model::LeaderEpoch(7), 1'000, 900};
  log.sealed = {{Offset(100), 64'000}, {Offset(300), 65'000}};
  log.epoch_starts = {{model::LeaderEpoch(3), Offset(0)}, {model::LeaderEpoch(7), Offset(400)}};
  return log;
}

TEST(StorageNames, SegmentNamesGoBothWays) {
  EXPECT_EQ(storage::segment_file_name(Offset(42)), "00000000000000000042.log");
  EXPECT_EQ(storage::parse_segment_file_name("00000000000000000042.log"), Offset(42));
  for (const auto* bad : {"42.log", "00000000000000000042.index", "0000000000000000004x.log",
                          "99999999999999999999.log", "-0000000000000000042.log", ""})
    EXPECT_FALSE(storage::parse_segment_file_name(bad)) << bad;
}

TEST(StorageNames, PartitionDirectoryNamesAreExact) {
  const model::PartitionId id{base::Uuid::from_random(3, 4), 12};
  EXPECT_EQ(storage::parse_partition_directory_name(id.text()), id);
  const auto hex = id.topic.hex();
  for (const auto& bad : {hex, hex + "-", hex + "-01", hex + "--1", hex + "-1.1", "x" + hex + "-1",
                          hex + "-99999999999"})
    EXPECT_FALSE(storage::parse_partition_directory_name(bad)) << bad;
}

TEST(SealedFile, EveryFlippedBitAndEveryCutIsNoticed) {
  const std::string body = "twenty bytes of body";
  const auto file = storage::seal(storage::kIdentityMagic, base::as_bytes(body));
  EXPECT_EQ(base::as_text(*storage::unseal(storage::kIdentityMagic, file)), body);
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    auto damaged = file;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(storage::unseal(storage::kIdentityMagic, damaged)) << bit;
  }
  for (std::size_t n = 0; n < file.size(); ++n)
    EXPECT_FALSE(storage::unseal(storage::kIdentityMagic, base::Bytes(file).first(n)));
}

TEST(DiskFiles, CheckpointGoesBothWays) {
  Checkpoint checkpoint;
  const auto log = sample_log();
  checkpoint[log.id] = log;
  auto lost = sample_log();
  lost.id.partition = 6;
  lost.recovery_point_lost = true;
  checkpoint[lost.id] = lost;
  const auto decoded = storage::decode_checkpoint(storage::encode_checkpoint(checkpoint));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, checkpoint);
}

TEST(DiskFiles, GoldenIdentity) {
  storage::DiskIdentity identity;
  identity.cluster = *base::Uuid::from_hex("000102030405460788090a0b0c0d0e0f");
  identity.broker = model::BrokerId(7);
  identity.disk = *base::Uuid::from_hex("101112131415461798191a1b1c1d1e1f");
  const auto file = storage::seal(storage::kIdentityMagic, storage::encode_identity(identity));
  std::string hex;
  for (const auto b : file) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  EXPECT_EQ(hex,
            "4d514944454e540a0100000034000000018188c4000102030405460788090a0b0c0d0e0f07000000"
            "101112131415461798191a1b1c1d1e1f00000000000000000000000000000000");
}

TEST(DiskFiles, CountsThatCannotBeAreRefusedWithoutMemory) {
  storage::FieldWriter out;
  out.put(std::uint32_t{0xffffffff});
  EXPECT_FALSE(storage::decode_checkpoint(out.bytes()));
  storage::FieldWriter marker;
  for (int i = 0; i < 4; ++i) marker.put(std::uint32_t{0});
  marker.put(std::uint32_t{0x7fffffff});
  EXPECT_FALSE(storage::decode_clean_marker(marker.bytes()));
}

TEST(OffsetIndex, FloorIsTheLastEntryAtOrBelow) {
  storage::OffsetIndex index(Offset(1'000), 100);
  for (int i = 0; i < 50; ++i)
    index.note(Offset(1'000 + i * 3), static_cast<std::uint64_t>(i) * 40);
  EXPECT_EQ(index.entries().size(), 17u);  // every third batch, 120 bytes apart
  EXPECT_EQ(index.floor_position(Offset(1'000)), 0u);
  EXPECT_EQ(index.floor_position(Offset(1'008)), 0u);
  EXPECT_EQ(index.floor_position(Offset(1'009)), 120u);
  EXPECT_EQ(index.floor_position(Offset(9'999)), 48u * 40);
  EXPECT_EQ(index.floor_position(Offset(0)), 0u);
}

TEST(OffsetIndex, FileGoesBothWays) {
  storage::SegmentIndex index{.offsets = storage::OffsetIndex(Offset(7), 10)};
  index.offsets.note(Offset(7), 0);
  index.offsets.note(Offset(9), 20);
  index.end_offset = Offset(12);
  index.segment_bytes = 99;
  index.last_append_time_ms = 5;
  index.epoch_starts = {{model::LeaderEpoch(1), Offset(8)}};
  SimFileSystem files;
  ASSERT_TRUE(storage::write_segment_index(files, "x.index", index));
  const auto loaded = storage::load_segment_index(files, "x.index", Offset(7), 99);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->offsets.entries().size(), 2u);
  EXPECT_EQ(loaded->offsets.floor_position(Offset(11)), 20u);
  EXPECT_EQ(loaded->epoch_starts, index.epoch_starts);
  EXPECT_FALSE(storage::load_segment_index(files, "x.index", Offset(7), 98));
  EXPECT_FALSE(storage::load_segment_index(files, "x.index", Offset(8), 99));
}

storage::TimeIndex sample_times() {
  storage::TimeIndex times(Offset(7), 100);
  times.note(1'700'000'000'000, Offset(7), 0);
  times.note(1'700'000'000'000, Offset(9), 150);  // not older
  times.note(1'700'000'000'005, Offset(12), 400);
  times.note(1'700'000'000'006, Offset(13), 450);  // not a stride away
  times.note(1'700'000'000'250, Offset(20), 500);
  return times;
}

TEST(TimeIndex, FloorIsTheLastEntryThatIsOlder) {
  const auto times = sample_times();
  ASSERT_EQ(times.entries().size(), 3u);
  const auto floor = [&](std::int64_t time_ms) { return times.floor(time_ms).position; };
  EXPECT_EQ(floor(0), 0u);
  EXPECT_EQ(floor(1'700'000'000'000), 0u);
  EXPECT_EQ(floor(1'700'000'000'001), 0u);
  EXPECT_EQ(floor(1'700'000'000'005), 0u);  // others of that time may lie before
  EXPECT_EQ(floor(1'700'000'000'006), 400u);
  EXPECT_EQ(floor(1'700'000'000'250), 400u);
  EXPECT_EQ(floor(1'700'000'000'251), 500u);
  EXPECT_EQ(times.floor(1'700'000'000'251).base_offset, Offset(20));
}

TEST(Watermarks, GoldenFile) {
  storage::Watermarks marks;
  marks[{*base::Uuid::from_hex("3031323334354637b8393a3b3c3d3e3f"), 3}] = Offset(300);
  const auto file = storage::seal(storage::kWatermarksMagic, storage::encode_watermarks(marks));
  std::string hex;
  for (const auto b : file) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  EXPECT_EQ(hex,
            "4d5148494748570a0100000020000000e4596238010000003031323334354637b8393a3b3c3d3e3f"
            "030000002c01000000000000");
  const auto body = storage::unseal(storage::kWatermarksMagic, file);
  ASSERT_TRUE(body);
  EXPECT_EQ(*storage::decode_watermarks(*body), marks);
  for (std::size_t bytes = 0; bytes < body->size(); ++bytes)
    EXPECT_FALSE(storage::decode_watermarks(body->first(bytes)));
}

TEST(TimeIndex, GoldenFile) {
  const auto file =
      storage::seal(storage::kTimeIndexMagic, storage::encode_time_index(sample_times(), 600));
  std::string hex;
  for (const auto b : file) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  EXPECT_EQ(hex,
            "4d5154494d45530a0100000044000000e824ad600700000000000000580200000000000003000000"
            "0068e5cf8b01000000000000000000000568e5cf8b0100000500000090010000fa68e5cf8b010000"
            "0d000000f4010000");
}

TEST(TimeIndex, FileGoesBothWaysForItsSegmentOnly) {
  SimFileSystem files;
  ASSERT_TRUE(storage::write_time_index(files, "x.time", sample_times(), 600));
  const auto loaded = storage::load_time_index(files, "x.time", Offset(7), 600);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->entries(), sample_times().entries());
  EXPECT_FALSE(storage::load_time_index(files, "x.time", Offset(7), 599));
  EXPECT_FALSE(storage::load_time_index(files, "x.time", Offset(8), 600));
}

TEST(TimeIndex, EntriesThatDoNotRiseOrLieOutsideAreRefused) {
  const auto body_with = [](std::vector<storage::TimeIndex::Entry> entries) {
    storage::FieldWriter out;
    out.put(std::int64_t{7});
    out.put(std::uint64_t{600});
    out.put(static_cast<std::uint32_t>(entries.size()));
    for (const auto& entry : entries) {
      out.put(entry.append_time_ms);
      out.put(entry.relative_offset);
      out.put(entry.position);
    }
    return std::vector<std::byte>(out.bytes().begin(), out.bytes().end());
  };
  EXPECT_TRUE(storage::decode_time_index(body_with({{5, 0, 0}, {6, 1, 599}})));
  EXPECT_FALSE(storage::decode_time_index(body_with({{5, 0, 0}, {5, 1, 599}})));
  EXPECT_FALSE(storage::decode_time_index(body_with({{5, 1, 0}, {6, 1, 599}})));
  EXPECT_FALSE(storage::decode_time_index(body_with({{5, 0, 9}, {6, 1, 9}})));
  EXPECT_FALSE(storage::decode_time_index(body_with({{5, 0, 600}})));
  auto negative = body_with({});
  negative[7] = std::byte{0x80};
  EXPECT_FALSE(storage::decode_time_index(negative));
  auto long_count = body_with({});
  long_count[16] = std::byte{1};
  EXPECT_FALSE(storage::decode_time_index(long_count));
}

}  // namespace
}  // namespace mq::testing
