#include "storage/producer_snapshot.h"

#include "producer_world.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::testing {
namespace {

using model::Offset;
using storage::ProducerState;
using storage::ProducerTable;

/// Appends until then, in three stretches of which the last batches are known.
storage::SettledTime sample_times() {
  storage::SettledTime times;
  EXPECT_TRUE(times.set_ends({1'700'000'000'005, 1'699'999'000'000, 1'600'000'000'000, -1}));
  return times;
}

ProducerTable sample_table() {
  ProducerTable table;
  table.set_times(sample_times());
  ProducerState newer({1001, 0});
  newer.add(0, {10, 1, Offset(40), 1'700'000'000'003, 0x11223344});
  newer.add(0, {12, 0, Offset(44), 1'700'000'000'005, 0x55667788});
  EXPECT_TRUE(table.restore(newer));
  ProducerState older({7, 2});
  older.add(2, {0, 1, Offset(42), 1'700'000'000'004, 0x99aabbcc});
  EXPECT_TRUE(table.restore(older));
  return table;
}

model::PartitionId sample_partition() { return {base::Uuid::from_random(1, 2), 3}; }

std::vector<std::byte> sample_body() {
  return encode_producer_snapshot(sample_partition(), Offset(45), Offset(40), 400,
                                  {Offset(40), 280, 0xcafebabe}, sample_table());
}

TEST(ProducerSnapshotTest, ComesBackAsItWas) {
  auto snapshot = storage::decode_producer_snapshot(sample_body());
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->partition, sample_partition());
  EXPECT_EQ(snapshot->end_offset, Offset(45));
  EXPECT_EQ(snapshot->segment_base, Offset(40));
  EXPECT_EQ(snapshot->position, 400u);
  EXPECT_EQ(snapshot->last_batch, (storage::BatchPlace{Offset(40), 280, 0xcafebabe}));
  EXPECT_EQ(snapshot->producers.size(), 2u);
  EXPECT_EQ(snapshot->producers.times().ends(), sample_times().ends());
  auto expected = sample_table();
  for (const std::int64_t id : {1001, 7})
    EXPECT_EQ(remembered(snapshot->producers.find(id)), remembered(expected.find(id))) << id;
}

/// The worked example of FORMAT.md.
TEST(ProducerSnapshotTest, TheBytesAreThoseOfTheDescription) {
  const std::string expected =
      "4d5150524f44530a01000000900000000f0627713031323334354637b8393a3b3c3d3e3f03000000"
      "2c000000000000002800000000000000900100000000000028000000000000001801000000000000"
      "bebafeca0568e5cf8b010000c025d6cf8b01000000806e8774010000ffffffffffffffff01000000"
      "e90300000000000000000000010000000a000000010000002a000000000000000568e5cf8b010000"
      "44332211";
  const auto topic = base::Uuid::from_hex("3031323334354637b8393a3b3c3d3e3f");
  ASSERT_TRUE(topic);
  ProducerTable table;
  table.set_times(sample_times());
  ProducerState state({1001, 0});
  state.add(0, {10, 1, Offset(42), 1'700'000'000'005, 0x11223344});
  ASSERT_TRUE(table.restore(state));
  const auto body = encode_producer_snapshot({*topic, 3}, Offset(44), Offset(40), 400,
                                             {Offset(40), 280, 0xcafebabe}, table);
  std::string hex;
  for (const std::byte b : storage::seal(storage::kProducersMagic, body))
    hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  EXPECT_EQ(hex, expected) << "update FORMAT.md";
}

TEST(ProducerSnapshotTest, EveryFlippedBitOfTheFileIsNoticed) {
  const auto file = storage::seal(storage::kProducersMagic, sample_body());
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = file;
      damaged[at] ^= static_cast<std::byte>(1 << bit);
      ASSERT_FALSE(storage::unseal(storage::kProducersMagic, damaged)) << at << "." << bit;
    }
  }
}

/// What a checksum does not catch: a body that nobody wrote. Nothing of it may overflow or be
/// believed beyond its bounds.
TEST(ProducerSnapshotTest, NumbersOutOfBoundsAreRefused) {
  const auto body = sample_body();
  const auto with = [&](std::size_t at, auto value) {
    auto changed = body;
    base::store_le(changed.data() + at, value);
    return static_cast<bool>(storage::decode_producer_snapshot(changed));
  };
  const std::size_t times = 16 + 4 + 8 + 8 + 8 + 8 + 8 + 4;
  const std::size_t producers = times + 4 * 8;
  const std::size_t first = producers + 4;
  EXPECT_FALSE(with(times + 8, std::int64_t{1'700'000'000'006}));  // the stretch before is newer
  EXPECT_FALSE(with(times, std::int64_t{-2}));
  EXPECT_TRUE(with(producers, std::uint32_t{2}));
  EXPECT_FALSE(with(producers, std::uint32_t{1}));
  EXPECT_FALSE(with(producers, std::uint32_t{0xffffffff}));
  EXPECT_FALSE(with(first, std::int64_t{-1}));                      // producer id
  EXPECT_FALSE(with(first, std::int64_t{7}));                       // the other one's
  EXPECT_FALSE(with(first + 8, std::int32_t{-1}));                  // epoch
  EXPECT_FALSE(with(first + 12, std::uint32_t{0}));                 // batches
  EXPECT_FALSE(with(first + 12, std::uint32_t{6}));                 // more than a window
  EXPECT_FALSE(with(first + 16, std::int32_t{-1}));                 // base sequence
  EXPECT_FALSE(with(first + 16, std::int32_t{9}));                  // the next does not follow
  EXPECT_FALSE(with(first + 20, std::uint32_t{0x80000000}));        // last offset delta
  EXPECT_FALSE(with(first + 24, std::int64_t{45}));                 // base offset at the end
  EXPECT_FALSE(with(first + 24, std::int64_t{-1}));                 // and below zero
  EXPECT_FALSE(with(first + 24, std::int64_t{43}));                 // reaches into the next one
  EXPECT_FALSE(with(first + 32, std::int64_t{1'800'000'000'000}));  // later than the newest
  EXPECT_FALSE(with(20, std::int64_t{44}));                         // log end below a batch's
  EXPECT_FALSE(with(20, std::int64_t{-1}));
  for (std::size_t size = 0; size < body.size(); ++size)
    EXPECT_FALSE(storage::decode_producer_snapshot(base::Bytes(body).first(size))) << size;
}

TEST(ProducerSnapshotTest, TheFileOfAnotherPartitionOrOffsetIsRefused) {
  SimFileSystem files;
  ASSERT_TRUE(storage::write_producer_snapshot(files, "a", sample_body()));
  EXPECT_TRUE(storage::load_producer_snapshot(files, "a", sample_partition(), Offset(45)));
  EXPECT_FALSE(storage::load_producer_snapshot(files, "a", sample_partition(), Offset(46)));
  auto other = sample_partition();
  other.partition = 4;
  EXPECT_FALSE(storage::load_producer_snapshot(files, "a", other, Offset(45)));
}

}  // namespace
}  // namespace mq::testing
