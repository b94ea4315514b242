#include "model/record_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "batch_samples.h"

namespace mq::model {
namespace {

using testing::OwnedRecord;
using testing::read;
using testing::wrap;
using namespace std::string_literals;

bool readable(const std::string& batch) { return read(base::as_bytes(batch)).has_value(); }

// Length, attributes, timestamp delta, offset delta, null key, null value, null tag, no headers.
const std::string kPlain = "\x07\x00\x00\x00\x00\x00\x00\x00"s;

std::string plain_with(std::size_t at, char value) {
  std::string record = kPlain;
  record[at] = value;
  return record;
}

TEST(RecordReader, NullAndEmptyAreFourDifferentThings) {
  // LOG-7
  std::vector<OwnedRecord> records;
  for (const auto& key : {std::optional<std::string>(), std::optional<std::string>("")})
    for (const auto& value : {std::optional<std::string>(), std::optional<std::string>("")})
      for (const auto& tag : {std::optional<std::string>(), std::optional<std::string>("")})
        records.push_back({key, value, 5, tag, {}});
  for (const Codec codec : {Codec::none, Codec::lz4, Codec::zstd})
    EXPECT_EQ(read(testing::build(records, codec).bytes), records);
}

TEST(RecordReader, RandomRecordsComeBackBitByBit) {
  std::mt19937_64 random(7);
  const auto bytes = [&random](std::size_t max) -> std::optional<std::string> {
    if (random() % 4 == 0) return std::nullopt;
    std::string text(random() % (max + 1), '\0');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() : 'x');
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<OwnedRecord> records(1 + random() % 20);
    for (auto& record : records) {
      record = {bytes(200),
                bytes(random() % 50 == 0 ? 70'000 : 300),
                static_cast<std::int64_t>(random()),
                bytes(5),
                {}};
      for (auto n = random() % 4; n > 0; --n)
        record.headers.emplace_back(bytes(200).value_or("h"), bytes(300));
    }
    const auto codec = static_cast<Codec>(random() % kCodecCount);
    ASSERT_EQ(read(testing::build(records, codec).bytes), records) << round;
  }
}

TEST(RecordReader, OffsetsCountFromTheBase) {
  std::string batch = testing::copy(testing::build(testing::sample_records()));
  stamp({reinterpret_cast<std::byte*>(batch.data()), batch.size()}, Offset(500), LeaderEpoch(1), 9);
  const auto view = RecordBatchView::parse(base::as_bytes(batch));
  ASSERT_TRUE(view);
  RecordReader reader(*view, view->records());
  RecordView record;
  for (std::int64_t i = 500; i < 504; ++i) {
    ASSERT_EQ(reader.next(record), RecordStep::record);
    EXPECT_EQ(record.offset, Offset(i));
  }
  EXPECT_EQ(reader.next(record), RecordStep::end);
  EXPECT_EQ(reader.next(record), RecordStep::end);
}

TEST(RecordReader, HolesOfCompactionAreNoDamage) {
  const std::string batch = wrap(kPlain + plain_with(3, 4), 2, 9);
  const auto view = RecordBatchView::parse(base::as_bytes(batch));
  ASSERT_TRUE(view);
  RecordReader reader(*view, view->records());
  RecordView record;
  ASSERT_EQ(reader.next(record), RecordStep::record);
  ASSERT_EQ(reader.next(record), RecordStep::record);
  EXPECT_EQ(record.offset, Offset(-1 + 4));
  EXPECT_EQ(reader.next(record), RecordStep::end);
}

TEST(RecordReader, EmptiedBatchHasNoRecords) {
  EXPECT_EQ(read(base::as_bytes(wrap("", 0, 9))), std::vector<OwnedRecord>{});
}

TEST(RecordReader, WrongCountsAndOffsetsAreCorrupt) {
  EXPECT_TRUE(readable(wrap(kPlain, 1, 0)));
  EXPECT_FALSE(readable(wrap(kPlain + kPlain, 1, 0)));   // bytes left over
  EXPECT_FALSE(readable(wrap(kPlain + kPlain, 2, 1)));   // offset does not rise
  EXPECT_FALSE(readable(wrap(plain_with(3, 1), 1, 0)));  // offset behind the last
  EXPECT_FALSE(readable(wrap(plain_with(3, 1) + plain_with(3, 0), 2, 1)));  // offset falls
  EXPECT_FALSE(readable(wrap(kPlain + kPlain.substr(0, 7) + "x", 2, 1)));
}

TEST(RecordReader, LengthsOutsideTheRecordAreCorrupt) {
  EXPECT_FALSE(readable(wrap(plain_with(0, 8), 1, 0)));  // longer than what is left
  EXPECT_FALSE(readable(wrap(plain_with(0, 6), 1, 0)));  // cuts its own fields
  EXPECT_FALSE(readable(wrap(plain_with(0, 0), 1, 0)));
  EXPECT_FALSE(readable(wrap(plain_with(4, 5), 1, 0)));  // key
  EXPECT_FALSE(readable(wrap(plain_with(5, 5), 1, 0)));  // value
  EXPECT_FALSE(readable(wrap(plain_with(6, 5), 1, 0)));  // tag
  EXPECT_FALSE(readable(wrap(plain_with(7, 1), 1, 0)));  // header count
  const std::string huge =
      "\x11\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x00"s;
  EXPECT_FALSE(readable(wrap(huge, 1, 0)));
}

TEST(RecordReader, HeaderCountBeyondTheBytesIsCorrupt) {
  const std::string record = "\x0b\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x0f"s;
  EXPECT_FALSE(readable(wrap(record, 1, 0)));
}

TEST(RecordReader, LongFormVarintIsCorrupt) {
  const std::string record = "\x08\x00\x80\x00\x00\x00\x00\x00\x00"s;
  EXPECT_FALSE(readable(wrap(record, 1, 0)));
}

TEST(RecordReader, ExtensionsOfANewerWriterAreSkipped) {
  // Attribute bit 3 announces bytes behind the headers; the length says where they end.
  const std::string extended = "\x0a\x08\x00\x00\x00\x00\x00\x00\x01\x02\x03"s;
  EXPECT_TRUE(readable(wrap(extended + plain_with(3, 1), 2, 1)));
  std::string unannounced = extended;
  unannounced[1] = '\0';
  EXPECT_FALSE(readable(wrap(unannounced + plain_with(3, 1), 2, 1)));
}

TEST(RecordReader, CorruptStaysCorrupt) {
  const std::string batch = wrap(plain_with(4, 5), 1, 0);
  const auto view = RecordBatchView::parse(base::as_bytes(batch));
  ASSERT_TRUE(view);
  RecordReader reader(*view, view->records());
  RecordView record;
  EXPECT_EQ(reader.next(record), RecordStep::corrupt);
  EXPECT_EQ(reader.next(record), RecordStep::corrupt);
  EXPECT_TRUE(reader.corrupt());
}

}  // namespace
}  // namespace mq::model
