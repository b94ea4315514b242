#include "replication/follower.h"

#include "follower_fixture.h"

namespace mq::replication {
namespace {

using model::BrokerId;
using model::LeaderEpoch;
using model::Offset;
using protocol::WireError;
using testing::ModelLog;
using testing::ScriptedLeader;

/// A follower in epoch 5 of a leader whose log has three batches of epoch 4, [0, 6).
struct FollowerTest : ::testing::Test {
  FollowerTest() {
    for (int i = 0; i < 3; ++i) leader.log.append_records("old", 2);
    leader.become_leader(LeaderEpoch(5));
    leader.high_watermark = Offset(6);
  }
  ~FollowerTest() override {
    if (follower) end();
  }

  void follow(LeaderEpoch epoch = LeaderEpoch(5)) {
    follower = std::make_shared<FollowedPartition>(runtime, log, counters, memory,
                                                   Following{BrokerId(2), epoch});
    follower->on_news([this](bool urgent) {
      ++news;
      if (urgent) ++urgent_news;
    });
  }
  void end() {
    follower->close();
    mq::testing::run(simulator, follower->closed());
    follower.reset();
  }
  void settle() { simulator.run_for(std::chrono::milliseconds(1)); }

  void take(const ScriptedLeader::Answer& answer) {
    follower->take(answer.result, answer.owner, answer.batches);
    settle();
  }
  /// Subscribes, answers, until nothing is due at once; how often it took.
  int go_along() {
    int rounds = 0;
    while (const auto subscribe = follower->subscribe(++number)) {
      take(leader.to(*subscribe));
      ++rounds;
    }
    return rounds;
  }
  std::int64_t counter(const char* name) { return counters.get(name).value(); }

  mq::testing::Simulator simulator{1};
  mq::testing::SimRuntime runtime{simulator};
  base::Counters counters;
  net::MemoryBudget memory{runtime, 1 << 20};
  ModelLog log;
  ScriptedLeader leader{LeaderEpoch(4)};
  std::uint32_t number = 0;
  int news = 0;
  int urgent_news = 0;
  std::shared_ptr<FollowedPartition> follower;
};

TEST_F(FollowerTest, AnEmptyLogBecomesACopyWithTheStampsOfItsLeader) {
  follow();
  EXPECT_EQ(go_along(), 1);
  EXPECT_EQ(log.text(), "4:0-2 4:2-4 4:4-6");
  ASSERT_EQ(log.batches().size(), leader.log.batches().size());
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(log.batches()[i].bytes, leader.log.batches()[i].bytes);
  EXPECT_EQ(follower->high_watermark(), Offset(6));
  EXPECT_EQ(log.high_watermark_hint(), Offset(6));
}

TEST_F(FollowerTest, TheFirstSubscriptionTellsWhatTheLogHas) {
  log.start_epoch(LeaderEpoch(2)).value();
  log.append_records("mine", 3);
  log.restart_process();
  follow();
  const auto subscribe = follower->subscribe(7);
  ASSERT_TRUE(subscribe);
  EXPECT_EQ(subscribe->number, 7U);
  EXPECT_EQ(subscribe->leader_epoch, LeaderEpoch(5));
  EXPECT_EQ(subscribe->last_epoch, LeaderEpoch(2));
  EXPECT_EQ(subscribe->log_start, Offset(0));
  EXPECT_EQ(subscribe->appended, Offset(3));
  EXPECT_FALSE(follower->subscribe(8)) << "one is under way";
}

TEST_F(FollowerTest, AnEpochInWhichNothingWasAppendedIsNotTheLastOne) {
  ASSERT_TRUE(log.start_epoch(LeaderEpoch(2)));
  log.append_records("mine", 2);
  ASSERT_TRUE(log.start_epoch(LeaderEpoch(4)));
  log.restart_process();
  follow();
  EXPECT_EQ(follower->subscribe(1)->last_epoch, LeaderEpoch(2));
}

// REP-1
TEST_F(FollowerTest, AnAnswerToAnEarlierSubscriptionIsDropped) {
  follow();
  const auto first = follower->subscribe(1);
  const auto late = leader.to(*first);
  follower->disconnected();
  const auto second = follower->subscribe(2);
  ASSERT_TRUE(second);
  take(late);
  EXPECT_EQ(log.log_end_offset(), Offset(0));
  EXPECT_EQ(counter("replica_answers_dropped_total"), 1);
  take(leader.to(*second));
  EXPECT_EQ(log.log_end_offset(), Offset(6));
}

// REP-1
TEST_F(FollowerTest, AnAnswerOfAnotherEpochIsDroppedAndAskedForAgain) {
  follow();
  const auto subscribe = follower->subscribe(1);
  auto answer = leader.to(*subscribe);
  answer.result.leader_epoch = LeaderEpoch(6);
  take(answer);
  EXPECT_EQ(log.log_end_offset(), Offset(0));
  simulator.run_for(std::chrono::seconds(1));
  EXPECT_TRUE(follower->subscribe(2));
}

// REP-1
TEST_F(FollowerTest, ABatchThatDoesNotGoOnWhereTheLogEndsIsNotTaken) {
  follow();
  const auto subscribe = follower->subscribe(1);
  take(leader.batches(subscribe->number, Offset(2)));
  EXPECT_EQ(log.log_end_offset(), Offset(0));
  EXPECT_EQ(counter("replica_batches_refused_total"), 1);
  EXPECT_TRUE(follower->take_unsubscribe());
  simulator.run_for(std::chrono::seconds(1));
  const auto again = follower->subscribe(2);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->appended, Offset(0));
}

/// Nothing that it could do brings it there: it is replaced, and told where to begin.
TEST_F(FollowerTest, AnEmptyLogInsideABatchOfItsLeaderIsReplaced) {
  ASSERT_TRUE(run(simulator, log.restart_at(Offset(1), LeaderEpoch(0))));
  follow();
  const auto subscribe = follower->subscribe(1);
  take(leader.batches(subscribe->number, Offset(0)));
  EXPECT_EQ(log.log_end_offset(), Offset(1));
  EXPECT_TRUE(follower->needs_another_log());
}

TEST_F(FollowerTest, ADamagedBatchIsNotTakenNorWhatIsBehindIt) {
  follow();
  const auto subscribe = follower->subscribe(1);
  auto answer = leader.to(*subscribe);
  const std::size_t first = leader.log.batches()[0].bytes.size();
  answer.owner.data()[first + 100] ^= std::byte{1};
  take(answer);
  EXPECT_EQ(log.log_end_offset(), Offset(2));
  simulator.run_for(std::chrono::seconds(1));
  EXPECT_EQ(follower->subscribe(2)->appended, Offset(2));
}

TEST_F(FollowerTest, BatchesThatGoPastTheirAnswerAreRefused) {
  follow();
  const auto subscribe = follower->subscribe(1);
  auto answer = leader.to(*subscribe);
  answer.batches = answer.batches.first(answer.batches.size() - 1);
  take(answer);
  EXPECT_EQ(log.log_end_offset(), Offset(4));
}

// REP-2
TEST_F(FollowerTest, WhatAFormerLeaderWroteAloneIsCutAndReplaced) {
  // It led in epoch 3, and nobody had its last batch when epoch 4 began.
  ASSERT_TRUE(log.start_epoch(LeaderEpoch(3)));
  log.append_records("lost", 5);
  log.restart_process();
  follow();
  EXPECT_EQ(go_along(), 2);
  EXPECT_EQ(log.text(), leader.log.text());
  EXPECT_EQ(log.cuts(), 1);
}

// REP-2
TEST_F(FollowerTest, AfterAnUncleanStopTheLogIsCutByEpochAndNotToItsHighWatermark) {
  // All six records are here, and nobody has told that they are committed.
  follow();
  EXPECT_EQ(go_along(), 1);
  end();
  log.set_high_watermark_hint(Offset(2));
  leader.become_leader(LeaderEpoch(6));
  follow(LeaderEpoch(6));
  const auto subscribe = follower->subscribe(++number);
  ASSERT_TRUE(subscribe);
  EXPECT_EQ(subscribe->appended, Offset(6));
  EXPECT_EQ(log.cuts(), 0);
}

// REP-2: KIP-279, two changes of the leader that the follower knows only one of.
TEST_F(FollowerTest, AFastDoubleFailoverIsFoundInSeveralSteps) {
  ModelLog ours;
  ScriptedLeader theirs{LeaderEpoch(1)};
  theirs.log.append_records("a", 4);  // epoch 1 [0, 4)
  ASSERT_TRUE(ours.start_epoch(LeaderEpoch(1)));
  ours.append_records("a", 4);
  ours.append_records("x", 2);  // epoch 1 [4, 6) only here
  ASSERT_TRUE(ours.start_epoch(LeaderEpoch(3)));
  ours.append_records("y", 3);  // epoch 3 [6, 9) only here
  ours.restart_process();
  theirs.become_leader(LeaderEpoch(2));
  theirs.log.append_records("b", 9);  // epoch 2 [4, 13)
  theirs.become_leader(LeaderEpoch(4));
  auto copy = std::make_shared<FollowedPartition>(runtime, ours, counters, memory,
                                                  Following{BrokerId(2), LeaderEpoch(4)});
  int rounds = 0;
  while (const auto subscribe = copy->subscribe(static_cast<std::uint32_t>(++rounds))) {
    const auto answer = theirs.to(*subscribe);
    copy->take(answer.result, answer.owner, answer.batches);
    settle();
  }
  EXPECT_EQ(rounds - 1, 3);  // epoch 3 is unknown there; epoch 1 ends at 4; then all is one
  EXPECT_EQ(ours.text(), "1:0-4 2:4-13");
  copy->close();
  mq::testing::run(simulator, copy->closed());
}

// REP-2: the new leader has more of an old epoch than one who led after it and wrote nothing.
TEST_F(FollowerTest, BatchesOfAnEpochBeforeAnEmptyOneAreTaken) {
  follow();
  take(leader.batches(follower->subscribe(++number)->number, Offset(0), 1));
  EXPECT_EQ(log.text(), "4:0-2");
  end();
  ASSERT_TRUE(log.start_epoch(LeaderEpoch(5)));
  log.restart_process();
  leader.become_leader(LeaderEpoch(6));
  leader.log.append_records("new", 1);
  follow(LeaderEpoch(6));
  EXPECT_EQ(go_along(), 1);
  EXPECT_EQ(log.text(), "4:0-2 4:2-4 4:4-6 6:6-7");
  EXPECT_EQ(log.cuts(), 0);
}

TEST_F(FollowerTest, ALogThatEndsBelowTheLeadersStartBeginsAnewThere) {
  ASSERT_TRUE(mq::testing::run(simulator, leader.log.trim(Offset(4))));
  follow();
  EXPECT_EQ(go_along(), 2);
  EXPECT_EQ(log.restarts(), 1);
  EXPECT_EQ(log.text(), "4:4-6");
  EXPECT_EQ(log.log_start_offset(), Offset(4));
  EXPECT_EQ(follower->high_watermark(), Offset(6));
}

TEST_F(FollowerTest, ALogWithNothingInCommonThatBeginsAboveItsLeadersHasToBeReplaced) {
  ASSERT_TRUE(log.start_epoch(LeaderEpoch(2)));
  log.append_records("a", 4);
  log.append_records("b", 4);
  ASSERT_TRUE(mq::testing::run(simulator, log.trim(Offset(4))));
  log.restart_process();
  follow();
  EXPECT_EQ(go_along(), 1);
  EXPECT_TRUE(follower->needs_another_log());
  simulator.run_for(std::chrono::seconds(5));
  EXPECT_FALSE(follower->subscribe(++number));
  EXPECT_EQ(log.cuts() + log.restarts(), 0);
}

// REP-4
TEST_F(FollowerTest, TheLogStartFollowsTheLeadersAsFarAsTheLogIsConfirmed) {
  follow();
  go_along();
  ASSERT_TRUE(mq::testing::run(simulator, leader.log.trim(Offset(4))));
  take(leader.empty(number - 1));
  EXPECT_EQ(log.log_start_offset(), Offset(4));
}

// REP-4
TEST_F(FollowerTest, NothingIsRemovedHereByAgeOrSize) {
  follow();
  EXPECT_EQ(log.retention_limit(), Offset(0));
}

TEST_F(FollowerTest, TheHighWatermarkIsTheLeadersAsFarAsTheLogReaches) {
  leader.high_watermark = Offset(5);
  follow();
  const auto subscribe = follower->subscribe(++number);
  take(leader.batches(number, subscribe->appended, 1));
  EXPECT_EQ(follower->high_watermark(), Offset(2));
  take(leader.batches(number, Offset(2)));
  EXPECT_EQ(follower->high_watermark(), Offset(5));
  leader.high_watermark = Offset(3);
  take(leader.empty(number));
  EXPECT_EQ(follower->high_watermark(), Offset(5));
}

TEST_F(FollowerTest, ACutBelowTheHighWatermarkIsCounted) {
  follow();
  go_along();
  end();
  ScriptedLeader emptied{LeaderEpoch(9)};  // elected although its disk was emptied
  follow(LeaderEpoch(9));
  const auto subscribe = follower->subscribe(++number);
  const auto answer = emptied.to(*subscribe);
  take(answer);
  EXPECT_EQ(log.log_end_offset(), Offset(0));
  EXPECT_EQ(counter("records_truncated_below_high_watermark_total"), 6);
}

TEST_F(FollowerTest, PositionsAreToldOnceAndAreUrgentWhenTheConfirmedEndMoved) {
  ModelLog disk(false);
  auto copy = std::make_shared<FollowedPartition>(runtime, disk, counters, memory,
                                                  Following{BrokerId(2), LeaderEpoch(5)});
  int urgent = 0;
  copy->on_news([&](bool is_urgent) { urgent += is_urgent ? 1 : 0; });
  const auto answer = leader.to(*copy->subscribe(1));
  copy->take(answer.result, answer.owner, answer.batches);
  EXPECT_FALSE(copy->has_urgent_position());
  const auto appended = copy->take_position();
  ASSERT_TRUE(appended);
  EXPECT_EQ(appended->appended, Offset(6));
  EXPECT_EQ(appended->durable, Offset(0));
  EXPECT_FALSE(copy->take_position());
  urgent = 0;
  disk.confirm(Offset(6));
  EXPECT_EQ(urgent, 1);
  EXPECT_TRUE(copy->has_urgent_position());
  EXPECT_EQ(copy->take_position()->durable, Offset(6));
  EXPECT_FALSE(copy->has_urgent_position());
  copy->close();
}

TEST_F(FollowerTest, ARefusalIsFollowedByGrowingPauses) {
  follow();
  base::Duration before{};
  for (int i = 0; i < 4; ++i) {
    auto answer = leader.empty(++number);
    ASSERT_TRUE(follower->subscribe(number));
    answer.result.status = protocol::Status::of(WireError::unknown_leader_epoch, "");
    const auto refused_at = simulator.now();
    const int news_before = news;
    take(answer);
    EXPECT_FALSE(follower->subscribe(number + 1));
    simulator.run_until([&] { return news > news_before; }, std::chrono::seconds(5));
    EXPECT_GT(simulator.now() - refused_at, before);
    before = simulator.now() - refused_at;
  }
  EXPECT_EQ(go_along(), 1);
}

TEST_F(FollowerTest, WhileTheDiskIsSlowBatchesWaitInOrderAndNothingIsSubscribed) {
  follow();
  log.become_slow(runtime);
  const auto subscribe = follower->subscribe(++number);
  take(leader.batches(number, subscribe->appended, 1));
  take(leader.batches(number, Offset(2)));
  EXPECT_EQ(log.log_end_offset(), Offset(0));
  EXPECT_GT(memory.used(), 0U);
  follower->disconnected();
  EXPECT_FALSE(follower->subscribe(++number)) << "the log's end is not known yet";
  log.become_fast();
  settle();
  EXPECT_EQ(memory.used(), 0U);
  const auto again = follower->subscribe(++number);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->appended, log.log_end_offset());
  take(leader.to(*again));
  EXPECT_EQ(log.text(), leader.log.text());
}

TEST_F(FollowerTest, WithoutMemoryForWhatWaitsTheLeaderKeepsIt) {
  follow();
  log.become_slow(runtime);
  const auto subscribe = follower->subscribe(++number);
  take(leader.batches(number, subscribe->appended, 1));
  const std::size_t others = memory.limit() - memory.used();
  ASSERT_TRUE(memory.try_take(others));
  take(leader.batches(number, Offset(2)));
  EXPECT_TRUE(follower->take_unsubscribe());
  memory.release(others);
  log.become_fast();
  simulator.run_for(std::chrono::seconds(1));
  EXPECT_EQ(go_along(), 1);
  EXPECT_EQ(log.text(), leader.log.text());
}

TEST_F(FollowerTest, AFullDiskIsAskedAgainLater) {
  follow();
  log.refuse_next_append(make_error_code(storage::StorageErrc::storage_full));
  const auto subscribe = follower->subscribe(++number);
  take(leader.to(*subscribe));
  EXPECT_EQ(log.log_end_offset(), Offset(0));
  EXPECT_TRUE(follower->take_unsubscribe());
  simulator.run_for(std::chrono::seconds(2));
  EXPECT_EQ(go_along(), 1);
  EXPECT_EQ(log.log_end_offset(), Offset(6));
}

TEST_F(FollowerTest, AFailedLogIsFollowedNoMore) {
  follow();
  go_along();
  log.fail(make_error_code(storage::StorageErrc::disk_failed));
  EXPECT_EQ(follower->failure(), make_error_code(storage::StorageErrc::disk_failed));
  EXPECT_TRUE(follower->take_unsubscribe());
  simulator.run_for(std::chrono::seconds(5));
  EXPECT_FALSE(follower->subscribe(++number));
  EXPECT_FALSE(follower->take_position());
}

TEST_F(FollowerTest, AClosedOneTakesNothingAndEndsWhatIsUnderWay) {
  follow();
  log.become_slow(runtime);
  const auto subscribe = follower->subscribe(++number);
  take(leader.to(*subscribe));
  follower->close();
  log.become_fast();
  mq::testing::run(simulator, follower->closed());
  EXPECT_FALSE(follower->subscribe(++number));
  EXPECT_EQ(follower->failure(), make_error_code(ReplicationErrc::closed));
}

TEST_F(FollowerTest, OutOfSyncItPausesWhileTheDiskHasMuchToWrite) {
  follow();
  follower->set_in_sync(false);
  log.set_write_back_lags(true);
  const auto subscribe = follower->subscribe(++number);
  ASSERT_TRUE(subscribe);
  take(leader.batches(number, Offset(0), 1));
  EXPECT_EQ(log.log_end_offset(), Offset(2));
  EXPECT_TRUE(follower->take_unsubscribe());
  EXPECT_FALSE(follower->take_position());
  take(leader.batches(number, Offset(2), 1));  // it was on its way
  EXPECT_EQ(log.log_end_offset(), Offset(4));
  simulator.run_for(std::chrono::seconds(1));
  EXPECT_FALSE(follower->subscribe(++number));
  log.set_write_back_lags(false);
  simulator.run_for(std::chrono::milliseconds(200));
  EXPECT_EQ(go_along(), 1);
  EXPECT_EQ(log.log_end_offset(), Offset(6));
}

TEST_F(FollowerTest, InSyncItDoesNotPause) {
  follow();
  log.set_write_back_lags(true);
  EXPECT_EQ(go_along(), 1);
  EXPECT_FALSE(follower->take_unsubscribe());
  EXPECT_EQ(counter("replica_pauses_for_disk_total"), 0);
}

/// Notes that it was woken.
struct Reader final : FetchWaiter {
  void wake() override { ++woken; }
  int woken = 0;
};

// PAR-3
TEST_F(FollowerTest, ConsumersReadUpToTheHighWatermarkThatIsKnownHere) {
  leader.high_watermark = Offset(4);
  follow();
  EXPECT_EQ(follower->unreadable(), make_error_code(ReplicationErrc::offset_not_available));
  EXPECT_EQ(go_along(), 1);
  EXPECT_FALSE(follower->unreadable());
  const auto read = follower->read(Offset(0), 1 << 20);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->end_offset, Offset(4));
  const auto nothing = follower->read(Offset(5), 1 << 20);  // above it, and in the log
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->bytes, 0U);
  Reader reader;
  reader.wanted = follower->high_watermark();
  follower->add_waiter(reader);
  leader.high_watermark = Offset(6);
  take(leader.empty(number - 1));
  EXPECT_EQ(reader.woken, 1);
  EXPECT_EQ(follower->read(Offset(4), 1 << 20)->end_offset, Offset(6));
}

TEST_F(FollowerTest, WhatConsumersCannotFindHereTheyAreNotToldToBeOutOfRange) {
  ASSERT_TRUE(mq::testing::run(simulator, leader.log.trim(Offset(2))));
  follow();
  go_along();
  simulator.run_for(std::chrono::seconds(1));
  const auto missing = make_error_code(ReplicationErrc::offset_not_available);
  ASSERT_EQ(log.log_start_offset(), Offset(2));
  EXPECT_EQ(follower->read(Offset(7), 100).error(), missing);
  EXPECT_EQ(follower->read(Offset(0), 100).error(), missing);
}

TEST_F(FollowerTest, WithoutItsLeaderOrOutOfSyncItIsNotRead) {
  follow();
  go_along();
  Reader reader;
  reader.wanted = follower->high_watermark();
  follower->add_waiter(reader);
  follower->disconnected();
  EXPECT_EQ(reader.woken, 1);
  EXPECT_TRUE(follower->unreadable());
  go_along();
  EXPECT_FALSE(follower->unreadable());
  follower->add_waiter(reader);
  follower->set_in_sync(false);
  EXPECT_EQ(reader.woken, 2);
  EXPECT_TRUE(follower->unreadable());
  EXPECT_FALSE(follower->read(Offset(0), 100));
}

}  // namespace
}  // namespace mq::replication
