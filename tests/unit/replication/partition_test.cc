#include "replication/partition.h"

#include <gtest/gtest.h>

#include "base/mutants.h"
#include "fake_log.h"
#include "produced_batch.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::replication {
namespace {

using testing::FakeLog;

/// One partition on a log that confirms at once, as under `memory`, or when the test says so.
struct PartitionTest : ::testing::Test {
  explicit PartitionTest(bool confirm_at_once) : log(confirm_at_once) {}

  testing::Simulator simulator{1};
  testing::SimRuntime runtime{simulator};
  base::Counters counters;
  FakeLog log;
  Partition partition{runtime, log, counters};

  base::Result<storage::AppendInfo> append(std::uint64_t sequence) {
    auto batch = testing::one_record_batch("record");
    return partition.append({}, batch, {7, 1, sequence});
  }
  void settle() {
    while (simulator.step()) {
    }
  }
};
struct PartitionUnderMemory : PartitionTest {
  PartitionUnderMemory() : PartitionTest(true) {}
};
struct PartitionUnderDisk : PartitionTest {
  PartitionUnderDisk() : PartitionTest(false) {}
};

struct CountingWaiter final : FetchWaiter {
  void wake() override { ++woken; }
  int woken = 0;
};

TEST_F(PartitionUnderMemory, UnderMemoryAnAppendIsConfirmedAtOnce) {
  const auto appended = append(0);
  ASSERT_TRUE(appended);
  EXPECT_TRUE(partition.is_acknowledged(*appended, Acks::leader));
  EXPECT_TRUE(partition.is_acknowledged(*appended, Acks::all));
  EXPECT_EQ(partition.high_watermark(), Offset(1));
}

// PAR-2, PAR-3
TEST_F(PartitionUnderDisk, UnderDiskNothingIsConfirmedOrReadBeforeTheFlush) {
  const auto appended = append(0);
  ASSERT_TRUE(appended);
  EXPECT_FALSE(partition.is_acknowledged(*appended, Acks::leader));
  EXPECT_FALSE(partition.is_acknowledged(*appended, Acks::all));
  EXPECT_TRUE(partition.is_acknowledged(*appended, Acks::none));
  const auto read = partition.read(Offset(0), 100);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bytes, 0U);
  EXPECT_EQ(partition.read(Offset(1), 100).error(),
            make_error_code(ReplicationErrc::offset_out_of_range));
  log.confirm(1);
  EXPECT_TRUE(partition.is_acknowledged(*appended, Acks::all));
  EXPECT_EQ(partition.read(Offset(0), 100)->bytes, 1U);
}

TEST_F(PartitionUnderDisk, WaitersAreAcknowledgedInTheOrderOfTheirOffsets) {
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    const auto appended = append(static_cast<std::uint64_t>(i));
    partition.when_acknowledged(*appended, Acks::all, [&order, i](Error error) {
      EXPECT_FALSE(error);
      order.push_back(i);
    });
  }
  log.confirm(2);
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
  log.confirm(3);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(PartitionUnderDisk, AcknowledgedTimesOutAtItsDeadline) {
  const auto appended = append(0);
  const auto deadline = runtime.now() + std::chrono::seconds(3);
  const auto outcome =
      testing::run(simulator, partition.acknowledged(*appended, Acks::all, deadline));
  EXPECT_EQ(outcome.error(), make_error_code(ReplicationErrc::timed_out));
  EXPECT_EQ(runtime.now(), deadline);
  partition.close();
}

TEST_F(PartitionUnderDisk, ANewLeaderEpochTakesTheAcknowledgementAway) {
  const auto appended = append(0);
  Error outcome;
  partition.when_acknowledged(*appended, Acks::all, [&](Error error) { outcome = error; });
  ASSERT_TRUE(log.start_epoch(model::LeaderEpoch(2)));
  log.confirm(1);
  EXPECT_EQ(outcome, make_error_code(ReplicationErrc::epoch_changed));
}

TEST_F(PartitionUnderMemory, ARefusedBatchDoesNotReachTheLog) {
  EXPECT_EQ(append(1).error(), make_error_code(ReplicationErrc::out_of_order));
  EXPECT_EQ(partition.log_end_offset(), Offset(0));
}

// A batch that the log refused has not been applied, so those behind it are not either.
TEST_F(PartitionUnderMemory, AFailedAppendKeepsThoseBehindItOut) {
  ASSERT_TRUE(append(0));
  log.refuse_next_append(make_error_code(storage::StorageErrc::storage_full));
  EXPECT_EQ(append(1).error(), make_error_code(storage::StorageErrc::storage_full));
  EXPECT_EQ(append(2).error(), make_error_code(ReplicationErrc::out_of_order));
  EXPECT_TRUE(append(1));
}

// PAR-5: the client starts anew, and what it sends first is refused again.
TEST_F(PartitionUnderMemory, NothingOvertakesAZeroThatTheLogRefused) {
  ASSERT_TRUE(append(0));
  log.refuse_next_append(make_error_code(storage::StorageErrc::storage_full));
  EXPECT_EQ(append(0).error(), make_error_code(storage::StorageErrc::storage_full));
  EXPECT_EQ(append(1).error(), make_error_code(ReplicationErrc::out_of_order));
  EXPECT_TRUE(append(0));
  EXPECT_TRUE(append(1));
}

TEST_F(PartitionUnderMemory, AnAppendWakesThoseWhoWaitForIt) {
  CountingWaiter waiter;
  waiter.wanted = Offset(0);
  partition.add_waiter(waiter);
  CountingWaiter later;
  later.wanted = Offset(1);
  partition.add_waiter(later);
  ASSERT_TRUE(append(0));
  EXPECT_EQ(waiter.woken, 1);
  EXPECT_EQ(later.woken, 0);
  ASSERT_TRUE(append(1));
  EXPECT_EQ(waiter.woken, 1);
  EXPECT_EQ(later.woken, 1);
}

TEST_F(PartitionUnderDisk, UnderDiskTheFlushWakesThoseWhoWait) {
  CountingWaiter waiter;
  waiter.wanted = Offset(0);
  partition.add_waiter(waiter);
  ASSERT_TRUE(append(0));
  EXPECT_EQ(waiter.woken, 0);
  log.confirm(1);
  EXPECT_EQ(waiter.woken, 1);
}

TEST_F(PartitionUnderMemory, AWaiterThatLeavesIsNotWoken) {
  {
    CountingWaiter waiter;
    waiter.wanted = Offset(0);
    partition.add_waiter(waiter);
  }
  EXPECT_TRUE(append(0));
}

TEST_F(PartitionUnderDisk, CloseEndsEveryWait) {
  CountingWaiter waiter;
  waiter.wanted = Offset(0);
  partition.add_waiter(waiter);
  const auto appended = append(0);
  Error outcome;
  partition.when_acknowledged(*appended, Acks::all, [&](Error error) { outcome = error; });
  partition.close();
  EXPECT_EQ(outcome, make_error_code(ReplicationErrc::closed));
  EXPECT_EQ(waiter.woken, 1);
  EXPECT_EQ(append(1).error(), make_error_code(ReplicationErrc::closed));
  EXPECT_EQ(partition.read(Offset(0), 1).error(), make_error_code(ReplicationErrc::closed));
}

TEST_F(PartitionUnderDisk, AFailedDiskFailsTheWaiters) {
  const auto appended = append(0);
  Error outcome;
  partition.when_acknowledged(*appended, Acks::all, [&](Error error) { outcome = error; });
  log.fail(make_error_code(storage::StorageErrc::disk_failed));
  EXPECT_EQ(outcome, make_error_code(storage::StorageErrc::disk_failed));
  Error later;
  partition.when_acknowledged(*appended, Acks::all, [&](Error error) { later = error; });
  EXPECT_FALSE(later);  // never from within the call
  settle();
  EXPECT_EQ(later, make_error_code(storage::StorageErrc::disk_failed));
}

// PAR-1
TEST_F(PartitionUnderMemory, AFallingConfirmedEndTakesThePartitionOffline) {
  ASSERT_TRUE(append(0));
  log.confirm(0);
  EXPECT_EQ(partition.high_watermark(), Offset(1));
  EXPECT_EQ(partition.failure(), make_error_code(ReplicationErrc::invariant_broken));
  EXPECT_EQ(counters.snapshot().at("invariant_violations_total{id=PAR-1}"), 1);
}

// LOG-1
TEST_F(PartitionUnderMemory, AGapBetweenBatchesTakesThePartitionOffline) {
  ASSERT_TRUE(append(0));
  log.leave_gap(5);
  EXPECT_EQ(append(1).error(), make_error_code(ReplicationErrc::invariant_broken));
  EXPECT_EQ(append(2).error(), make_error_code(ReplicationErrc::invariant_broken));
}

// LOG-11
TEST_F(PartitionUnderMemory, ReadsOutsideTheLogAreOutOfRange) {
  ASSERT_TRUE(append(0));
  ASSERT_TRUE(append(1));
  log.trim(1);
  const auto out_of_range = make_error_code(ReplicationErrc::offset_out_of_range);
  EXPECT_EQ(partition.read(Offset(0), 1).error(), out_of_range);
  EXPECT_EQ(partition.read(Offset(3), 1).error(), out_of_range);
  EXPECT_EQ(partition.read(Offset(-1), 1).error(), out_of_range);
  EXPECT_TRUE(partition.read(Offset(2), 1));
}

TEST_F(PartitionUnderMemory, ClosedWaitsForReadsFromTheDisk) {
  log.hang_disk(runtime);
  log.go_cold();
  ASSERT_TRUE(append(0));
  EXPECT_EQ(partition.read(Offset(0), 1).error(),
            make_error_code(storage::StorageErrc::not_cached));
  const auto reading = testing::start_for_outcome(simulator.executor(),
                                                  partition.read_from_disk(Offset(0), 1), [] {});
  settle();
  partition.close();
  const auto closing = testing::start_for_outcome(simulator.executor(), partition.closed(), [] {});
  settle();
  EXPECT_FALSE(closing->value);
  log.release_disk();
  settle();
  EXPECT_TRUE(closing->value);
  ASSERT_TRUE(reading->value);
  EXPECT_EQ(reading->value->error(), make_error_code(ReplicationErrc::closed));
}

// Repeats ------------------------------------------------------------------------------------

struct RepeatTest : PartitionTest {
  explicit RepeatTest(bool confirm_at_once) : PartitionTest(confirm_at_once) {}

  base::Result<storage::AppendInfo> send(std::uint64_t connection, std::uint64_t number,
                                         std::int32_t sequence, std::uint32_t records = 2,
                                         std::int32_t epoch = 0) {
    auto batch = testing::produced_batch("record", records, {7, epoch}, sequence);
    return partition.append({}, batch, {1, connection, number});
  }
};
struct RepeatUnderMemory : RepeatTest {
  RepeatUnderMemory() : RepeatTest(true) {}
};
struct RepeatUnderDisk : RepeatTest {
  RepeatUnderDisk() : RepeatTest(false) {}
};

// IDM-2
TEST_F(RepeatUnderMemory, ARepeatIsNotAppendedAndToldWhereTheBatchIs) {
  const auto first = send(1, 0, 0);
  log.set_time_ms(2'000'000);
  ASSERT_TRUE(send(1, 1, 2));
  const auto again = send(2, 0, 0);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->repeat);
  EXPECT_FALSE(first->repeat);
  EXPECT_EQ(again->base_offset, first->base_offset);
  EXPECT_EQ(again->end_offset, first->end_offset);
  EXPECT_EQ(again->append_time_ms, first->append_time_ms);
  EXPECT_EQ(partition.log_end_offset(), Offset(4));
  // It took its place in the order of its connection.
  EXPECT_TRUE(send(2, 1, 2)->repeat);
  const auto next = send(2, 2, 4);
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->repeat);
  EXPECT_EQ(partition.log_end_offset(), Offset(6));
}

// IDM-2, PAR-2: answered early it would confirm what a crash may still take.
TEST_F(RepeatUnderDisk, ARepeatIsAcknowledgedOnlyOnceTheBatchIsConfirmed) {
  ASSERT_TRUE(send(1, 0, 0));
  const auto second = send(1, 1, 2);
  std::vector<int> order;
  const auto note = [&](int who) {
    return [&order, who](Error error) {
      EXPECT_FALSE(error);
      order.push_back(who);
    };
  };
  partition.when_acknowledged(*second, Acks::all, note(2));
  const auto again = send(2, 0, 0);
  ASSERT_TRUE(again);
  EXPECT_FALSE(partition.is_acknowledged(*again, Acks::leader));
  EXPECT_FALSE(partition.is_acknowledged(*again, Acks::all));
  partition.when_acknowledged(*again, Acks::all, note(1));
  settle();
  EXPECT_TRUE(order.empty());
  log.confirm(2);
  EXPECT_EQ(order, std::vector<int>{1});
  EXPECT_TRUE(partition.is_acknowledged(*again, Acks::all));
  log.confirm(4);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

// IDM-3: what is in the log must not fail because there is no room for it now.
TEST_F(RepeatUnderMemory, ARepeatIsKnownBeforeTheLogIsAskedForRoom) {
  ASSERT_TRUE(send(1, 0, 0));
  log.refuse_next_append(make_error_code(storage::StorageErrc::storage_full));
  EXPECT_TRUE(send(2, 0, 0));
  EXPECT_EQ(send(2, 1, 2).error(), storage::StorageErrc::storage_full);
  EXPECT_TRUE(send(2, 1, 2));
}

TEST_F(RepeatUnderMemory, RefusalsAppendNothing) {
  EXPECT_EQ(send(1, 0, 2).error(), ReplicationErrc::unknown_producer);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(send(1, static_cast<std::uint64_t>(i), 2 * i));
  EXPECT_EQ(send(1, 7, 16).error(), ReplicationErrc::out_of_order_sequence);
  EXPECT_EQ(send(1, 0, 0).error(), ReplicationErrc::duplicate_sequence);
  EXPECT_TRUE(send(1, 0, 0, 2, 1));
  EXPECT_EQ(send(1, 1, 2, 2, 0).error(), ReplicationErrc::producer_fenced);
  EXPECT_EQ(partition.log_end_offset(), Offset(16));
}

// What was refused for its sequence is sent again under another: nothing of an older connection may
// come in between, or both would be in the log.
TEST_F(RepeatUnderMemory, ARefusalForTheSequenceShutsOutOlderConnections) {
  ASSERT_TRUE(send(1, 0, 0));
  EXPECT_EQ(send(2, 0, 4).error(), ReplicationErrc::out_of_order_sequence);
  EXPECT_EQ(send(1, 1, 2).error(), ReplicationErrc::stale_connection);
  EXPECT_TRUE(send(2, 0, 0, 2, 1));
}

TEST_F(RepeatUnderMemory, ADamagedBatchIsNotTakenForARepeat) {
  ASSERT_TRUE(send(1, 0, 0));
  auto batch = testing::produced_batch("record", 2, {7, 0}, 0);
  batch.back() ^= std::byte{1};
  EXPECT_EQ(partition.append({}, batch, {1, 2, 0}).error(), model::ModelErrc::corrupt_batch);
}

// IDM-6: a producer with a batch to repeat is not forgotten for others.
TEST_F(RepeatUnderMemory, AProducerTooManyIsRefusedAndNobodyIsForgotten) {
  const auto send_as = [&](std::uint64_t number, std::int64_t producer) {
    auto batch = testing::produced_batch("record", 2, {producer, 0}, 0);
    return partition.append({}, batch, {1, 1, number});
  };
  std::uint64_t number = 0;
  for (const std::int64_t producer : {1, 2, 3, 4, 5, 6, 7, 8})
    ASSERT_TRUE(send_as(number++, producer));
  const auto end = partition.log_end_offset();
  EXPECT_EQ(send_as(number, 9).error(), ReplicationErrc::too_many_producers);
  // Like every batch that was not appended, it holds back those behind it.
  auto behind = testing::produced_batch("record", 2, {9, 0}, 2);
  EXPECT_EQ(partition.append({}, behind, {1, 1, number + 1}).error(),
            ReplicationErrc::out_of_order);
  const auto again = send_as(number, 1);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->repeat);
  EXPECT_EQ(partition.log_end_offset(), end);
  const base::EnabledMutant mutant("producers_forgotten_for_new_ones");
  ASSERT_TRUE(send_as(number + 1, 9));
  EXPECT_FALSE(send_as(number + 2, 1)->repeat);
}

TEST_F(RepeatUnderMemory, TheTestsNoticeARepeatThatIsAnsweredAsAGap) {
  const base::EnabledMutant mutant("duplicate_answered_out_of_order");
  ASSERT_TRUE(send(1, 0, 0));
  EXPECT_FALSE(send(2, 0, 0));
}

// PAR-3: what a consumer may not read it may not find either.
TEST_F(PartitionUnderDisk, TimesAreFoundBelowTheHighWatermarkOnly) {
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(append(i));
  log.confirm(3);
  const auto find = [&](std::int64_t time_ms) {
    return *testing::run(simulator, partition.find_time(time_ms));
  };
  EXPECT_EQ(find(20).offset, Offset(2));
  EXPECT_EQ(find(20).append_time_ms, 20);
  EXPECT_EQ(find(30).offset, Offset(3));
  EXPECT_EQ(find(30).append_time_ms, -1);
  EXPECT_EQ(find(40).offset, Offset(3));
  log.fail(make_error_code(storage::StorageErrc::disk_failed));
  EXPECT_EQ(testing::run(simulator, partition.find_time(0)).error(),
            make_error_code(storage::StorageErrc::disk_failed));
}

// LOG-10
TEST_F(PartitionUnderDisk, TrimStopsAtTheHighWatermark) {
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(append(i));
  log.confirm(3);
  EXPECT_EQ(testing::run(simulator, partition.trim(Offset(4))).error(),
            make_error_code(ReplicationErrc::offset_out_of_range));
  EXPECT_EQ(*testing::run(simulator, partition.trim(Offset(3))), Offset(3));
  EXPECT_EQ(*testing::run(simulator, partition.trim(Offset(1))), Offset(3));
  EXPECT_EQ(partition.log_start_offset(), Offset(3));
}

TEST_F(PartitionUnderMemory, ClosingWaitsForATrimUnderWay) {
  ASSERT_TRUE(append(0));
  log.hang_disk(runtime);
  const auto outcome = std::make_shared<testing::RunOutcome<base::Result<Offset>>>();
  runtime.spawn("trim", testing::store_outcome(partition.trim(Offset(1)), outcome));
  settle();
  partition.close();
  EXPECT_FALSE(outcome->value);
  log.release_disk();
  testing::run(simulator, partition.closed());
  ASSERT_TRUE(outcome->value);
  EXPECT_EQ(outcome->value->error(), make_error_code(ReplicationErrc::closed));
}

}  // namespace
}  // namespace mq::replication
