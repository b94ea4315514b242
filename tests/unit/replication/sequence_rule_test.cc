#include "replication/sequence_rule.h"

#include <gtest/gtest.h>

#include "produced_batch.h"

namespace mq::replication {
namespace {

using storage::ProducerBatch;
using storage::ProducerState;
using testing::produced_batch;

constexpr std::int32_t kLast = 0x7fffffff;

/// What a log remembers after batches of `records` records each, from `sequence` on, at offset 100.
ProducerState remembered(std::int32_t epoch, std::int32_t sequence, int batches,
                         std::uint32_t records) {
  ProducerState state({7, epoch});
  std::int64_t offset = 100;
  for (int i = 0; i < batches; ++i) {
    auto bytes = produced_batch("value", records, {7, epoch}, sequence);
    const auto view = *model::RecordBatchView::parse(bytes);
    state.add(epoch, {sequence, records - 1, model::Offset(offset), 1000, view.body_crc()});
    sequence = model::advance_sequence(sequence, records);
    offset += records;
  }
  return state;
}

SequenceVerdict ask(const ProducerState* known, std::int32_t epoch, std::int32_t sequence,
                    std::uint32_t records, std::string_view value = "value") {
  const auto bytes = produced_batch(value, records, {7, epoch}, sequence);
  return check_sequence(known, *model::RecordBatchView::parse(bytes));
}

Error refusal(const SequenceVerdict& verdict) {
  EXPECT_FALSE(verdict.append());
  EXPECT_FALSE(verdict.repeat_of);
  return verdict.refusal;
}

// IDM-1
TEST(SequenceRule, AnUnknownProducerBeginsAtZeroAndNowhereElse) {
  EXPECT_TRUE(ask(nullptr, 0, 0, 3).append());
  EXPECT_TRUE(ask(nullptr, 4, 0, 3).append());
  EXPECT_EQ(refusal(ask(nullptr, 0, 3, 3)), ReplicationErrc::unknown_producer);
}

TEST(SequenceRule, TheNextSequenceIsAppended) {
  const auto known = remembered(0, 0, 2, 3);
  EXPECT_TRUE(ask(&known, 0, 6, 1).append());
  EXPECT_TRUE(ask(&known, 0, 6, 100).append());
}

// IDM-2
TEST(SequenceRule, EachOfTheFiveNewestBatchesIsKnownAgain) {
  const auto known = remembered(0, 0, 9, 2);  // five are left: sequences 8 to 17
  for (int i = 0; i < 5; ++i) {
    const auto verdict = ask(&known, 0, 8 + 2 * i, 2);
    EXPECT_FALSE(verdict.refusal);
    ASSERT_TRUE(verdict.repeat_of) << i;
    EXPECT_EQ(verdict.repeat_of->base_offset, model::Offset(108 + 2 * i));
  }
  EXPECT_EQ(refusal(ask(&known, 0, 6, 2)), ReplicationErrc::duplicate_sequence);
  EXPECT_EQ(refusal(ask(&known, 0, 0, 2)), ReplicationErrc::duplicate_sequence);
}

TEST(SequenceRule, AGapIsRefused) {
  const auto known = remembered(0, 0, 1, 3);
  EXPECT_EQ(refusal(ask(&known, 0, 4, 1)), ReplicationErrc::out_of_order_sequence);
  EXPECT_EQ(refusal(ask(&known, 0, 1'000'000, 1)), ReplicationErrc::out_of_order_sequence);
}

TEST(SequenceRule, WhatOverlapsTheNewestBatchIsNoRepeat) {
  const auto known = remembered(0, 10, 1, 4);  // 10 to 13
  EXPECT_EQ(refusal(ask(&known, 0, 12, 4)), ReplicationErrc::out_of_order_sequence);
  EXPECT_EQ(refusal(ask(&known, 0, 8, 10)), ReplicationErrc::out_of_order_sequence);
  EXPECT_EQ(refusal(ask(&known, 0, 12, 2)), ReplicationErrc::duplicate_sequence);
}

TEST(SequenceRule, OtherRecordsUnderAUsedSequenceAreNotTakenForARepeat) {
  const auto known = remembered(0, 0, 2, 2);
  EXPECT_EQ(refusal(ask(&known, 0, 2, 2, "other")), ReplicationErrc::out_of_order_sequence);
  EXPECT_EQ(refusal(ask(&known, 0, 2, 1)), ReplicationErrc::out_of_order_sequence);
}

TEST(SequenceRule, ALaterEpochBeginsAtZeroAndFencesTheEarlierOne) {
  const auto known = remembered(3, 0, 2, 2);
  EXPECT_TRUE(ask(&known, 4, 0, 1).append());
  EXPECT_EQ(refusal(ask(&known, 4, 4, 1)), ReplicationErrc::out_of_order_sequence);
  EXPECT_EQ(refusal(ask(&known, 2, 0, 1)), ReplicationErrc::producer_fenced);
  EXPECT_EQ(refusal(ask(&known, 2, 4, 1)), ReplicationErrc::producer_fenced);
}

TEST(SequenceRule, SequencesGoOnAtZeroBehindTheLast) {
  const auto known = remembered(0, kLast - 3, 2, 3);  // kLast-3..kLast-1, kLast..1
  EXPECT_EQ(known.next_sequence(), 2);
  EXPECT_TRUE(ask(&known, 0, 2, 1).append());
  EXPECT_TRUE(ask(&known, 0, kLast, 3).repeat_of);
  EXPECT_TRUE(ask(&known, 0, kLast - 3, 3).repeat_of);
  EXPECT_EQ(refusal(ask(&known, 0, kLast - 9, 3)), ReplicationErrc::duplicate_sequence);
  EXPECT_EQ(refusal(ask(&known, 0, 3, 1)), ReplicationErrc::out_of_order_sequence);
}

}  // namespace
}  // namespace mq::replication
