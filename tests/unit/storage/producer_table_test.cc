#include "storage/producer_table.h"

#include "producer_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using storage::ProducerState;
using storage::ProducerTable;

constexpr std::int64_t kDayMs = std::int64_t{24} * 60 * 60 * 1000;

/// Stamps batches one behind the other and notes them.
struct Appender {
  explicit Appender(std::size_t producers_max = ProducerTable::kProducersMax)
      : table(producers_max) {}
  void append(std::int64_t id, std::int32_t epoch, std::int32_t sequence, int records = 1) {
    const auto batch = named_batch(id, epoch, sequence, records);
    std::vector<std::byte> bytes(batch.bytes.begin(), batch.bytes.end());
    model::stamp(bytes, Offset(end), model::LeaderEpoch(1), time_ms);
    const auto view = model::RecordBatchView::parse(bytes);
    table.note(*view);
    end = view->end_offset().value();
  }
  std::vector<std::int64_t> offsets(std::int64_t id) {
    std::vector<std::int64_t> all;
    if (const auto* state = table.find(id)) {
      for (const auto& batch : state->batches()) all.push_back(batch.base_offset.value());
    }
    return all;
  }
  ProducerTable table;
  std::int64_t end = 0;
  std::int64_t time_ms = 1'000'000'000'000;
};

TEST(ProducerTableTest, RemembersTheFiveNewestBatchesOfEach) {
  Appender log;
  for (int i = 0; i < 7; ++i) {
    log.append(3, 0, 2 * i, 2);
    log.append(4, 0, i);
  }
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{6, 9, 12, 15, 18}));
  EXPECT_EQ(log.table.find(3)->next_sequence(), 14);
  EXPECT_EQ(log.table.find(4)->next_sequence(), 7);
  EXPECT_EQ(log.table.find(5), nullptr);
}

TEST(ProducerTableTest, ANewEpochOrANewBeginningForgetsWhatWasBefore) {
  Appender log;
  log.append(3, 0, 0, 4);
  log.append(3, 1, 0, 4);
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(log.table.find(3)->producer().epoch, 1);
  log.append(3, 1, 0, 4);
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{8}));
}

TEST(ProducerTableTest, BatchesWithoutANameAreNotRemembered) {
  ProducerTable table;
  auto batch = make_batch(1, 3, 10);
  base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
  model::stamp(bytes, Offset(0), model::LeaderEpoch(1), 77);
  table.note(*model::RecordBatchView::parse(bytes));
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.newest_append_time_ms(), 77);
}

// IDM-4
TEST(ProducerTableTest, BatchesExpireByTheAppendTimeOfTheNewestOne) {
  Appender log;
  log.append(3, 0, 0);
  log.time_ms += kDayMs;
  log.append(3, 0, 1);
  log.append(4, 0, 0);
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{0, 1}));
  log.time_ms += 1;
  log.append(4, 0, 1);
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{1}));
  log.time_ms += kDayMs;
  log.append(4, 0, 2);
  EXPECT_EQ(log.table.find(3), nullptr);
  EXPECT_EQ(log.offsets(4), (std::vector<std::int64_t>{3, 4}));
}

TEST(ProducerTableTest, WhatLiesBelowTheLogStartIsForgotten) {
  Appender log;
  log.append(3, 0, 0, 4);
  log.append(4, 0, 0, 4);
  log.append(3, 0, 4, 4);
  log.table.forget_below(Offset(3));
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{0, 8}));
  log.table.forget_below(Offset(4));
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{8}));
  log.table.forget_below(Offset(8));
  EXPECT_EQ(log.table.find(4), nullptr);
  EXPECT_EQ(log.table.size(), 1u);
}

TEST(ProducerTableTest, KeepsThoseThatAppendedLast) {
  Appender log(3);
  for (const std::int64_t id : {1, 2, 3}) log.append(id, 0, 0);
  log.append(1, 0, 1);
  log.append(4, 0, 0);
  EXPECT_EQ(log.table.size(), 3u);
  EXPECT_EQ(log.table.find(2), nullptr);
  EXPECT_EQ(log.offsets(1), (std::vector<std::int64_t>{0, 3}));
  log.append(5, 0, 0);
  EXPECT_EQ(log.table.find(3), nullptr);
}

}  // namespace
}  // namespace mq::testing
