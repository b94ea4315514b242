#include "controller/elections.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/mutants.h"

namespace mq::controller {
namespace {

using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using model::LeaderEpoch;
using protocol::WireError;
using Members = std::vector<IsrMember>;

const BrokerId kNobody;
const BrokerId kOne(1);
const BrokerId kTwo(2);
const BrokerId kThree(3);
const std::vector<BrokerId> kSole{kOne};
const std::vector<BrokerId> kReplicas{kOne, kTwo, kThree};
constexpr auto kMax = std::numeric_limits<std::int32_t>::max();

IsrMember member(std::int32_t broker, std::int64_t epoch) {
  return {BrokerId(broker), BrokerEpoch(epoch)};
}

/// Brokers that live, each under a registration.
LiveBrokers live(const Members& members) {
  LiveBrokers brokers;
  for (const auto& one : members) brokers.add(one.broker, one.epoch);
  return brokers;
}

PartitionState state(BrokerId leader, std::int32_t leader_epoch, Members isr, Members elr = {},
                     std::uint32_t min_isr = 2) {
  PartitionState value;
  value.leader = leader;
  value.leader_epoch = LeaderEpoch(leader_epoch);
  value.isr = std::move(isr);
  value.elr = std::move(elr);
  value.min_isr = min_isr;
  return value;
}
PartitionState sole(BrokerId leader, std::int32_t leader_epoch, std::int64_t isr_epoch) {
  return state(leader, leader_epoch, {member(1, isr_epoch)}, {}, 1);
}

protocol::ReplicaReport report(std::int32_t last_leader_epoch, std::int64_t intact_since = 0) {
  protocol::ReplicaReport report;
  report.last_leader_epoch = LeaderEpoch(last_leader_epoch);
  report.intact_since = BrokerEpoch(intact_since);
  return report;
}
protocol::ReplicaReport failure() {
  auto failed = report(-1, -1);
  failed.state = protocol::ReplicaState::failed;
  return failed;
}

std::optional<PartitionState> sole_reports(const PartitionState& before, std::int64_t epoch,
                                           const protocol::ReplicaReport& report) {
  return with_reported_replica(before, kSole, live({member(1, epoch)}), kOne, BrokerEpoch(epoch),
                               report);
}

std::string text(const Members& members) {
  std::string all;
  for (const auto& one : members)
    all += fmt::format("{}{}:{}", all.empty() ? "" : " ", one.broker, one.epoch);
  return all;
}
/// "leader@epoch isr | elr | last known elr"
std::string text(const PartitionState& state) {
  return fmt::format("{}@{} {} | {} | {}", state.leader, state.leader_epoch, text(state.isr),
                     text(state.elr), text(state.last_known_elr));
}
std::string text(const std::optional<PartitionState>& state) {
  return state ? text(*state) : "as before";
}

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

const Members kAll{member(1, 10), member(2, 20), member(3, 30)};

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

std::optional<PartitionState> reports(const PartitionState& before, const LiveBrokers& brokers,
                                      std::int32_t broker, std::int64_t epoch,
                                      const protocol::ReplicaReport& report) {
  return with_reported_replica(before, kReplicas, brokers, BrokerId(broker), BrokerEpoch(epoch),
                               report);
}

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

// What nobody can be waited for

TEST(Remains, TheOneThatHasMostLeadsWhenAllThatAreKnownAreBack) {
  auto before = state(kNobody, 5, {});
  before.last_known_elr = {member(2, 20), member(1, 10)};
  const auto partition = model::PartitionId{};
  const auto of = [](std::int32_t broker, std::int64_t epoch, std::int32_t last, std::int64_t end) {
    return Remains{member(broker, epoch), LeaderEpoch(last), model::Offset(end)};
  };
  const auto brokers = live({member(1, 11), member(2, 21), member(3, 31)});
  EXPECT_EQ(text(with_best_remains(before, brokers, partition,
                                   {of(1, 11, 4, 90), of(2, 21, 5, 70), of(3, 31, 5, 60)})),
            "2@6 2:21 |  | ");
  EXPECT_EQ(text(with_best_remains(before, brokers, partition,
                                   {of(1, 11, 5, 90), of(2, 21, 5, 70), of(3, 31, 5, 95)})),
            "3@6 3:31 |  | ");
  const auto lossy =
      with_best_remains(before, brokers, partition, {of(1, 11, 9, 90), of(2, 21, 5, 70)});
  EXPECT_EQ(text(lossy), "1@10 1:11 |  | ");
  EXPECT_EQ(lossy->loss_epoch, LeaderEpoch(10));
  // Somebody may still have more: one that has not reported, or is away, or may be elected.
  EXPECT_FALSE(with_best_remains(before, brokers, partition, {of(1, 11, 9, 90), of(3, 31, 5, 70)}));
  EXPECT_FALSE(with_best_remains(before, live({member(1, 11)}), partition,
                                 {of(1, 11, 9, 90), of(2, 21, 5, 70)}));
  const auto all = {of(1, 11, 5, 90), of(2, 21, 5, 70), of(3, 31, 5, 60)};
  before.elr = {member(3, 30)};
  EXPECT_FALSE(with_best_remains(before, brokers, partition, all));
}

TEST(Unclean, WhoHasMostOfThoseThatAreThereLeads) {
  const auto before = state(kNobody, 5, {member(1, 10)}, {}, 1);
  const auto partition = model::PartitionId{};
  const auto of = [](std::int32_t broker, std::int64_t epoch, std::int32_t last, std::int64_t end,
                     std::int32_t reported_in = 5) {
    return Remains{member(broker, epoch), LeaderEpoch(last), model::Offset(end),
                   LeaderEpoch(reported_in)};
  };
  const auto brokers = live({member(2, 21), member(3, 31), member(4, 41)});
  const auto elect = [&](const PartitionState& now, const LiveBrokers& alive,
                         const std::vector<Remains>& remains) {
    return with_unclean_leader(now, kReplicas, alive, partition, remains);
  };
  auto next = elect(before, brokers, {of(2, 21, 4, 90), of(3, 31, 5, 70)});
  EXPECT_EQ(text(next), "3@6 3:31 |  | ");
  EXPECT_EQ(next->loss_epoch, LeaderEpoch(6));
  EXPECT_EQ(next->loss_start, model::Offset(70));
  // What it has above its high watermark may be something that nobody confirmed.
  auto tail = of(3, 31, 5, 70);
  tail.high_watermark = model::Offset(65);
  EXPECT_EQ(elect(before, brokers, {tail})->loss_start, model::Offset(65));
  {
    const base::EnabledMutant mutant("loss_told_from_the_end");
    EXPECT_EQ(elect(before, brokers, {tail})->loss_start, model::Offset(70));
  }
  // Nobody of ISR and ELR counts as complete any more, also below min_isr.
  auto elr = state(kNobody, 5, {member(1, 10)}, {member(3, 29)});
  EXPECT_EQ(text(elect(elr, brokers, {of(2, 21, 4, 90)})), "2@6 2:21 |  | ");
  // Whoever is no replica, is gone, or has said something before the last leader went only.
  EXPECT_FALSE(elect(before, brokers, {of(4, 41, 5, 90)}));
  EXPECT_FALSE(elect(before, brokers, {of(2, 20, 5, 90)}));
  EXPECT_FALSE(elect(before, brokers, {of(2, 21, 5, 90, 4)}));
  EXPECT_FALSE(elect(before, brokers, {}));
  // Not while somebody leads, or can.
  EXPECT_FALSE(elect(state(kOne, 5, {member(1, 10)}), brokers, {of(2, 21, 5, 90)}));
  EXPECT_FALSE(elect(before, live({member(1, 10), member(2, 21)}), {of(2, 21, 5, 90)}));
}

TEST(Unclean, WhoHadMoreSaysHowMuchIsLost) {
  auto lossy = state(kTwo, 6, {member(2, 21)}, {}, 1);
  lossy.loss_epoch = LeaderEpoch(6);
  lossy.loss_start = model::Offset(70);
  auto had_more = report(5);
  had_more.log_end_offset = model::Offset(90);
  const auto brokers = live({member(1, 11), member(2, 21)});
  const auto said = reports(lossy, brokers, 1, 11, had_more);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->loss_end, model::Offset(90));
  EXPECT_FALSE(reports(*said, brokers, 1, 11, had_more));
  had_more.log_end_offset = model::Offset(80);
  EXPECT_FALSE(reports(*said, brokers, 1, 11, had_more));
  had_more.last_leader_epoch = LeaderEpoch(6);
  had_more.log_end_offset = model::Offset(100);
  EXPECT_FALSE(reports(*said, brokers, 1, 11, had_more)) << "these came later";
  had_more.last_leader_epoch = LeaderEpoch(5);
  ASSERT_TRUE(reports(*said, brokers, 1, 11, had_more));
  const base::EnabledMutant mutant("lost_end_not_noted");
  EXPECT_FALSE(reports(*said, brokers, 1, 11, had_more));
}

// What an operator may give up

TEST(DespiteLoss, WhoeverIsChosenLeadsAloneAndSaysLaterWhatItHas) {
  const auto before = state(kNobody, 5, {member(1, 9)}, {member(3, 30)});
  const auto brokers = live({member(2, 21), member(3, 31)});
  auto chosen = with_leader_despite_loss(before, kReplicas, brokers, member(2, 21));
  ASSERT_TRUE(chosen.state) << chosen.refusal;
  EXPECT_EQ(text(chosen.state), "2@6 2:21 |  | ");
  EXPECT_EQ(chosen.state->loss_epoch, LeaderEpoch(6));
  EXPECT_EQ(chosen.state->loss_start, model::Offset());
  // It could not open its log yet, or reports what is left of it.
  EXPECT_FALSE(reports(*chosen.state, brokers, 3, 31, report(4)));
  auto has = report(6, 21);
  has.log_end_offset = model::Offset(40);
  const auto said = reports(*chosen.state, brokers, 2, 21, has);
  ASSERT_TRUE(said);
  EXPECT_EQ(text(said), "2@6 2:21 |  | ");
  EXPECT_EQ(said->loss_start, model::Offset(40));
  has.log_end_offset = model::Offset(50);
  EXPECT_FALSE(reports(*said, brokers, 2, 21, has)) << "it has grown since";
  auto had_more = report(5);
  had_more.log_end_offset = model::Offset(90);
  EXPECT_EQ(reports(*said, brokers, 3, 31, had_more)->loss_end, model::Offset(90));
  // Another one can be chosen where that one is of no use.
  const auto failed = reports(*chosen.state, brokers, 2, 21, failure());
  EXPECT_EQ(text(failed), "-1@7 2:20 |  | ");
  EXPECT_EQ(text(with_leader_despite_loss(*failed, kReplicas, brokers, member(3, 31)).state),
            "3@8 3:31 |  | ");
}

TEST(DespiteLoss, TheOnlyReplicaThatCannotBeServedBeginsAnew) {
  const auto brokers = live({member(1, 4)});
  const auto failed = sole_reports(sole(kNobody, 7, 3), 4, failure());
  EXPECT_EQ(text(failed), "1@8 1:4 |  | ");
  const auto chosen = with_leader_despite_loss(*failed, kSole, brokers, member(1, 4), kSole);
  EXPECT_EQ(text(chosen.state), "1@9 1:4 |  | ");
  EXPECT_EQ(chosen.state->loss_epoch, LeaderEpoch(9));
  auto has = report(9, 4);
  has.log_end_offset = model::Offset(40);
  has.high_watermark = model::Offset(10);
  EXPECT_EQ(sole_reports(*chosen.state, 4, has)->loss_start, model::Offset(40));
}

// Nobody in sync can give out what is damaged.
TEST(DespiteLoss, ALeaderThatIsDamagedGivesWayWhereNobodyIsBetter) {
  const auto led = state(kTwo, 5, {member(2, 20), member(3, 30)});
  const auto choose = [&](IsrMember chosen, const std::vector<BrokerId>& damaged) {
    return with_leader_despite_loss(led, kReplicas, live(kAll), chosen, damaged);
  };
  EXPECT_EQ(choose(member(2, 20), {kThree}).refusal,
            "broker 2 leads it; nothing has to be given up");
  EXPECT_EQ(choose(member(2, 20), {kTwo}).refusal,
            "broker 3 is in sync, and nothing is known to be damaged there: it can lead without "
            "--accept-loss");
  EXPECT_EQ(text(choose(member(2, 20), {kTwo, kThree}).state), "2@6 2:20 |  | ");
  EXPECT_EQ(text(choose(member(1, 10), {kTwo, kThree}).state), "1@6 1:10 |  | ");
  const auto healthy = sole(kOne, 7, 4);
  EXPECT_EQ(with_leader_despite_loss(healthy, kSole, live({member(1, 4)}), member(1, 4)).refusal,
            "broker 1 leads it; nothing has to be given up");
}

TEST(DespiteLoss, NothingIsGivenUpWhereNothingHasToBe) {
  const auto refused = [](const PartitionState& now, const Members& alive, IsrMember chosen) {
    const auto outcome = with_leader_despite_loss(now, kReplicas, live(alive), chosen);
    EXPECT_FALSE(outcome.state);
    return outcome.refusal;
  };
  const auto leaderless = state(kNobody, 5, {member(1, 10)});
  EXPECT_EQ(
      refused(state(kThree, 5, {member(3, 30)}), {member(2, 21), member(3, 30)}, member(2, 21)),
      "broker 3 leads it; nothing has to be given up");
  EXPECT_EQ(refused(leaderless, {member(1, 10), member(2, 21)}, member(2, 21)),
            "broker 1 has all records and is about to lead it");
  EXPECT_EQ(refused(leaderless, {member(3, 30)}, member(2, 21)), "broker 2 is away");
  EXPECT_EQ(refused(leaderless, {member(4, 30)}, member(4, 30)), "broker 4 keeps no replica of it");
  auto lossy = leaderless;
  lossy.loss_epoch = LeaderEpoch(3);
  lossy.loss_start = model::Offset(70);
  EXPECT_EQ(refused(lossy, {member(2, 21)}, member(2, 21)),
            "records may be lost already since leader epoch 3: that has to be acknowledged first");
}

// Leaders that cannot go on as they are

protocol::ReplicaReport as(protocol::ReplicaState said, std::int32_t last_leader_epoch) {
  auto one = report(last_leader_epoch);
  one.state = said;
  return one;
}

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

// Other ISRs

TEST(WithIsr, WhoComesBackLeavesTheElr) {
  auto before = state(kOne, 5, {member(1, 10)}, {member(2, 20), member(3, 30)}, 3);
  before.last_known_elr = {member(2, 19)};
  EXPECT_EQ(text(with_isr(before, {member(1, 10), member(2, 21)})), "1@5 1:10 2:21 | 3:30 | ");
  EXPECT_EQ(text(with_isr(before, {member(1, 10), member(2, 21), member(3, 30)})),
            "1@5 1:10 2:21 3:30 |  | ");
}

TEST(WithIsr, AShrinkBelowMinIsrKeepsWhoLeft) {
  EXPECT_EQ(text(with_isr(state(kOne, 5, kAll), {member(1, 10)})), "1@5 1:10 | 2:20 3:30 | ");
  EXPECT_EQ(text(with_isr(state(kOne, 5, kAll), {member(1, 10), member(3, 30)})),
            "1@5 1:10 3:30 |  | ");
}

TEST(WithMinIsr, TheElrEndsWhereTheIsrIsLargeEnough) {
  auto before = state(kOne, 5, {member(1, 10)}, {member(2, 20)});
  before.last_known_elr = {member(3, 30)};
  EXPECT_EQ(text(with_min_isr(before, 1)), "1@5 1:10 |  | ");
  EXPECT_EQ(text(with_min_isr(before, 3)), "1@5 1:10 | 2:20 | 3:30");
  EXPECT_EQ(with_min_isr(before, 3).min_isr, 3u);
}

TEST(FirstState, AllThatLiveAreInSyncAndTheFirstLeads) {
  EXPECT_EQ(text(first_state(kAll, 2)), "1@0 1:10 2:20 3:30 |  | ");
}

// CTL-8

/// A proposal that is accepted, and one thing wrong with it each time.
class Proposals : public ::testing::Test {
 protected:
  Proposals() {
    proposal_.leader_epoch = LeaderEpoch(5);
    proposal_.version = model::PartitionVersion(9);
    proposal_.isr = {member(1, 10), member(2, 20), member(3, 30)};
  }
  WireError check() {
    const auto refused =
        check_proposal(state_, model::PartitionVersion(9), kReplicas, brokers_, leader_, proposal_);
    return refused ? refused->error : WireError::ok;
  }

  PartitionState state_ = state(kOne, 5, {member(1, 10), member(2, 20)});
  LiveBrokers brokers_ = live(kAll);
  IsrMember leader_ = member(1, 10);
  protocol::IsrProposal proposal_;
};

TEST_F(Proposals, OfTheLeaderAreAccepted) {
  EXPECT_EQ(check(), WireError::ok);
  proposal_.isr = state_.isr;  // nothing is different: the version rises, and that tells
  EXPECT_EQ(check(), WireError::ok);
  proposal_.isr = {leader_};
  EXPECT_EQ(check(), WireError::ok);
}

TEST_F(Proposals, OfAnotherBrokerOrRegistrationAreRefused) {
  leader_ = member(2, 20);
  EXPECT_EQ(check(), WireError::not_leader);
  leader_ = member(1, 11);
  EXPECT_EQ(check(), WireError::not_leader);
}

TEST_F(Proposals, OfAnotherLeaderEpochOrVersionAreRefused) {
  proposal_.leader_epoch = LeaderEpoch(4);
  EXPECT_EQ(check(), WireError::fenced_leader_epoch);
  proposal_.leader_epoch = LeaderEpoch(6);
  EXPECT_EQ(check(), WireError::unknown_leader_epoch);
  proposal_.leader_epoch = LeaderEpoch(5);
  for (const int version : {8, 10, -1}) {
    proposal_.version = model::PartitionVersion(version);
    EXPECT_EQ(check(), WireError::invalid_request);
  }
}

TEST_F(Proposals, WithoutTheLeaderAreRefused) {
  proposal_.isr = {member(2, 20)};
  EXPECT_EQ(check(), WireError::invalid_request);
  proposal_.isr = {};
  EXPECT_EQ(check(), WireError::invalid_request);
  proposal_.isr = {member(1, 9), member(2, 20)};
  EXPECT_EQ(check(), WireError::invalid_request);
}

TEST_F(Proposals, WithMembersThatCannotBeAreRefused) {
  proposal_.isr = {member(1, 10), member(3, 29)};  // an earlier registration
  EXPECT_EQ(check(), WireError::invalid_request);
  proposal_.isr = {member(1, 10), member(4, 40)};  // no replica
  brokers_.add(BrokerId(4), BrokerEpoch(40));
  EXPECT_EQ(check(), WireError::invalid_request);
  proposal_.isr = {member(1, 10), member(3, 30), member(3, 30)};
  EXPECT_EQ(check(), WireError::invalid_request);
  proposal_.isr = {member(1, 10), member(3, 30)};
  EXPECT_EQ(check(), WireError::ok);
  brokers_.add(kThree, BrokerEpoch(30), true);  // about to stop
  EXPECT_EQ(check(), WireError::invalid_request);
}

TEST_F(Proposals, OfALeaderThatIsAboutToStopAreTaken) {
  brokers_.add(kOne, BrokerEpoch(10), true);
  EXPECT_EQ(check(), WireError::ok);
}

TEST(AddedMembers, AreThoseUnderAnotherRegistrationToo) {
  EXPECT_EQ(text(added_members({member(1, 10), member(2, 20)},
                               {member(1, 10), member(2, 21), member(3, 30)})),
            "2:21 3:30");
}

// What an operator asks for

TEST(WithLeader, TheFirstReplicaInSyncOrTheOneThatIsNamed) {
  const auto led_by_two = state(kTwo, 5, kAll);
  EXPECT_EQ(text(with_leader(led_by_two, kReplicas, live(kAll), kNobody)),
            "1@6 1:10 2:20 3:30 |  | ");
  EXPECT_EQ(text(with_leader(led_by_two, kReplicas, live(kAll), BrokerId(3))),
            "3@6 1:10 2:20 3:30 |  | ");
  EXPECT_EQ(text(with_leader(led_by_two, kReplicas, live(kAll), kTwo)), "2@5 1:10 2:20 3:30 |  | ");
  // Not one that is away, nor one that is not in sync.
  EXPECT_FALSE(with_leader(led_by_two, kReplicas, live({member(2, 20)}), BrokerId(3)));
  EXPECT_FALSE(with_leader(state(kTwo, 5, {member(2, 20)}), kReplicas, live(kAll), BrokerId(3)));
}

}  // namespace
}  // namespace mq::controller
