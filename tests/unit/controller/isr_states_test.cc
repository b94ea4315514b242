// ISRs that leaders and operators ask for.
#include <gtest/gtest.h>

#include "controller/elections.h"
#include "unit/controller/election_states.h"

namespace mq::controller {
namespace {

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
