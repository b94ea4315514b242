#include "replication/isr.h"

#include <gtest/gtest.h>

#include "base/mutants.h"
#include "isr_states.h"

namespace mq::replication {
namespace {

using std::chrono::seconds;

/// Broker 1 leads, with followers 2 and 3; registrations are 10 × the broker's id.
class IsrTest : public ::testing::Test {
 protected:
  void lead(std::vector<IsrMember> isr, std::int64_t log_end = 100, std::uint32_t min_isr = 2) {
    own_ = {Offset(log_end), Offset(log_end), model::Durability::disk};
    isr_.emplace(Isr::Setup{member(1),
                            {BrokerId(1), BrokerId(2), BrokerId(3)},
                            state_of(7, std::move(isr), min_isr),
                            Offset(log_end),
                            {seconds(10), 1000}},
                 now_);
  }
  void subscribe(std::int32_t id, std::int64_t has) { subscribe(member(id), has); }
  void subscribe(IsrMember follower, std::int64_t has) {
    const auto subscription = isr_->subscribed(follower, kEpoch, now_);
    ASSERT_TRUE(subscription);
    subscriptions_[follower.broker] = *subscription;
    EXPECT_TRUE(says(follower, kEpoch, has, has));
  }
  bool says(IsrMember follower, LeaderEpoch epoch, std::int64_t appended, std::int64_t durable) {
    const Isr::Report report{follower, subscriptions_[follower.broker], epoch, Offset(appended),
                             Offset(durable)};
    return isr_->progressed(report, own_, now_);
  }
  void report(std::int32_t id, std::int64_t has) { report(id, has, has); }
  void report(std::int32_t id, std::int64_t appended, std::int64_t durable) {
    EXPECT_TRUE(says(member(id), kEpoch, appended, durable));
  }
  void append(std::int64_t records) {
    const Offset before = own_.log_end;
    own_.log_end = own_.confirmed_end = model::advance(before, records);
    isr_->appended(before, own_, now_);
  }
  std::int64_t high_watermark() const {
    const auto found = isr_->high_watermark(own_);
    return found ? found->value() : -1;
  }
  /// Asks; the brokers asked for, empty if nothing is.
  std::vector<IsrMember> ask(std::int64_t high_watermark = 0) {
    const auto asked = isr_->request(
        own_, Offset(high_watermark),
        [this](BrokerId id) -> std::optional<BrokerEpoch> {
          const auto found = registered_.find(id);
          if (found == registered_.end()) return std::nullopt;
          return found->second;
        },
        now_);
    if (!asked) return {};
    EXPECT_EQ(asked->leader_epoch, kEpoch);
    EXPECT_EQ(asked->version, isr_->state().version);
    return asked->isr;
  }
  /// Looks as often as a leader does, without news.
  void pass(base::Duration time) {
    for (const auto until = now_ + time; now_ < until;) {
      now_ += std::min<base::Duration>(seconds(2), until - now_);
      asked_meanwhile_ = ask();
      if (!asked_meanwhile_.empty()) return;
    }
  }

  base::TimePoint now_{seconds(1000)};
  LeaderLog own_;
  std::optional<Isr> isr_;
  std::vector<IsrMember> asked_meanwhile_;
  std::map<BrokerId, std::uint64_t> subscriptions_;
  std::map<BrokerId, BrokerEpoch> registered_ = {{BrokerId(2), BrokerEpoch(20)},
                                                 {BrokerId(3), BrokerEpoch(30)}};
};

TEST_F(IsrTest, HighWatermarkIsTheLowestConfirmedEndOfAllMembers) {
  lead(members({1, 2, 3}));
  EXPECT_EQ(high_watermark(), -1);  // nobody has been heard of
  subscribe(2, 90);
  EXPECT_EQ(high_watermark(), -1);
  subscribe(3, 80);
  EXPECT_EQ(high_watermark(), 80);
  report(3, 95);
  EXPECT_EQ(high_watermark(), 90);
  report(2, 100);
  report(3, 100);
  EXPECT_EQ(high_watermark(), 100);
  own_.confirmed_end = Offset(97);  // its own end counts too
  EXPECT_EQ(high_watermark(), 97);
}

TEST_F(IsrTest, WhoIsNotInTheIsrDoesNotHoldItBack) {
  lead(members({1, 2}));
  subscribe(2, 100);
  subscribe(3, 5);
  EXPECT_EQ(high_watermark(), 100);
}

TEST_F(IsrTest, UnderDiskTheDurableEndCountsUnderMemoryTheLogEnd) {
  lead(members({1, 2}));
  subscribe(2, 0);
  report(2, 100, 60);
  EXPECT_EQ(high_watermark(), 60);
  own_.durability = model::Durability::memory;
  EXPECT_EQ(high_watermark(), 100);
}

TEST_F(IsrTest, BelowMinIsrNothingIsConfirmed) {
  // ISR-7
  lead(members({1}), 100, 2);
  EXPECT_EQ(high_watermark(), -1);
  EXPECT_FALSE(isr_->enough());
  const base::EnabledMutant mutant("min_isr_ignored");
  EXPECT_EQ(high_watermark(), 100);
}

TEST_F(IsrTest, AFetchCountsOnlyUnderTheRegistrationThatTheIsrNames) {
  // ISR-1: broker 2 was registered anew.
  lead(members({1, 2}));
  subscribe({BrokerId(2), BrokerEpoch(21)}, 100);
  EXPECT_EQ(high_watermark(), -1);
  EXPECT_TRUE(isr_->take_state(state_of(8, {member(1), {BrokerId(2), BrokerEpoch(21)}}), now_));
  EXPECT_EQ(high_watermark(), 100);
  // What the earlier one says late is nobody's.
  EXPECT_FALSE(says(member(2), kEpoch, 100, 100));
}

TEST_F(IsrTest, ANewRegistrationBeginsWithNothing) {
  lead(members({1, 2}));
  subscribe(2, 100);
  EXPECT_EQ(high_watermark(), 100);
  EXPECT_TRUE(isr_->subscribed({BrokerId(2), BrokerEpoch(21)}, kEpoch, now_));
  EXPECT_TRUE(isr_->take_state(state_of(8, {member(1), {BrokerId(2), BrokerEpoch(21)}}), now_));
  EXPECT_EQ(high_watermark(), -1);
}

TEST_F(IsrTest, AnotherLeaderEpochDoesNotCount) {
  // ISR-3
  lead(members({1, 2}));
  EXPECT_FALSE(isr_->subscribed(member(2), LeaderEpoch(4), now_));
  subscribe(2, 50);
  EXPECT_FALSE(says(member(2), LeaderEpoch(4), 90, 90));
  EXPECT_FALSE(says(member(2), LeaderEpoch(6), 90, 90));
  EXPECT_EQ(high_watermark(), 50);
  const base::EnabledMutant mutant("older_epoch_fetches_count");
  EXPECT_TRUE(says(member(2), LeaderEpoch(4), 90, 90));
}

TEST_F(IsrTest, OnlyTheNewestSubscriptionCounts) {
  // Its log was damaged and begun anew, over another connection; the first one delivers late.
  lead(members({1, 2}));
  subscribe(2, 50);
  const auto first = subscriptions_[BrokerId(2)];
  subscribe(2, 10);
  subscriptions_[BrokerId(2)] = first;
  EXPECT_FALSE(says(member(2), kEpoch, 60, 60));
  EXPECT_EQ(high_watermark(), 10);
}

TEST_F(IsrTest, AStrangerDoesNotCount) {
  lead(members({1, 2}));
  EXPECT_FALSE(isr_->subscribed(member(4), kEpoch, now_));
  EXPECT_FALSE(says(member(4), kEpoch, 9, 9));
}

TEST_F(IsrTest, WhoHasCaughtUpIsAskedFor) {
  lead(members({1, 2}));
  subscribe(2, 100);
  EXPECT_TRUE(ask(100).empty());
  subscribe(3, 99);
  EXPECT_FALSE(isr_->somebody_caught_up(own_, Offset(100)));
  EXPECT_TRUE(ask(100).empty());
  report(3, 100);
  EXPECT_TRUE(isr_->somebody_caught_up(own_, Offset(100)));
  EXPECT_EQ(ask(100), members({1, 2, 3}));
  EXPECT_TRUE(ask(100).empty()) << "one at a time";
}

TEST_F(IsrTest, WhoIsAskedForHoldsTheHighWatermarkBackAtOnce) {
  lead(members({1, 2}));
  subscribe(2, 100);
  subscribe(3, 100);
  EXPECT_EQ(ask(100), members({1, 2, 3}));
  append(10);
  report(2, 110);
  EXPECT_EQ(high_watermark(), 100);
  report(3, 104);
  EXPECT_EQ(high_watermark(), 104);
}

TEST_F(IsrTest, GrowthNeedsAllOfTheEpochsBefore) {
  // ISR-4: the high watermark is still far below the log end at the start of the epoch.
  lead(members({1, 2}));
  subscribe(2, 40);
  subscribe(3, 99);
  EXPECT_TRUE(ask(40).empty());
  {
    const base::EnabledMutant mutant("isr_grows_before_epoch_start");
    EXPECT_EQ(ask(40), members({1, 2, 3}));
    isr_->answered();
  }
}

TEST_F(IsrTest, GrowthGoesByTheConfirmedEnd) {
  lead(members({1, 2}));
  subscribe(2, 100);
  subscribe(3, 0);
  report(3, 100, 60);
  EXPECT_TRUE(ask(100).empty());
  const base::EnabledMutant mutant("isr_goes_by_log_end");
  EXPECT_EQ(ask(100), members({1, 2, 3}));
}

TEST_F(IsrTest, GrowthNeedsTheRegistrationThatIsInForce) {
  // ISR-4
  lead(members({1, 2}));
  subscribe(2, 100);
  subscribe(3, 100);
  registered_[BrokerId(3)] = BrokerEpoch(31);
  EXPECT_TRUE(ask(100).empty());
  registered_.erase(BrokerId(3));  // not live
  EXPECT_TRUE(ask(100).empty());
  const base::EnabledMutant mutant("isr_grows_by_any_registration");
  EXPECT_EQ(ask(100), members({1, 2, 3}));
}

TEST_F(IsrTest, AMemberThatRegisteredAnewAndHasAllIsAskedForUnderItsNewRegistration) {
  lead(members({1, 2}));
  const IsrMember anew{BrokerId(2), BrokerEpoch(21)};
  registered_[BrokerId(2)] = BrokerEpoch(21);
  subscribe(anew, 100);
  EXPECT_EQ(ask(100), (std::vector{member(1), anew}));
  // Until that is in force nothing of it counts.
  EXPECT_EQ(high_watermark(), -1);
}

TEST_F(IsrTest, AShrinkCountsOnlyOnceTheStoreHasIt) {
  // ISR-2
  lead(members({1, 2, 3}));
  subscribe(2, 100);
  subscribe(3, 100);
  append(10);
  report(2, 110);
  now_ += seconds(8);
  report(2, 110);
  EXPECT_TRUE(ask().empty());
  now_ += seconds(2);
  EXPECT_EQ(ask(), members({1, 2}));
  EXPECT_EQ(high_watermark(), 100);
  {
    const base::EnabledMutant mutant("isr_shrink_counts_early");
    EXPECT_EQ(high_watermark(), 110);
  }
  isr_->answered();
  EXPECT_EQ(high_watermark(), 100);
  EXPECT_TRUE(isr_->take_state(state_of(8, members({1, 2})), now_));
  EXPECT_EQ(high_watermark(), 110);
}

TEST_F(IsrTest, TheUnionStaysUntilAHigherVersionIsSeen) {
  // ISR-2: the request may still be on its way through a controller that was paused.
  lead(members({1, 2}));
  subscribe(2, 100);
  subscribe(3, 100);
  EXPECT_EQ(ask(100), members({1, 2, 3}));
  append(10);
  report(2, 110);
  isr_->answered();  // timed out
  EXPECT_EQ(high_watermark(), 100);
  EXPECT_FALSE(isr_->take_state(state_of(7, members({1, 2})), now_));  // a read, or a refusal
  EXPECT_EQ(high_watermark(), 100);
  EXPECT_FALSE(isr_->take_state(state_of(6, members({1, 2})), now_));
  EXPECT_EQ(high_watermark(), 100);
  {
    const base::EnabledMutant mutant("isr_union_dropped_early");
    EXPECT_FALSE(isr_->take_state(state_of(7, members({1, 2})), now_));
    EXPECT_EQ(high_watermark(), 110);
  }
}

TEST_F(IsrTest, AnotherChangeOfTheStateSettlesIt) {
  lead(members({1, 2}));
  subscribe(2, 100);
  subscribe(3, 100);
  EXPECT_EQ(ask(100), members({1, 2, 3}));
  append(10);
  report(2, 110);
  isr_->answered();
  EXPECT_TRUE(isr_->take_state(state_of(8, members({1, 2}), 1), now_));
  EXPECT_EQ(high_watermark(), 110);
  EXPECT_EQ(isr_->state().min_isr, 1u);
}

TEST_F(IsrTest, AStateOfAnotherLeaderEpochIsNotTaken) {
  lead(members({1, 2}));
  IsrState other = state_of(8, members({1}));
  other.leader_epoch = LeaderEpoch(6);
  EXPECT_FALSE(isr_->take_state(other, now_));
  EXPECT_EQ(isr_->state().isr, members({1, 2}));
}

TEST_F(IsrTest, WhatIsNotWantedAnyMoreIsGivenUpByAskingForWhatThereIs) {
  lead(members({1, 2}));
  subscribe(2, 100);
  subscribe(3, 100);
  EXPECT_EQ(ask(100), members({1, 2, 3}));
  isr_->answered();  // refused: broker 3 is about to stop
  registered_.erase(BrokerId(3));
  EXPECT_EQ(ask(100), members({1, 2}));
  isr_->answered();
  EXPECT_TRUE(isr_->take_state(state_of(8, members({1, 2})), now_));
  EXPECT_TRUE(ask(100).empty());
}

TEST_F(IsrTest, ALateAnswerToARequestThatIsRepeatedChangesNothing) {
  lead(members({1, 2}));
  subscribe(2, 100);
  subscribe(3, 100);
  EXPECT_EQ(ask(100), members({1, 2, 3}));
  isr_->answered();
  EXPECT_EQ(ask(100), members({1, 2, 3}));  // it is still wanted
  EXPECT_TRUE(isr_->take_state(state_of(8, members({1, 2, 3})), now_));
  isr_->answered();
  EXPECT_FALSE(isr_->take_state(state_of(8, members({1, 2, 3})), now_));
  EXPECT_TRUE(ask(100).empty());
}

TEST_F(IsrTest, WhoIsSilentLeaves) {
  lead(members({1, 2, 3}));
  subscribe(2, 100);
  now_ += seconds(1);
  append(1);
  report(2, 101);
  pass(seconds(8));
  EXPECT_TRUE(asked_meanwhile_.empty());
  pass(seconds(2));
  EXPECT_EQ(asked_meanwhile_, members({1, 2}));
}

TEST_F(IsrTest, AQuietPartitionThrowsNobodyOut) {
  lead(members({1, 2, 3}));
  subscribe(2, 100);
  subscribe(3, 100);
  pass(seconds(600));
  EXPECT_TRUE(asked_meanwhile_.empty());
  // And the first append gives everyone the whole time.
  append(1);
  pass(seconds(9));
  EXPECT_TRUE(asked_meanwhile_.empty());
  report(2, 101);
  report(3, 101);
  pass(seconds(60));
  EXPECT_TRUE(asked_meanwhile_.empty());
}

TEST_F(IsrTest, AFollowerThatIsAlwaysALittleBehindStays) {
  lead(members({1, 2}));
  subscribe(2, 100);
  for (int round = 0; round < 3000; ++round) {
    append(50);
    now_ += std::chrono::milliseconds(20);
    report(2, own_.log_end.value() - 120);  // never has all
    ASSERT_TRUE(ask().empty()) << round;
  }
}

TEST_F(IsrTest, AFollowerThatFallsBackMoreAndMoreLeaves) {
  lead(members({1, 2}));
  subscribe(2, 100);
  std::int64_t has = 100;
  const auto begin = now_;
  std::vector<IsrMember> asked;
  while (asked.empty() && now_ - begin < seconds(120)) {
    append(50);
    now_ += std::chrono::milliseconds(20);
    report(2, has += 10);
    asked = ask();
  }
  EXPECT_EQ(asked, members({1}));
  EXPECT_LT(now_ - begin, seconds(40));
}

TEST_F(IsrTest, ABurstThrowsNobodyOutWhoMakesProgress) {
  lead(members({1, 2}));
  subscribe(2, 100);
  append(1'000'000);
  for (int second = 0; second < 9; ++second) {
    now_ += seconds(1);
    report(2, 100 + second + 1);
    EXPECT_TRUE(ask().empty()) << second;
  }
}

TEST_F(IsrTest, FarBehindAndWithoutProgressLeavesEarly) {
  lead(members({1, 2}));
  subscribe(2, 100);
  append(1001);
  now_ += seconds(4);
  EXPECT_TRUE(ask().empty());
  now_ += seconds(1);
  EXPECT_EQ(ask(), members({1}));
}

TEST_F(IsrTest, ALeaderThatWasPausedHearsItsFollowersFirst) {
  lead(members({1, 2, 3}));
  subscribe(2, 100);
  subscribe(3, 100);
  append(1);
  EXPECT_TRUE(ask().empty());
  now_ += seconds(60);
  EXPECT_TRUE(ask().empty());
  now_ += seconds(4);
  report(2, 101);
  EXPECT_TRUE(ask().empty());
  now_ += seconds(1);
  EXPECT_EQ(ask(), members({1, 2}));
}

TEST_F(IsrTest, TheLeaderNeverLeavesItself) {
  // ISR-5
  lead(members({1, 2}), 100, 1);
  pass(seconds(20));
  EXPECT_EQ(asked_meanwhile_, members({1}));
  isr_->answered();
  EXPECT_TRUE(isr_->take_state(state_of(8, members({1}), 1), now_));
  EXPECT_EQ(high_watermark(), 100);
  pass(seconds(60));
  EXPECT_TRUE(asked_meanwhile_.size() <= 1);
}

TEST_F(IsrTest, WhoeverSomebodyElsePutThereGetsItsTime) {
  lead(members({1, 2}));
  subscribe(2, 100);
  pass(seconds(60));
  EXPECT_TRUE(isr_->take_state(state_of(8, members({1, 2, 3})), now_));
  pass(seconds(8));
  EXPECT_TRUE(asked_meanwhile_.empty());
  pass(seconds(4));
  EXPECT_EQ(asked_meanwhile_, members({1, 2}));
}

TEST_F(IsrTest, ASwingOfDurabilityIsFollowed) {
  lead(members({1, 2}));
  subscribe(2, 0);
  own_.durability = model::Durability::memory;
  report(2, 100, 10);
  EXPECT_EQ(high_watermark(), 100);
  own_.durability = model::Durability::disk;
  EXPECT_EQ(high_watermark(), 10);  // whoever takes it keeps what it had
}

}  // namespace
}  // namespace mq::replication
