#include "storage/producer_table.h"

#include "producer_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using storage::ProducerState;
using storage::ProducerTable;

constexpr std::int64_t kDayMs = std::int64_t{24} * 60 * 60 * 1000;
constexpr std::int64_t kStretchMs = storage::SettledTime::kStretchMs;

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
  EXPECT_EQ(table.times().newest(), 77);
}

// IDM-4
TEST(ProducerTableTest, BatchesExpireADayBeforeTheSettledTime) {
  Appender log;
  log.append(3, 0, 0);  // offset 0
  log.time_ms += kDayMs;
  log.append(3, 0, 1);
  log.append(4, 0, 0);
  log.time_ms += 1;
  log.append(4, 0, 1);
  std::int32_t next = 2;
  const auto pass_stretch = [&] {
    log.time_ms += kStretchMs;
    log.append(4, 0, next++);
  };
  pass_stretch();
  pass_stretch();
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{0, 1}));
  pass_stretch();  // now what was appended a day and a millisecond after it is
                   // settled
  EXPECT_EQ(log.offsets(3), (std::vector<std::int64_t>{1}));
  log.time_ms += kDayMs;
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(log.table.find(3), nullptr);
    pass_stretch();
  }
  pass_stretch();
  EXPECT_EQ(log.table.find(3), nullptr);
}

// IDM-6
TEST(ProducerTableTest, AClockThatJumpsForgetsNothingForFiveMinutes) {
  for (const std::int64_t before_ms : {std::int64_t{0}, kStretchMs - 1}) {
    for (const std::int64_t after_ms : {std::int64_t{1}, kStretchMs - 1}) {
      Appender log(2);
      for (log.time_ms = 990 * kStretchMs; log.time_ms < 1'000 * kStretchMs; log.time_ms += 70'000)
        log.append(4, 0, 0);
      log.time_ms = 1'000 * kStretchMs + before_ms;
      log.append(3, 0, 0);
      log.time_ms = 9'000 * kStretchMs + after_ms;
      const std::int64_t jumped_ms = log.time_ms;
      for (int i = 0; log.time_ms - jumped_ms < kStretchMs; ++i, log.time_ms += 10'000) {
        log.append(4, 0, i);
        ASSERT_NE(log.table.find(3), nullptr) << before_ms << " " << after_ms << " " << i;
        ASSERT_FALSE(log.table.has_room());
      }
      for (int i = 0; i < 4; ++i, log.time_ms += kStretchMs) log.append(4, 0, i);
      EXPECT_TRUE(log.table.has_room());
      EXPECT_EQ(log.table.find(3), nullptr);
    }
  }
}

// IDM-6
TEST(ProducerTableTest, ThereIsRoomForAnotherOnlyInThePlaceOfOneThatIsSilent) {
  Appender log(3);
  for (const std::int64_t id : {1, 2, 3}) {
    EXPECT_TRUE(log.table.has_room());
    log.append(id, 0, 0);
  }
  std::int32_t next = 1;
  std::int64_t silent_ms = 0;
  for (; !log.table.has_room(); silent_ms += 20'000, log.time_ms += 20'000) {
    ASSERT_LE(silent_ms, 4 * kStretchMs);
    log.append(1, 0, next);
    log.append(2, 0, next++);
  }
  EXPECT_GE(silent_ms, 2 * kStretchMs);
  log.append(4, 0, 0);
  EXPECT_EQ(log.table.find(3), nullptr);
  EXPECT_FALSE(log.table.has_room());
}

TEST(SettledTimeTest, TakesBackWhatALogGivesAndNothingElse) {
  using storage::SettledTime;
  SettledTime times;
  constexpr std::int64_t kUnit = SettledTime::kStretchMs;
  EXPECT_TRUE(times.set_ends({-1, -1, -1, -1}));
  EXPECT_TRUE(times.set_ends({9 * kUnit, 7 * kUnit + 1, 7 * kUnit - 1, -1}));
  EXPECT_EQ(times.newest(), 9 * kUnit);
  EXPECT_EQ(times.settled(), -1);
  EXPECT_FALSE(times.set_ends({9 * kUnit + 1, 9 * kUnit, -1, -1}));  // one stretch
  EXPECT_FALSE(times.set_ends({kUnit, 9 * kUnit, -1, -1}));
  EXPECT_FALSE(times.set_ends({9 * kUnit, -1, kUnit, -1}));
  EXPECT_FALSE(times.set_ends({-2, -1, -1, -1}));
  EXPECT_EQ(times.newest(), 9 * kUnit);
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
