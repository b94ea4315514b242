#include "controller/elections.h"

#include <gtest/gtest.h>

#include "base/mutants.h"
#include "unit/controller/election_states.h"

namespace mq::controller {
namespace {

// One replica

// PAR-4: whatever was there before, the next start of a leader is above it.
TEST(SoleReplica, LeadsAboveTheStoredEpochAndAboveItsLog) {
  EXPECT_EQ(text(sole_reports(sole(kNobody, 7, 3), 4, report(5))), "1@8 1:4 |  | ");
  EXPECT_EQ(text(sole_reports(sole(kNobody, 7, 3), 4, report(20))), "1@21 1:4 |  | ");
}

TEST(SoleReplica, ALeaderThatReportsAgainStaysAsItIs) {
  EXPECT_FALSE(sole_reports(sole(kOne, 7, 4), 4, report(7)));
  EXPECT_FALSE(sole_reports(sole(kOne, 7, 4), 4, report(-1)));
}

// The metadata came from a backup: the log has seen more.
TEST(SoleReplica, ALeaderWhoseLogIsAheadGetsAnEpochAboveIt) {
  EXPECT_EQ(text(sole_reports(sole(kOne, 7, 4), 4, report(9))), "1@10 1:4 |  | ");
}

TEST(SoleReplica, ANewRegistrationIsANewStart) {
  EXPECT_EQ(text(sole_reports(sole(kOne, 7, 4), 5, report(7))), "1@8 1:5 |  | ");
}

TEST(SoleReplica, WhoKeepsNoReplicaLeadsNothing) {
  EXPECT_FALSE(with_reported_replica(sole(kNobody, 7, 3), kSole, live({member(2, 4)}), kTwo,
                                     BrokerEpoch(4), report(50)));
}

TEST(SoleReplica, LeadsWhateverItHasLostAndAlsoWhenItFailed) {
  EXPECT_EQ(text(sole_reports(sole(kNobody, 7, 3), 4, report(5, 4))), "1@8 1:4 |  | ");
  EXPECT_EQ(text(sole_reports(sole(kNobody, 7, 3), 4, failure())), "1@8 1:4 |  | ");
}

// Until somebody has seen it.
TEST(SoleReplica, ThatMayHaveLostRecordsIsMarked) {
  const auto lost = sole_reports(sole(kNobody, 7, 3), 4, report(5, 4));
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->loss_epoch, model::LeaderEpoch(8));
  EXPECT_EQ(sole_reports(sole(kNobody, 7, 3), 4, report(5))->loss_epoch, model::LeaderEpoch());
  EXPECT_EQ(sole_reports(sole(kNobody, 7, 3), 4, failure())->loss_epoch, model::LeaderEpoch());
  // It stays, whoever leads and whatever is found later.
  const auto gone = settled(*lost, kSole, {});
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->loss_epoch, model::LeaderEpoch(8));
  EXPECT_EQ(sole_reports(*gone, 5, report(8, 4))->loss_epoch, model::LeaderEpoch(8));
}

TEST(SoleReplica, AtTheEndOfTheNumbersNobodyLeads) {
  EXPECT_FALSE(sole_reports(sole(kNobody, 7, 3), 4, report(kMax)));
  EXPECT_FALSE(sole_reports(sole(kNobody, kMax, 3), 4, report(1)));
}

TEST(SoleReplica, ThatIsLostStaysInTheIsr) {
  EXPECT_EQ(text(settled(sole(kOne, 7, 1), kSole, live({member(1, 2)}))), "-1@8 1:1 |  | ");
  EXPECT_EQ(text(settled(sole(kOne, 7, 1), kSole, {})), "-1@8 1:1 |  | ");
  EXPECT_FALSE(settled(sole(kOne, 7, 2), kSole, live({member(1, 2)})));
  EXPECT_FALSE(settled(sole(kNobody, 7, 1), kSole, live({member(1, 2)})));
}

// Brokers that come and go

TEST(Settled, WhileAllLiveNothingChanges) {
  EXPECT_FALSE(settled(state(kOne, 5, kAll), kReplicas, live(kAll)));
}

// CTL-7
TEST(Settled, ALostLeaderIsFollowedByTheFirstInTheIsr) {
  const auto brokers = live({member(2, 20), member(3, 30)});
  EXPECT_EQ(text(settled(state(kOne, 5, kAll), kReplicas, brokers)), "2@6 2:20 3:30 |  | ");
  EXPECT_EQ(text(settled(state(kOne, 5, {member(1, 10), member(3, 30)}), kReplicas, brokers)),
            "3@6 3:30 | 1:10 | ");
}

// CTL-7: it has another registration, so it is the loss of a leader like any other.
TEST(Settled, ALeaderThatRegisteredAnewIsLost) {
  EXPECT_EQ(text(settled(state(kOne, 5, kAll), kReplicas,
                         live({member(1, 11), member(2, 20), member(3, 30)}))),
            "2@6 2:20 3:30 |  | ");
}

TEST(Settled, LostFollowersLeaveTheIsrInTheSameEpoch) {
  EXPECT_EQ(text(settled(state(kOne, 5, kAll), kReplicas, live({member(1, 10), member(3, 30)}))),
            "1@5 1:10 3:30 |  | ");
}

// The rest of them is below min_isr, so all that was confirmed is with those that leave as well.
TEST(Settled, WhoLeavesAnIsrThatGetsTooSmallGoesToTheElr) {
  EXPECT_EQ(text(settled(state(kOne, 5, kAll), kReplicas, live({member(1, 10)}))),
            "1@5 1:10 | 2:20 3:30 | ");
  const auto two = state(kOne, 5, {member(1, 10), member(2, 20)}, {}, 2);
  EXPECT_EQ(text(settled(two, kReplicas, live({member(1, 10)}))), "1@5 1:10 | 2:20 | ");
}

TEST(Settled, WithoutAnybodyAliveAllStayForWhoeverReturnsFirst) {
  const auto lost = settled(state(kTwo, 5, kAll), kReplicas, {});
  EXPECT_EQ(text(lost), "-1@6 1:10 2:20 3:30 |  | ");
  EXPECT_FALSE(settled(*lost, kReplicas, live({member(1, 11), member(2, 21)})));
}

TEST(Settled, WhereNobodyInTheIsrLivesTheElrIsAsked) {
  const auto before = state(kOne, 5, {member(1, 10)}, {member(2, 20), member(3, 30)});
  EXPECT_EQ(text(settled(before, kReplicas, live({member(2, 21), member(3, 30)}))),
            "3@6 3:30 | 1:10 2:20 | ");
}

// R11 of replicated logs: never a leader outside of both.
TEST(Settled, NobodyElseIsElected) {
  const auto before = state(kOne, 5, {member(1, 10)}, {member(2, 20)});
  EXPECT_EQ(text(settled(before, kReplicas, live({member(3, 30), member(2, 21)}))),
            "-1@6 1:10 | 2:20 | ");
}

TEST(Settled, AtTheEndOfTheNumbersNobodyIsElected) {
  EXPECT_FALSE(settled(state(kNobody, kMax, kAll), kReplicas, live(kAll)));
}

TEST(Settled, ABrokerThatIsAboutToStopHandsOver) {
  auto brokers = live(kAll);
  brokers.add(kOne, BrokerEpoch(10), true);
  EXPECT_EQ(text(settled(state(kOne, 5, kAll), kReplicas, brokers)), "2@6 2:20 3:30 |  | ");
  EXPECT_EQ(text(settled(state(kTwo, 5, kAll), kReplicas, brokers)), "2@5 2:20 3:30 |  | ");
  // Nobody can take its place: it leads until it is gone, and nobody elects it afterwards.
  const auto alone = state(kOne, 5, {member(1, 10)}, {member(2, 19)});
  EXPECT_FALSE(settled(alone, kReplicas, brokers));
  EXPECT_FALSE(settled(state(kNobody, 5, {member(1, 10)}), kReplicas, brokers));
}

// Reports

TEST(Reported, AMemberThatReturnsIntactIsElected) {
  const auto before = state(kNobody, 5, kAll);
  const auto brokers = live({member(3, 31)});
  EXPECT_EQ(text(reports(before, brokers, 3, 31, report(5, 30))), "3@6 3:31 | 1:10 2:20 | ");
  EXPECT_EQ(text(reports(before, brokers, 3, 31, report(5, 0))), "3@6 3:31 | 1:10 2:20 | ");
}

// R9 of replicated logs
TEST(Reported, AMemberThatMayHaveLostRecordsIsNot) {
  const auto brokers = live({member(3, 31)});
  const auto before = state(kNobody, 5, {member(1, 10), member(3, 30)});
  EXPECT_EQ(text(reports(before, brokers, 3, 31, report(5, 31))), "-1@5 1:10 |  | 3:30");
  // Nothing known is as bad.
  EXPECT_EQ(text(reports(before, brokers, 3, 31, report(5, -1))), "-1@5 1:10 |  | 3:30");
  const auto in_elr = state(kNobody, 5, {member(1, 10)}, {member(3, 30)});
  EXPECT_EQ(text(reports(in_elr, brokers, 3, 31, report(5, 31))), "-1@5 1:10 |  | 3:30");
}

TEST(Reported, TheLastOneThatIsKnownIsElectedWhateverItHasLost) {
  const auto brokers = live({member(1, 11)});
  EXPECT_EQ(text(reports(state(kNobody, 5, {member(1, 10)}), brokers, 1, 11, report(5, 11))),
            "1@6 1:11 |  | ");
  EXPECT_EQ(reports(state(kNobody, 5, {member(1, 10)}), brokers, 1, 11, report(5, 11))->loss_epoch,
            model::LeaderEpoch(6));
  auto others = state(kNobody, 5, {member(1, 10)});
  others.last_known_elr = {member(2, 20)};
  EXPECT_EQ(text(reports(others, brokers, 1, 11, report(5, 11))), "-1@5  |  | 2:20 1:10");
}

TEST(Reported, SomebodyInTheElrTakesThePlaceOfAnIsrThatHasLostRecords) {
  const auto before = state(kNobody, 5, {member(1, 10)}, {member(2, 20)});
  EXPECT_EQ(text(reports(before, live({member(1, 11), member(2, 20)}), 1, 11, report(5, 11))),
            "2@6 2:20 |  | 1:10");
}

TEST(Reported, AFollowerThatReturnsIntactIsInTheElrUnderItsNewRegistration) {
  const auto before = state(kOne, 5, {member(1, 10)}, {member(2, 20)});
  const auto brokers = live({member(1, 10), member(2, 21)});
  EXPECT_EQ(text(reports(before, brokers, 2, 21, report(5, 20))), "1@5 1:10 | 2:21 | ");
  EXPECT_FALSE(reports(state(kOne, 5, {member(1, 10)}), brokers, 2, 21, report(5, 20)));
}

// Rule of the new start: whatever it says, it does not go on in the epoch it had.
TEST(Reported, ALeaderUnderANewRegistrationGetsANewEpoch) {
  const auto before = state(kOne, 5, {member(1, 10)});
  EXPECT_EQ(text(reports(before, live({member(1, 11)}), 1, 11, report(5, 10))), "1@7 1:11 |  | ");
}

TEST(Reported, AFailedLeaderIsFollowedByAnotherMember) {
  const auto after = reports(state(kOne, 5, kAll), live(kAll), 1, 10, failure());
  EXPECT_EQ(text(after), "2@6 2:20 3:30 |  | ");
  const auto elr = state(kOne, 5, {member(1, 10)}, {member(2, 20)});
  EXPECT_EQ(text(reports(elr, live(kAll), 1, 10, failure())), "2@6 2:20 | 1:9 | ");
}

TEST(Reported, AFailedFollowerLeavesTheIsr) {
  EXPECT_EQ(text(reports(state(kOne, 5, kAll), live(kAll), 2, 20, failure())),
            "1@5 1:10 3:30 |  | ");
}

// REP-5: whatever its leader has heard of it is of an earlier epoch then.
TEST(Reported, TheEpochThatKnowsADamagedFollowerEndsWithItsFailure) {
  auto damaged = failure();
  damaged.last_leader_epoch = LeaderEpoch(5);
  const auto before = state(kOne, 5, kAll);
  const auto after = reports(before, live(kAll), 2, 20, damaged);
  EXPECT_EQ(text(after), "1@6 1:10 3:30 |  | ");
  EXPECT_FALSE(reports(*after, live(kAll), 2, 20, damaged)) << "told again";
  const auto outside = state(kOne, 5, {member(1, 10), member(3, 30)});
  EXPECT_EQ(text(reports(outside, live(kAll), 2, 20, damaged)), "1@6 1:10 3:30 |  | ");
  const auto in_elr = state(kOne, 5, {member(1, 10)}, {member(2, 20)});
  EXPECT_EQ(text(reports(in_elr, live(kAll), 2, 20, damaged)), "1@6 1:10 | 2:19 | ");
  const base::EnabledMutant mutant("replaced_in_the_same_epoch");
  EXPECT_EQ(text(reports(before, live(kAll), 2, 20, damaged)), "1@5 1:10 3:30 |  | ");
}

TEST(Reported, WithTheLeaderTheEpochEndsOnce) {
  auto damaged = failure();
  damaged.last_leader_epoch = LeaderEpoch(5);
  EXPECT_EQ(text(reports(state(kOne, 5, kAll), live(kAll), 1, 10, damaged)), "2@6 2:20 3:30 |  | ");
  EXPECT_EQ(text(reports(state(kOne, 5, {member(1, 10)}), live(kAll), 1, 10, damaged)),
            "-1@6 1:9 |  | ");
}

TEST(Reported, AFailedReplicaThatIsTheLastStaysAndIsNotElected) {
  const auto after = reports(state(kOne, 5, {member(1, 10)}), live(kAll), 1, 10, failure());
  EXPECT_EQ(text(after), "-1@6 1:9 |  | ");
  EXPECT_FALSE(settled(*after, kReplicas, live(kAll)));
  EXPECT_FALSE(reports(*after, live(kAll), 1, 10, failure()));
  // It is well again: at once, or under its next registration.
  EXPECT_EQ(text(reports(*after, live(kAll), 1, 10, report(5, 3))), "1@7 1:10 |  | ");
  EXPECT_EQ(text(reports(*after, live({member(1, 11)}), 1, 11, report(5, 3))), "1@7 1:11 |  | ");
}

TEST(Reported, ALogThatIsAheadRaisesTheEpochOfWhoeverLeads) {
  EXPECT_EQ(text(reports(state(kOne, 5, kAll), live(kAll), 1, 10, report(9))),
            "1@10 1:10 2:20 3:30 |  | ");
  EXPECT_EQ(text(reports(state(kOne, 5, kAll), live(kAll), 2, 20, report(9))),
            "1@10 1:10 2:20 3:30 |  | ");
  EXPECT_EQ(
      text(reports(state(kNobody, 5, {member(1, 10)}), live({member(2, 20)}), 2, 20, report(9))),
      "-1@10 1:10 |  | ");
}

TEST(Reported, WhatIsKnownAlreadyChangesNothing) {
  EXPECT_FALSE(reports(state(kOne, 5, kAll), live(kAll), 1, 10, report(5)));
  EXPECT_FALSE(reports(state(kOne, 5, kAll), live(kAll), 2, 20, report(5)));
  EXPECT_FALSE(reports(state(kOne, 5, kAll), live(kAll), 4, 20, report(50)));
}

// Leaders that cannot go on as they are

TEST(Resigns, AnotherOneOfIsrOrElrLeadsAndItLeavesTheIsrThatCanSpareIt) {
  const auto resigned = as(protocol::ReplicaState::resigns, 5);
  EXPECT_EQ(text(reports(state(kOne, 5, kAll), live(kAll), 1, 10, resigned)),
            "2@6 2:20 3:30 |  | ");
  EXPECT_EQ(
      text(reports(state(kOne, 5, {member(1, 10)}, {member(3, 30)}), live(kAll), 1, 10, resigned)),
      "3@6 1:10 3:30 |  | ");
  const std::vector<model::IsrMember> two{member(1, 10), member(2, 20)};
  EXPECT_EQ(text(reports(state(kOne, 5, two), live(kAll), 1, 10, resigned)), "2@6 1:10 2:20 |  | ");
}

TEST(Resigns, WhoIsNoBetterIsNotElected) {
  const auto resigned = as(protocol::ReplicaState::resigns, 5);
  const std::vector<model::IsrMember> two{member(1, 10), member(2, 20)};
  const auto resign = [&](const PartitionState& now, const std::vector<BrokerId>& unfit) {
    return with_reported_replica(now, kReplicas, live(kAll), kOne, BrokerEpoch(10), resigned,
                                 unfit);
  };
  EXPECT_FALSE(resign(state(kOne, 5, two), {kTwo}));
  EXPECT_EQ(text(resign(state(kOne, 5, kAll), {kTwo})), "3@6 2:20 3:30 |  | ");
}

TEST(Resigns, WhereNobodyElseCanLeadItGoesOn) {
  const auto resigned = as(protocol::ReplicaState::resigns, 5);
  EXPECT_FALSE(reports(state(kOne, 5, {member(1, 10)}), live(kAll), 1, 10, resigned));
  EXPECT_FALSE(reports(state(kOne, 5, {member(1, 10), member(2, 20)}), live({member(1, 10)}), 1, 10,
                       resigned)
                   .value_or(PartitionState())
                   .leader == BrokerId());
  EXPECT_FALSE(reports(state(kTwo, 5, kAll), live(kAll), 1, 10, resigned)) << "it does not lead";
  EXPECT_FALSE(sole_reports(sole(kOne, 7, 4), 4, as(protocol::ReplicaState::resigns, 7)));
}

// It was shown as no leader for a while, and then as leader of the same epoch.
TEST(NeedsEpoch, ALaterOneIsGiven) {
  const auto needs = as(protocol::ReplicaState::needs_epoch, 7);
  EXPECT_EQ(text(sole_reports(sole(kOne, 7, 4), 4, needs)), "1@8 1:4 |  | ");
  EXPECT_FALSE(sole_reports(sole(kOne, 8, 4), 4, needs)) << "it has one by now";
  const auto next = reports(state(kOne, 7, kAll), live(kAll), 1, 10, needs);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->leader, kOne);
  EXPECT_GT(next->leader_epoch, LeaderEpoch(7));
  EXPECT_EQ(next->isr, Members(kAll));
}

}  // namespace
}  // namespace mq::controller
