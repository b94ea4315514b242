// A partition with followers: what it confirms, refuses and tells, and what it takes from them.
#include <gtest/gtest.h>

#include "fake_log.h"
#include "isr_states.h"
#include "produced_batch.h"
#include "replication/partition.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::replication {
namespace {

using testing::FakeLog;

/// Broker 1 leads in epoch 5, with followers 2 and 3; the log has three records of epoch 1.
class PartitionWithFollowers : public ::testing::Test {
 protected:
  PartitionWithFollowers() {
    for (int i = 0; i < 3; ++i) {
      auto batch = testing::one_record_batch("old");
      EXPECT_TRUE(log.append({}, batch));
    }
    log.confirm(3);
  }

  void lead(std::vector<IsrMember> isr, std::uint32_t min_isr = 2) {
    EXPECT_TRUE(log.start_epoch(kEpoch));
    LeaderRole role{member(1),
                    {BrokerId(1), BrokerId(2), BrokerId(3)},
                    state_of(7, std::move(isr), min_isr),
                    {}};
    partition.emplace(runtime, log, counters, std::move(role));
  }
  base::Result<storage::AppendInfo> append(std::uint64_t sequence, Acks acks = Acks::all) {
    auto batch = testing::one_record_batch("record");
    return partition->append({}, batch, {7, 1, sequence}, acks);
  }
  protocol::ReplicaSubscribe from(std::int64_t end, std::int32_t last_epoch = 1) const {
    protocol::ReplicaSubscribe from;
    from.partition = log.id();
    from.number = 1;
    from.leader_epoch = kEpoch;
    from.last_epoch = LeaderEpoch(last_epoch);
    from.appended = from.durable = Offset(end);
    from.log_start = Offset(0);
    return from;
  }
  void follow(std::int32_t id, std::int64_t end = 3) {
    const auto subscribed = partition->subscribe(member(id), from(end));
    ASSERT_TRUE(subscribed);
    EXPECT_FALSE(subscribed->diverging);
    subscriptions[id] = subscribed->subscription;
  }
  void has(std::int32_t id, std::int64_t end) { has(id, end, end); }
  void has(std::int32_t id, std::int64_t appended, std::int64_t durable) {
    partition->follower_has(
        {member(id), subscriptions[id], kEpoch, Offset(appended), Offset(durable)});
  }
  /// 0: acknowledged, another value: why not, nothing: not yet.
  std::shared_ptr<std::optional<Error>> watch(const storage::AppendInfo& appended, Acks acks) {
    auto outcome = std::make_shared<std::optional<Error>>();
    partition->when_acknowledged(appended, acks, [outcome](Error error) { *outcome = error; });
    return outcome;
  }
  static std::vector<std::byte> numbered(std::int32_t sequence) {
    return testing::produced_batch("record", 1, {11, 0}, sequence);
  }
  void settle() {
    while (simulator.step()) {
    }
  }
  static std::optional<BrokerEpoch> registered(BrokerId id) {
    return BrokerEpoch(10L * id.value());
  }

  testing::Simulator simulator{1};
  testing::SimRuntime runtime{simulator};
  base::Counters counters;
  FakeLog log{false};
  std::optional<Partition> partition;
  std::map<std::int32_t, std::uint64_t> subscriptions;
};

TEST_F(PartitionWithFollowers, AcksAllWaitForTheWholeIsr) {
  lead(members({1, 2, 3}));
  follow(2);
  follow(3);
  const auto appended = append(0);
  ASSERT_TRUE(appended);
  EXPECT_EQ(appended->leader_epoch, kEpoch);
  EXPECT_FALSE(partition->is_acknowledged(*appended, Acks::all));
  const auto outcome = watch(*appended, Acks::all);
  log.confirm(4);
  has(2, 4);
  EXPECT_EQ(*outcome, std::nullopt);
  EXPECT_EQ(partition->high_watermark(), Offset(3));
  has(3, 4);
  EXPECT_EQ(*outcome, Error());
  EXPECT_EQ(partition->high_watermark(), Offset(4));
  EXPECT_TRUE(partition->is_acknowledged(*appended, Acks::all));
}

TEST_F(PartitionWithFollowers, AcksAllWaitForTheLeadersOwnDiskToo) {
  lead(members({1, 2}));
  follow(2);
  const auto outcome = watch(*append(0), Acks::all);
  has(2, 4);
  EXPECT_EQ(*outcome, std::nullopt);
  EXPECT_EQ(partition->high_watermark(), Offset(3));
  log.confirm(4);
  EXPECT_EQ(*outcome, Error());
}

TEST_F(PartitionWithFollowers, AcksOfTheLeaderWaitForItsOwnLogAlone) {
  lead(members({1, 2, 3}));
  const auto appended = append(0, Acks::leader);
  ASSERT_TRUE(appended);
  EXPECT_FALSE(partition->is_acknowledged(*appended, Acks::leader));
  const auto outcome = watch(*appended, Acks::leader);
  log.confirm(4);
  EXPECT_EQ(*outcome, Error());
  EXPECT_TRUE(partition->is_acknowledged(*appended, Acks::leader));
  EXPECT_FALSE(partition->is_acknowledged(*appended, Acks::all));
}

TEST_F(PartitionWithFollowers, BelowMinIsrAcksAllAppendNothing) {
  lead(members({1}));
  EXPECT_EQ(append(0).error(), ReplicationErrc::not_enough_replicas);
  EXPECT_EQ(partition->log_end_offset(), Offset(3));
  EXPECT_FALSE(partition->enough_replicas());
  // The client begins anew, with what does not ask for that.
  EXPECT_TRUE(append(0, Acks::leader));
  EXPECT_TRUE(append(0, Acks::none));
}

TEST_F(PartitionWithFollowers, ARepeatIsNotRefusedBelowMinIsrButWaits) {
  // IDM-2
  lead(members({1, 2}));
  follow(2);
  auto batch = numbered(0);
  ASSERT_TRUE(partition->append({}, batch, {7, 1, 0}));
  log.confirm(4);
  partition->take_state(state_of(8, members({1})));
  auto again = numbered(0);
  const auto repeat = partition->append({}, again, {7, 2, 0});
  ASSERT_TRUE(repeat);
  EXPECT_TRUE(repeat->repeat);
  EXPECT_FALSE(partition->is_acknowledged(*repeat, Acks::all));
  auto next = numbered(1);
  EXPECT_EQ(partition->append({}, next, {7, 2, 1}).error(), ReplicationErrc::not_enough_replicas);
  partition->take_state(state_of(9, members({1, 2})));
  has(2, 4);
  EXPECT_TRUE(partition->is_acknowledged(*repeat, Acks::all));
}

TEST_F(PartitionWithFollowers, BelowMinIsrTheHighWatermarkStands) {
  // ISR-7
  lead(members({1, 2}));
  follow(2);
  const auto outcome = watch(*append(0), Acks::all);
  log.confirm(4);
  partition->take_state(state_of(8, members({1})));
  EXPECT_EQ(*outcome, std::nullopt);
  EXPECT_EQ(partition->high_watermark(), Offset(3));
  partition->take_state(state_of(9, members({1}), 1));
  EXPECT_EQ(*outcome, Error());
}

TEST_F(PartitionWithFollowers, TheHighWatermarkBeginsAtWhatWasSeenOfIt) {
  log.set_high_watermark_hint(Offset(2));
  lead(members({1, 2}));
  EXPECT_EQ(partition->high_watermark(), Offset(2));
  EXPECT_GT(partition->read(Offset(0), 100)->bytes, 0U);
}

TEST_F(PartitionWithFollowers, AHintAboveWhatIsThereIsNotBelieved) {
  log.set_high_watermark_hint(Offset(99));
  lead(members({1, 2}));
  EXPECT_EQ(partition->high_watermark(), Offset(3));
}

TEST_F(PartitionWithFollowers, AHintAcknowledgesNothing) {
  log.set_high_watermark_hint(Offset(3));
  lead(members({1, 2}));
  const storage::AppendInfo old{Offset(2), Offset(3), kEpoch, 1, true};
  EXPECT_FALSE(partition->is_acknowledged(old, Acks::all));
  const auto outcome = watch(old, Acks::all);
  settle();
  EXPECT_EQ(*outcome, std::nullopt);
  follow(2);
  EXPECT_EQ(*outcome, Error());
}

TEST_F(PartitionWithFollowers, TheEndIsNotKnownBeforeAllOfTheEpochsBeforeAreConfirmed) {
  // PAR-8
  log.set_high_watermark_hint(Offset(1));
  lead(members({1, 2}));
  EXPECT_EQ(partition->latest().error(), ReplicationErrc::offset_not_available);
  // Somebody may have read up to there at the leader before: it waits, it is not out of range.
  for (const int offset : {1, 2, 3}) {
    const auto read = partition->read(Offset(offset), 100);
    ASSERT_TRUE(read) << offset;
    EXPECT_EQ(read->bytes, 0U);
  }
  EXPECT_EQ(partition->read(Offset(4), 100).error(), ReplicationErrc::offset_not_available);
  EXPECT_EQ(testing::run(simulator, partition->find_time(20)).error(),
            ReplicationErrc::offset_not_available);
  EXPECT_EQ(testing::run(simulator, partition->trim(Offset(2))).error(),
            ReplicationErrc::offset_not_available);
  follow(2, 2);
  EXPECT_EQ(partition->high_watermark(), Offset(2));
  EXPECT_FALSE(partition->latest());
  has(2, 3);
  EXPECT_EQ(*partition->latest(), Offset(3));
  EXPECT_EQ(partition->read(Offset(4), 100).error(), ReplicationErrc::offset_out_of_range);
}

TEST_F(PartitionWithFollowers, AFollowerReadsUpToTheLogEnd) {
  lead(members({1, 2}));
  follow(2);
  ASSERT_TRUE(append(0));
  EXPECT_EQ(partition->read_for_follower(Offset(3), 100)->end_offset, Offset(4));
  EXPECT_EQ(partition->read_for_follower(Offset(4), 100)->bytes, 0U);
  EXPECT_EQ(partition->read_for_follower(Offset(5), 100).error(),
            ReplicationErrc::offset_out_of_range);
  EXPECT_EQ(partition->read(Offset(3), 100)->bytes, 0U);  // PAR-3
}

TEST_F(PartitionWithFollowers, AFollowersLogThatLeavesThisOneCountsForNothing) {
  // ISR-6
  lead(members({1, 2}));
  // A record of epoch 3 that the leader never had.
  auto subscribed = partition->subscribe(member(2), from(4, 3));
  ASSERT_TRUE(subscribed);
  EXPECT_EQ(subscribed->diverging, (EpochEnd{LeaderEpoch(1), Offset(3)}));
  has(2, 3);
  log.confirm(3);
  EXPECT_FALSE(partition->latest());
  // More of epoch 1 than the leader has.
  subscribed = partition->subscribe(member(2), from(4, 1));
  EXPECT_EQ(subscribed->diverging, (EpochEnd{LeaderEpoch(1), Offset(3)}));
  EXPECT_FALSE(partition->latest());
  follow(2);
  EXPECT_EQ(*partition->latest(), Offset(3));
}

TEST_F(PartitionWithFollowers, AnotherEpochIsRefusedByName) {
  lead(members({1, 2}));
  auto old = from(3);
  old.leader_epoch = LeaderEpoch(4);
  EXPECT_EQ(partition->subscribe(member(2), old).error(), ReplicationErrc::fenced_leader_epoch);
  old.leader_epoch = LeaderEpoch(6);
  EXPECT_EQ(partition->subscribe(member(2), old).error(), ReplicationErrc::unknown_leader_epoch);
}

TEST_F(PartitionWithFollowers, ABrokerWithoutAReplicaIsRefused) {
  lead(members({1, 2}));
  EXPECT_EQ(partition->subscribe(member(4), from(3)).error(), ReplicationErrc::not_a_replica);
  Partition alone(runtime, log, counters);
  EXPECT_EQ(alone.subscribe(member(2), from(3)).error(), ReplicationErrc::not_a_replica);
  alone.close();
}

TEST_F(PartitionWithFollowers, WhatIsGoneCannotBeFollowed) {
  lead(members({1, 2}));
  log.trim(2);
  EXPECT_EQ(partition->subscribe(member(2), from(1)).error(), ReplicationErrc::offset_out_of_range);
  EXPECT_EQ(partition->read_for_follower(Offset(1), 100).error(),
            ReplicationErrc::offset_out_of_range);
}

TEST_F(PartitionWithFollowers, NobodyHasWhatWasNeverSent) {
  lead(members({1, 2}));
  follow(2);
  ASSERT_TRUE(append(0));
  log.confirm(4);
  has(2, 5);
  has(2, 3, 4);
  EXPECT_EQ(partition->high_watermark(), Offset(3));
}

TEST_F(PartitionWithFollowers, WhoHasCaughtUpIsAskedForAndCountsAtOnce) {
  lead(members({1, 2}));
  int wanted = 0;
  partition->on_isr_change_wanted([&] { ++wanted; });
  follow(2);
  EXPECT_EQ(wanted, 0);
  EXPECT_EQ(partition->isr_request(registered), std::nullopt);
  follow(3);
  EXPECT_EQ(wanted, 1);
  const auto asked = partition->isr_request(registered);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->partition, log.id());
  EXPECT_EQ(asked->isr, members({1, 2, 3}));
  ASSERT_TRUE(append(0));
  log.confirm(4);
  has(2, 4);
  EXPECT_EQ(partition->high_watermark(), Offset(3));
  partition->isr_answered(state_of(8, members({1, 2, 3})));
  EXPECT_EQ(partition->isr_state().isr, members({1, 2, 3}));
  has(3, 4);
  EXPECT_EQ(partition->high_watermark(), Offset(4));
}

TEST_F(PartitionWithFollowers, ALeaderWhoseDiskFailedAsksForNothing) {
  lead(members({1, 2, 3}));
  follow(2);
  simulator.run_for(std::chrono::seconds(20));
  log.fail(make_error_code(storage::StorageErrc::disk_failed));
  EXPECT_EQ(partition->isr_request(registered), std::nullopt);
}

// Time in which nothing waits does not count, nor time before the log moved last.
TEST_F(PartitionWithFollowers, ALogThatConfirmsNothingWhileAppendsWaitStandsStill) {
  const auto after = [&](base::Duration span) {
    simulator.run_for(span);
    return partition->stands_still();
  };
  using std::chrono::seconds;
  lead(members({1, 2, 3}));
  EXPECT_FALSE(after(seconds(0)));
  EXPECT_FALSE(after(seconds(60)));
  ASSERT_TRUE(append(0));
  EXPECT_FALSE(after(seconds(1)));
  EXPECT_FALSE(after(seconds(9)));
  log.confirm(4);
  EXPECT_FALSE(after(seconds(1)));
  ASSERT_TRUE(append(1));
  EXPECT_FALSE(after(seconds(1)));
  ASSERT_TRUE(append(2));
  EXPECT_FALSE(after(seconds(8)));
  log.confirm(5);
  EXPECT_FALSE(after(seconds(1)));
  EXPECT_FALSE(after(seconds(9)));
  EXPECT_TRUE(after(seconds(1)));
  log.confirm(6);
  EXPECT_FALSE(after(seconds(1)));
}

TEST_F(PartitionWithFollowers, ListenersAreToldOfAppendsAndOfTheEnd) {
  struct Counting final : LogListener {
    void log_moved() override { ++told; }
    int told = 0;
  } listener;
  lead(members({1, 2}));
  partition->add_listener(listener);
  ASSERT_TRUE(append(0));
  EXPECT_EQ(listener.told, 1);
  log.confirm(4);
  EXPECT_EQ(listener.told, 1);
  log.trim(1);
  log.confirm(4);
  EXPECT_EQ(listener.told, 2);
  partition->close();
  EXPECT_EQ(listener.told, 3);
}

TEST_F(PartitionWithFollowers, AClosedOneFailsEveryone) {
  lead(members({1, 2}));
  const auto all = watch(*append(0), Acks::all);
  const auto leader = watch(*append(1, Acks::leader), Acks::leader);
  partition->close();
  EXPECT_EQ(*all, make_error_code(ReplicationErrc::closed));
  EXPECT_EQ(*leader, make_error_code(ReplicationErrc::closed));
  EXPECT_FALSE(partition->subscribe(member(2), from(3)));
  has(2, 4);
  partition->take_state(state_of(8, members({1})));
}

}  // namespace
}  // namespace mq::replication
