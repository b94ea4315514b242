// Leaders that may lack records: who they may be, and how much that is.
#include <gtest/gtest.h>

#include "base/mutants.h"
#include "controller/elections.h"
#include "unit/controller/election_states.h"

namespace mq::controller {
namespace {

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

}  // namespace
}  // namespace mq::controller
