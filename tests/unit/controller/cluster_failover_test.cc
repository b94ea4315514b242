// Partitions with several replicas, of which some fail, or go and come back.
#include "unit/controller/cluster_replicas_fixture.h"

namespace mq::controller {
namespace {

// CTL-7
TEST_F(ClusterReplicas, ALostLeaderIsFollowedWithinItsSessionTime) {
  start_with_topic();
  const int first = replica(0);
  broker(first).kill();
  ASSERT_TRUE(wait_until([&] { return controlling() && partition().leader.value() == replica(1); },
                         kSessionTime + std::chrono::seconds(2)));
  EXPECT_EQ(partition().leader_epoch, model::LeaderEpoch(1));
  EXPECT_EQ(isr(), (std::vector{replica(1), replica(2)}));
  ASSERT_EQ(add(first).start(), Error());
  wait_until_settled();
  EXPECT_EQ(isr().size(), 2u);  // it has to catch up first
}

TEST_F(ClusterReplicas, AllTogetherComeBackAndTheFirstOneLeads) {
  start_with_topic();
  const int last = replica(2);
  for (int id = 1; id <= 3; ++id) broker(id).kill();
  simulator_.run_for(std::chrono::seconds(20));
  ASSERT_EQ(add(last).start(), Error());
  ASSERT_TRUE(
      wait_until([&] { return controlling() != nullptr && partition().leader.value() == last; }));
  EXPECT_EQ(isr(), std::vector{last});
  EXPECT_EQ(elr().size(), 2u);
}

TEST_F(ClusterReplicas, LeadersGoBackToTheFirstOfTheirReplicas) {
  start_with_topic(6);
  const int away = controlling()->id == 1 ? 2 : 1;
  const auto led = [&] {
    int count = 0;
    for (std::int32_t number = 0; number < 6; ++number)
      count += partition(number).leader.value() == away;
    return count;
  };
  const int before = led();
  ASSERT_GT(before, 0);
  lose(away);
  EXPECT_EQ(led(), 0);
  ASSERT_EQ(add(away).start(), Error());
  wait_until_settled();
  simulator_.run_for(std::chrono::minutes(3));
  EXPECT_EQ(led(), 0) << "it is not in sync";
  for (std::int32_t number = 0; number < 6; ++number) {
    auto wanted = proposal(partition(number).isr, number);
    wanted.entries[0].isr.push_back(registered(away));
    EXPECT_TRUE(ask(wanted).results[0].status.ok());
  }
  EXPECT_EQ(led(), 0);
  ASSERT_TRUE(wait_until([&] { return led() == before; }, std::chrono::minutes(2)));
  wait_until_settled();
}

TEST_F(ClusterReplicas, ALeaderWhoseLogStandsStillGivesWayAndDoesNotGetItBackAtOnce) {
  start_with_topic();
  const int leader = replica(0);
  ASSERT_TRUE(tell(leader, report_of(ReplicaState::resigns)));
  EXPECT_EQ(partition().leader.value(), replica(1));
  EXPECT_EQ(isr(), (std::vector{replica(1), replica(2)}));
  auto wanted = proposal(partition().isr);
  wanted.entries[0].isr.push_back(registered(leader));
  EXPECT_TRUE(ask(wanted).results[0].status.ok());
  simulator_.run_for(std::chrono::minutes(9));
  EXPECT_EQ(partition().leader.value(), replica(1));
  ASSERT_TRUE(
      wait_until([&] { return partition().leader.value() == leader; }, std::chrono::minutes(3)));
}

// What the leader heard of it before says nothing of what is made anew.
TEST_F(ClusterReplicas, AReplicaThatFailedIsLetInOnlyAfterItIsOpenAgain) {
  start_with_topic();
  const int failed = replica(2);
  auto failure = report_of(ReplicaState::failed);
  failure.last_leader_epoch = {};  // nobody has heard of it
  ASSERT_TRUE(tell(failed, failure));
  const auto let_in = [&] {
    auto wanted = proposal({registered(replica(0)), registered(replica(1))});
    wanted.entries[0].isr.push_back(registered(failed));
    return ask(wanted).results[0].status.ok();
  };
  auto without = proposal({registered(replica(0)), registered(replica(1))});
  EXPECT_TRUE(ask(without).results[0].status.ok());
  EXPECT_FALSE(let_in());
  auto opened = report_of(ReplicaState::opened);
  opened.intact_since = broker(failed).member.epoch();
  ASSERT_TRUE(tell(failed, opened));
  EXPECT_TRUE(let_in());
}

// REP-5: what its leader asks for late is of an epoch that has ended, whoever is controller then.
TEST_F(ClusterReplicas, ARequestForAReplicaThatWasMadeAnewMeanwhileIsOfAnEarlierEpoch) {
  start_with_topic();
  const int damaged = replica(2);
  auto late = proposal({registered(replica(0)), registered(replica(1)), registered(damaged)});
  const auto leader = partition().leader;
  const auto epoch = partition().leader_epoch;
  ASSERT_TRUE(tell(damaged, report_of(ReplicaState::failed)));
  EXPECT_EQ(partition().leader, leader);
  EXPECT_GT(partition().leader_epoch, epoch);
  auto opened = report_of(ReplicaState::opened);
  opened.last_leader_epoch = epoch;
  opened.intact_since = broker(damaged).member.epoch();
  ASSERT_TRUE(tell(damaged, opened));
  late.entries[0].version = partition().version;
  EXPECT_EQ(ask(late).results[0].status.error(), protocol::WireError::fenced_leader_epoch);
}

TEST_F(ClusterReplicas, TheLastOneInTheIsrIsWaitedForAndTheElrIsAskedBefore) {
  start_with_topic();
  const int first = replica(0);
  const int second = replica(1);
  const int third = replica(2);
  lose(third);
  lose(second);
  EXPECT_EQ(isr(), std::vector{first});
  EXPECT_EQ(elr(), std::vector{second});
  broker(first).kill();
  ASSERT_EQ(add(third).start(), Error());
  simulator_.run_for(std::chrono::seconds(30));
  EXPECT_EQ(partition().leader, BrokerId());  // it left while the others went on
  ASSERT_EQ(add(second).start(), Error());
  ASSERT_TRUE(wait_until([&] { return partition().leader.value() == second; }));
  EXPECT_EQ(isr(), std::vector{second});
  EXPECT_EQ(elr(), std::vector{first});
}

}  // namespace
}  // namespace mq::controller
