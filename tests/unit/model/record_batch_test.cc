#include "model/record_batch.h"

#include <gtest/gtest.h>

#include <limits>

#include "batch_samples.h"

namespace mq::model {
namespace {

using testing::build;
using testing::copy;
using testing::sample_records;
using testing::seal;

constexpr std::uint32_t kLimit = 1 << 20;

MutableBytes writable(std::string& batch) {
  return {reinterpret_cast<std::byte*>(batch.data()), batch.size()};
}

template <class T>
std::string with(std::size_t at, T value) {
  std::string batch = copy(build(sample_records()));
  base::store_le(writable(batch).data() + at, value);
  seal(batch);
  return batch;
}

Error produced_error(const std::string& batch) {
  const auto parsed = parse_produced(base::as_bytes(batch), kLimit);
  return parsed ? Error() : parsed.error();
}
Error parse_error(const std::string& batch) {
  const auto parsed = RecordBatchView::parse(base::as_bytes(batch));
  return parsed ? Error() : parsed.error();
}

TEST(RecordBatch, ProducedBatchSaysWhatWasBuilt) {
  const auto batch = build(sample_records());
  const auto view = parse_produced(batch.bytes, kLimit);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->base_offset(), Offset());
  EXPECT_EQ(view->leader_epoch(), LeaderEpoch());
  EXPECT_EQ(view->append_time_ms(), -1);
  EXPECT_EQ(view->batch_bytes(), batch.bytes.size());
  EXPECT_EQ(view->record_count(), 4u);
  EXPECT_EQ(view->last_offset_delta(), 3u);
  EXPECT_EQ(view->base_timestamp_ms(), 1'700'000'000'000);
  EXPECT_EQ(view->max_timestamp_ms(), 1'700'000'000'500);
  EXPECT_EQ(view->producer_id(), -1);
  EXPECT_EQ(view->codec(), Codec::none);
  EXPECT_EQ(view->raw_bytes(), batch.bytes.size() - 96);
  EXPECT_EQ(view->tag_set(), tag_bits(base::as_bytes("red")) | tag_bits({}));
}

TEST(RecordBatch, StampChangesOnlyTheBrokersBytes) {
  const std::string before = copy(build(sample_records()));
  std::string after = before;
  stamp(writable(after), Offset(42), LeaderEpoch(7), 1'700'000'001'000);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool stamped = i < 8 || (i >= 12 && i < 24) || (i >= 28 && i < 32);
    if (!stamped) {
      EXPECT_EQ(before[i], after[i]) << i;
    }
  }
  const auto view = RecordBatchView::parse(base::as_bytes(after));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->base_offset(), Offset(42));
  EXPECT_EQ(view->last_offset(), Offset(45));
  EXPECT_EQ(view->end_offset(), Offset(46));
  EXPECT_EQ(view->leader_epoch(), LeaderEpoch(7));
  EXPECT_EQ(view->append_time_ms(), 1'700'000'001'000);
}

TEST(RecordBatch, StampedBatchIsNotTakenFromAClient) {
  std::string batch = copy(build(sample_records()));
  stamp(writable(batch), Offset(0), LeaderEpoch(0), 0);
  EXPECT_EQ(produced_error(batch), ModelErrc::invalid_batch);
}

TEST(RecordBatch, BodyOfAnotherBatchDoesNotFitAStamp) {
  // LOG-3: the stamp's checksum covers the body's, so halves of two batches do not make a third.
  std::string first = copy(build(sample_records()));
  auto records = sample_records();
  records[0].value->front() = 'b';
  const std::string second = copy(build(records));
  ASSERT_EQ(first.size(), second.size());
  first.replace(32, std::string::npos, second, 32, std::string::npos);
  EXPECT_EQ(parse_error(first), ModelErrc::corrupt_batch);
  first.replace(24, 4, second, 24, 4);
  EXPECT_EQ(parse_error(first), ModelErrc::corrupt_batch);
}

TEST(RecordBatch, TooLargeIsSaidBeforeTheBodyIsThere) {
  const std::string batch = copy(build(sample_records()));
  const auto parsed = parse_produced(base::as_bytes(batch).first(12), 100);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error(), ModelErrc::too_large);
}

TEST(RecordBatch, EveryCutIsIncompleteNeverDamage) {
  const std::string batch = copy(build(sample_records()));
  for (std::size_t bytes = 0; bytes < batch.size(); ++bytes) {
    const auto parsed = RecordBatchView::parse_first(base::as_bytes(batch).first(bytes));
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error(), ModelErrc::incomplete_batch) << bytes;
  }
}

TEST(RecordBatch, FirstOfSeveralIsFound) {
  const std::string one = copy(build(sample_records()));
  const auto view = RecordBatchView::parse_first(base::as_bytes(one + one));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->bytes().size(), one.size());
  EXPECT_EQ(parse_error(one + one), ModelErrc::invalid_batch);
}

TEST(RecordBatch, HeaderAloneNeedsNoBody) {
  const std::string batch = copy(build(sample_records()));
  const auto view = RecordBatchView::parse_header(base::as_bytes(batch).first(96));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->batch_bytes(), batch.size());
  EXPECT_EQ(view->record_count(), 4u);
}

TEST(RecordBatch, ZerosAreNoBatch) {
  EXPECT_EQ(parse_error(std::string(4096, '\0')), ModelErrc::corrupt_batch);
}

TEST(RecordBatch, PeekRefusesLengthsThatNoBatchHas) {
  for (const std::uint32_t bytes : {0u, 35u, batch_format::kBatchBytesMax + 1, ~0u}) {
    std::string head(12, '\0');
    base::store_le(writable(head).data() + 8, bytes);
    EXPECT_EQ(peek_batch_bytes(base::as_bytes(head)).error(), ModelErrc::corrupt_batch) << bytes;
  }
}

TEST(RecordBatch, UnknownFormatIsNotDamage) {
  // LOG-9
  EXPECT_EQ(parse_error(with(batch_format::kVersion, std::uint8_t{2})),
            ModelErrc::unsupported_format);
  EXPECT_EQ(parse_error(with(batch_format::kVersion, std::uint8_t{0})),
            ModelErrc::unsupported_format);
  EXPECT_EQ(parse_error(with(batch_format::kCodec, std::uint8_t{3})),
            ModelErrc::unsupported_format);
  EXPECT_EQ(parse_error(with(batch_format::kReservedByte, std::uint8_t{1})),
            ModelErrc::unsupported_format);
  EXPECT_EQ(parse_error(with(batch_format::kReservedWord, std::uint32_t{1})),
            ModelErrc::unsupported_format);
  for (unsigned bit = 0; bit < 16; ++bit)
    EXPECT_EQ(parse_error(with(batch_format::kFlagsRequired, static_cast<std::uint16_t>(1 << bit))),
              ModelErrc::unsupported_format);
}

TEST(RecordBatch, ShortBatchOfAnotherVersionIsNotDamage) {
  std::string batch(batch_format::kStableBytes, '\0');
  base::store_le(writable(batch).data() + batch_format::kBatchBytes,
                 static_cast<std::uint32_t>(batch.size()));
  base::store_le(writable(batch).data() + batch_format::kVersion, std::uint8_t{9});
  seal(batch);
  EXPECT_EQ(parse_error(batch), ModelErrc::unsupported_format);
}

TEST(RecordBatch, UnknownOptionalFlagIsIgnored) {
  EXPECT_FALSE(parse_error(with(batch_format::kFlagsOptional, std::uint16_t{0x8001})));
}

TEST(RecordBatch, ImpossibleHeaderIsInvalid) {
  using Limits32 = std::numeric_limits<std::uint32_t>;
  const auto expect_invalid = [](const std::string& batch) {
    EXPECT_EQ(parse_error(batch), ModelErrc::invalid_batch);
  };
  expect_invalid(with(batch_format::kHeaderWords, std::uint8_t{11}));
  expect_invalid(with(batch_format::kHeaderWords, std::uint8_t{255}));
  expect_invalid(with(batch_format::kRawBytes, std::uint32_t{0}));
  expect_invalid(with(batch_format::kRawBytes, Limits32::max()));
  expect_invalid(with(batch_format::kRecordCount, std::uint32_t{5}));
  expect_invalid(with(batch_format::kRecordCount, Limits32::max()));
  expect_invalid(with(batch_format::kLastOffsetDelta, Limits32::max()));
  expect_invalid(with(batch_format::kBaseOffset, std::int64_t{-2}));
  expect_invalid(with(batch_format::kBaseOffset, std::numeric_limits<std::int64_t>::max()));
  expect_invalid(with(batch_format::kLeaderEpoch, std::int32_t{-2}));
  expect_invalid(with(batch_format::kAppendTimeMs, std::int64_t{-2}));
  expect_invalid(with(batch_format::kMaxTimestampMs, std::int64_t{0}));
  expect_invalid(with(batch_format::kProducerId, std::int64_t{-2}));
  expect_invalid(with(batch_format::kProducerEpoch, std::int32_t{-2}));
  expect_invalid(with(batch_format::kBaseSequence, std::int32_t{-2}));
}

TEST(RecordBatch, ProducedBatchHasNoHoles) {
  EXPECT_EQ(produced_error(with(batch_format::kRecordCount, std::uint32_t{3})),
            ModelErrc::invalid_batch);
  EXPECT_EQ(produced_error(with(batch_format::kRecordCount, std::uint32_t{0})),
            ModelErrc::invalid_batch);
  EXPECT_EQ(produced_error(with(batch_format::kLastOffsetDelta, std::uint32_t{4})),
            ModelErrc::invalid_batch);
  // Compaction leaves holes in the log, so a reader takes what a producer may not send.
  EXPECT_FALSE(parse_error(with(batch_format::kLastOffsetDelta, std::uint32_t{4})));
}

TEST(RecordBatch, AProducerIsNamedWhollyOrNotAtAll) {
  for (const auto& batch : {with(batch_format::kProducerId, std::int64_t{1}),
                            with(batch_format::kProducerEpoch, std::int32_t{0}),
                            with(batch_format::kBaseSequence, std::int32_t{0})})
    EXPECT_EQ(produced_error(batch), ModelErrc::invalid_batch);
  std::string batch = copy(build(sample_records()));
  set_producer(writable(batch), {7, 2}, 40);
  const auto view = parse_produced(base::as_bytes(batch), kLimit);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->producer(), (ProducerIdentity{7, 2}));
  EXPECT_EQ(view->base_sequence(), 40);
  EXPECT_EQ(view->last_sequence(), 43);
  set_producer(writable(batch), {7, 2}, 0x7fffffff);
  EXPECT_EQ(parse_produced(base::as_bytes(batch), kLimit)->last_sequence(), 2);
}

TEST(RecordBatch, LongerHeaderOfANewerWriterIsSkipped) {
  std::string batch = copy(build(sample_records()));
  batch.insert(96, 8, '\x5a');
  base::store_le(writable(batch).data() + batch_format::kBatchBytes,
                 static_cast<std::uint32_t>(batch.size()));
  base::store_le(writable(batch).data() + batch_format::kHeaderWords, std::uint8_t{13});
  seal(batch);
  EXPECT_EQ(testing::read(base::as_bytes(batch)), sample_records());
}

}  // namespace
}  // namespace mq::model
