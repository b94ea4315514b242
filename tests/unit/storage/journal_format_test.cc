#include "storage/journal_format.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"

namespace mq::testing {
namespace {

using base::Bytes;
using model::LeaderEpoch;
using model::Offset;
using namespace storage;

base::Uuid uuid(std::uint8_t first) {
  std::array<std::byte, 16> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(first + i);
  return *base::Uuid::from_bytes(bytes);
}

std::string hex(Bytes bytes) {
  std::string text;
  for (const auto b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

JournalFileHeader sample_header() {
  return {uuid(0x00), model::BrokerId(7), uuid(0x10), uuid(0x20), 3, 0x0807060504030201};
}

model::PartitionId sample_id() { return {uuid(0x30), 2}; }

/// One entry of every kind.
std::vector<JournalContent> sample_contents(Bytes batch) {
  const SyncPoint point{Offset(100), Offset(64), 4'321, LeaderEpoch(5), 1'700, 1'600};
  JournalLogState state;
  state.durability = model::Durability::memory;
  state.disk_from = Offset(12);
  state.log_start = Offset(3);
  state.recovery_point = point;
  state.end = Offset(120);
  state.durable = Offset(110);
  state.epoch_start = {LeaderEpoch(6), Offset(119)};
  JournalLogState cut = state;
  cut.cut = point;
  cut.intact_since = 21;
  const JournalDiskState disk{{4, -1}, 2};
  return {JournalAppend{Offset(90), Offset(64), 4'000, batch},
          JournalImage{Offset(64), 4'096, batch.first(3)},
          JournalCut{point, LeaderEpoch(9)},
          JournalLogStart{Offset(55)},
          JournalEpochStart{{LeaderEpoch(9), Offset(100)}},
          JournalRecoveryPoint{point},
          JournalCreate{model::Durability::memory, 17},
          JournalDurability{model::Durability::disk, Offset(77)},
          JournalDelete{},
          JournalSnapshot{2, 1, disk},
          JournalSnapshotLog{state},
          JournalSnapshotLog{cut},
          JournalDiskChange{disk},
          JournalRestart{point, LeaderEpoch(9), 18}};
}

std::vector<std::byte> sample_group(std::size_t* entries = nullptr) {
  std::vector<std::byte> batch(100);
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = static_cast<std::byte>(i);
  JournalGroupBuilder builder;
  const auto contents = sample_contents(batch);
  for (const auto& content : contents) builder.add(sample_id(), content);
  JournalGroupHeader header;
  header.generation = 3;
  header.nonce = 11;
  header.number = 42;
  header.previous_crc = 0x55667788;
  const auto group = builder.finish(header);
  if (entries) *entries = contents.size();
  return {group.begin(), group.end()};
}

TEST(JournalFormat, FileHeaderAsDescribed) {
  const auto block = encode_journal_header(sample_header());
  ASSERT_EQ(block.size(), 4'096u);
  EXPECT_EQ(hex(Bytes(block).first(104)),
            "4d514a4f55524e0a01000000"
            "" + hex(Bytes(block).subspan(12, 4)) +
                "000102030405060708090a0b0c0d0e0f"
                "07000000"
                "101112131415161718191a1b1c1d1e1f"
                "202122232425262728292a2b2c2d2e2f"
                "0300000000000000"
                "0102030405060708"
                "0000000000000000000000000000000000000000");
}

TEST(JournalFormat, FileHeaderComesBackAndEveryFlipIsNoticed) {
  const auto block = encode_journal_header(sample_header());
  ASSERT_EQ(*decode_journal_header(block), sample_header());
  for (std::size_t at = 0; at < kJournalHeaderBytes; ++at) {
    for (const auto mask : {std::byte{1}, std::byte{0x80}}) {
      auto damaged = block;
      damaged[at] ^= mask;
      EXPECT_FALSE(decode_journal_header(damaged)) << at;
    }
  }
  EXPECT_FALSE(decode_journal_header(Bytes(block).first(kJournalHeaderBytes - 1)));
}

TEST(JournalFormat, NewerVersionIsNamed) {
  auto block = encode_journal_header(sample_header());
  block[8] = std::byte{2};
  const auto crc = base::crc32c(Bytes(block).subspan(16, kJournalHeaderBytes - 16),
                                base::crc32c(Bytes(block).first(12)));
  base::store_le(block.data() + 12, crc);
  EXPECT_EQ(decode_journal_header(block).error(),
            make_error_code(StorageErrc::unknown_format_version));
}

TEST(JournalFormat, GroupAsDescribed) {
  JournalGroupBuilder builder;
  builder.add(sample_id(), JournalEpochStart{{LeaderEpoch(9), Offset(258)}});
  JournalGroupHeader header;
  header.generation = 3;
  header.nonce = 0x0807060504030201;
  header.number = 42;
  header.previous_crc = 0x04030201;
  const auto group = builder.finish(header);
  ASSERT_EQ(group.size(), 4'096u);
  const std::string body =
      "05"
      "303132333435363738393a3b3c3d3e3f"
      "02000000"
      "0c000000"
      "09000000"
      "0201000000000000";
  EXPECT_EQ(hex(group.subspan(52, 37)), body);
  const auto body_crc = base::crc32c(group.subspan(52, 37));
  std::string crc_text = hex(Bytes(reinterpret_cast<const std::byte*>(&body_crc), 4));
  const auto header_crc = base::crc32c(group.first(48));
  crc_text += hex(Bytes(reinterpret_cast<const std::byte*>(&header_crc), 4));
  EXPECT_EQ(hex(group.first(52)),
            "4d5147524f55500a"
            "0300000000000000"
            "0102030405060708"
            "2a00000000000000"
            "25000000"
            "01000000"
            "01020304" +
                crc_text);
  // The worked example of FORMAT.md.
  EXPECT_EQ(hex(group.subspan(44, 8)), "22688679143c1ce2") << "update FORMAT.md";
  EXPECT_EQ(header.header_crc, header_crc);
  for (const auto b : group.subspan(89)) ASSERT_EQ(b, std::byte{0});
}

TEST(JournalFormat, EveryKindComesBack) {
  std::size_t count = 0;
  const auto group = sample_group(&count);
  const auto header = decode_journal_group_header(group);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->generation, 3u);
  EXPECT_EQ(header->nonce, 11u);
  EXPECT_EQ(header->number, 42u);
  EXPECT_EQ(header->entries, count);
  const auto body = Bytes(group).subspan(kJournalGroupHeaderBytes, header->body_bytes);
  ASSERT_TRUE(journal_body_holds(*header, body));
  JournalGroupBuilder again;
  JournalEntryReader reader(body, header->entries);
  for (std::size_t i = 0; i < count; ++i) {
    const auto entry = reader.next();
    ASSERT_TRUE(entry) << i;
    ASSERT_TRUE(*entry) << i;
    EXPECT_EQ((*entry)->id, sample_id());
    again.add((*entry)->id, (*entry)->content);
  }
  EXPECT_FALSE(*reader.next());
  JournalGroupHeader second = *header;
  const auto bytes = again.finish(second);
  EXPECT_TRUE(std::ranges::equal(bytes, group));
}

TEST(JournalFormat, EveryFlipInAGroupIsNoticed) {  // LOG-3
  const auto group = sample_group();
  const auto header = *decode_journal_group_header(group);
  const std::size_t used = kJournalGroupHeaderBytes + header.body_bytes;
  for (std::size_t at = 0; at < used; ++at) {
    for (const auto mask : {std::byte{1}, std::byte{0x40}}) {
      auto damaged = group;
      damaged[at] ^= mask;
      const auto found = decode_journal_group_header(damaged);
      const bool good = found && found->body_bytes == header.body_bytes &&
                        journal_body_holds(*found, Bytes(damaged).subspan(kJournalGroupHeaderBytes,
                                                                          found->body_bytes));
      EXPECT_FALSE(good) << at;
    }
  }
}

TEST(JournalFormat, ForgedSizesAreRefusedBeforeMemoryIsTaken) {
  auto group = sample_group();
  const auto forge = [&](std::size_t at, std::uint32_t value) {
    auto forged = group;
    base::store_le(forged.data() + at, value);
    base::store_le(forged.data() + 48, base::crc32c(Bytes(forged).first(48)));
    return decode_journal_group_header(forged);
  };
  EXPECT_FALSE(forge(32, 0xffffffff));
  EXPECT_FALSE(forge(32, kJournalGroupBytesMax + 1));
  EXPECT_FALSE(forge(36, 0xffffffff));
  EXPECT_TRUE(forge(32, 1'000));
}

TEST(JournalFormat, EntriesThatDoNotFitAreMalformed) {
  const auto group = sample_group();
  const auto header = *decode_journal_group_header(group);
  const auto body = Bytes(group).subspan(kJournalGroupHeaderBytes, header.body_bytes);
  for (std::size_t bytes = 0; bytes < body.size(); ++bytes) {
    JournalEntryReader reader(body.first(bytes), header.entries);
    bool malformed = false;
    for (std::uint32_t i = 0; i <= header.entries && !malformed; ++i) malformed = !reader.next();
    ASSERT_TRUE(malformed) << bytes;
  }
  JournalEntryReader fewer(body, 1);
  ASSERT_TRUE(fewer.next());
  EXPECT_FALSE(fewer.next());
}

}  // namespace
}  // namespace mq::testing
