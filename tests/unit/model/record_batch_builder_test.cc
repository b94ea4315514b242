#include "model/record_batch_builder.h"

#include <gtest/gtest.h>

#include "batch_samples.h"

namespace mq::model {
namespace {

using testing::OwnedRecord;

constexpr std::uint32_t kLimit = 64 << 10;

RecordInput value_of(std::string_view value) {
  return {.value = base::as_bytes(value), .timestamp_ms = 1};
}

TEST(RecordBatchBuilder, RefusesWhatWouldPassTheLimitAndKeepsTheRest) {
  base::BufferPool pool;
  RecordBatchBuilder builder(pool, kLimit);
  const std::string value(1000, 'v');
  std::uint32_t appended = 0;
  while (builder.append(value_of(value))) ++appended;
  EXPECT_EQ(builder.record_count(), appended);
  EXPECT_GT(builder.batch_bytes() + 1020, kLimit);
  EXPECT_FALSE(builder.would_fit(RecordBatchBuilder::record_bytes_max(value_of(value))));
  const auto batch = builder.finish();
  EXPECT_LE(batch.bytes.size(), kLimit);
  EXPECT_EQ(testing::read(batch.bytes)->size(), appended);
}

TEST(RecordBatchBuilder, TakesARecordThatFillsTheLimitExactly) {
  base::BufferPool pool;
  RecordBatchBuilder builder(pool, kLimit);
  // Length (3 bytes), attributes, time, offset, key (1 each), value length (3), tag, headers.
  const std::size_t around = 96 + 3 + 1 + 1 + 1 + 1 + 3 + 1 + 1;
  EXPECT_FALSE(builder.append(value_of(std::string(kLimit - around + 1, 'v'))));
  EXPECT_TRUE(builder.append(value_of(std::string(kLimit - around, 'v'))));
  EXPECT_EQ(builder.finish().bytes.size(), kLimit);
}

TEST(RecordBatchBuilder, GrowsFromASmallBuffer) {
  base::BufferPool pool;
  RecordBatchBuilder builder(pool, 1 << 20, 0);
  std::vector<OwnedRecord> records;
  for (int i = 0; i < 2000; ++i) {
    records.push_back({std::to_string(i),
                       std::string(static_cast<std::size_t>(i % 300), 'v'),
                       i,
                       std::nullopt,
                       {}});
    ASSERT_TRUE(testing::append(builder, records.back()));
  }
  EXPECT_EQ(testing::read(builder.finish().bytes), records);
}

TEST(RecordBatchBuilder, StartsAnewAfterFinish) {
  base::BufferPool pool;
  RecordBatchBuilder builder(pool, kLimit);
  OwnedRecord tagged{"k", "v", 77, "tag", {}};
  ASSERT_TRUE(testing::append(builder, tagged));
  const auto first = builder.finish(Codec::zstd);
  EXPECT_TRUE(builder.empty());
  EXPECT_EQ(builder.batch_bytes(), 96u);
  OwnedRecord plain{std::nullopt, "second", 5, std::nullopt, {}};
  ASSERT_TRUE(testing::append(builder, plain));
  const auto second = builder.finish();
  EXPECT_EQ(testing::read(first.bytes), std::vector{tagged});
  EXPECT_EQ(testing::read(second.bytes), std::vector{plain});
  EXPECT_EQ(RecordBatchView::parse(second.bytes)->tag_set(), batch_format::kTagSetNone);
}

TEST(RecordBatchBuilder, ClearForgetsWhatWasAppended) {
  base::BufferPool pool;
  RecordBatchBuilder builder(pool, kLimit);
  ASSERT_TRUE(builder.append(value_of("x")));
  builder.clear();
  EXPECT_TRUE(builder.empty());
  ASSERT_TRUE(builder.append(value_of("y")));
  EXPECT_EQ(testing::read(builder.finish().bytes)->front().value, "y");
}

TEST(RecordBatchBuilder, NamesTheProducerOfOneBatch) {
  RecordBatchBuilder builder(base::BufferPool::shared(), 4096);
  ASSERT_TRUE(builder.append({.value = base::as_bytes("a")}));
  builder.set_producer({9, 1}, 5);
  const auto named = builder.finish();
  const auto view = parse_produced(named.bytes, 4096);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->producer(), (ProducerIdentity{9, 1}));
  EXPECT_EQ(view->base_sequence(), 5);
  ASSERT_TRUE(builder.append({.value = base::as_bytes("a")}));
  const auto plain = builder.finish();
  EXPECT_FALSE(parse_produced(plain.bytes, 4096)->producer().known());
  // Named later it is the same batch.
  std::string bytes = std::string(base::as_text(plain.bytes));
  set_producer({reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}, {9, 1}, 5);
  EXPECT_EQ(bytes, base::as_text(named.bytes));
}

TEST(RecordBatchBuilder, SizeEstimateIsNeverTooSmall) {
  base::BufferPool pool;
  for (const auto& record : testing::sample_records()) {
    RecordBatchBuilder builder(pool, kLimit);
    std::vector<RecordHeader> headers;
    for (const auto& [name, value] : record.headers)
      headers.push_back({name, testing::borrow(value)});
    const RecordInput input{.key = testing::borrow(record.key),
                            .value = testing::borrow(record.value),
                            .timestamp_ms = record.timestamp_ms,
                            .tag = testing::borrow(record.tag),
                            .headers = headers};
    ASSERT_TRUE(builder.append(input));
    const std::size_t taken = builder.batch_bytes() - 96;
    EXPECT_GE(RecordBatchBuilder::record_bytes_max(input), taken);
    EXPECT_LE(RecordBatchBuilder::record_bytes_max(input), taken + 40);
  }
}

TEST(RecordBatchBuilder, AnyTwoTimestampsHaveADifference) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<OwnedRecord> records{{std::nullopt, "a", kMin, std::nullopt, {}},
                                         {std::nullopt, "b", kMax, std::nullopt, {}},
                                         {std::nullopt, "c", 0, std::nullopt, {}}};
  EXPECT_EQ(testing::read(testing::build(records).bytes), records);
}

}  // namespace
}  // namespace mq::model
