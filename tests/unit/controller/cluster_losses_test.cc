// Partitions whose records may be lost: who is waited for, and who leads at last.
#include "unit/controller/cluster_replicas_fixture.h"

namespace mq::controller {
namespace {

// Whoever may have lost what it had confirmed is not elected.
TEST_F(ClusterReplicas, AfterALossOfRecordsTheOthersAreWaitedFor) {
  start_with_topic();
  const int last = replica(2);
  const int other = replica(1);
  for (int id = 1; id <= 3; ++id) broker(id).kill();
  simulator_.run_for(std::chrono::seconds(20));
  logs_[last].intact_since = BrokerEpoch(1);
  ASSERT_EQ(add(last).start(), Error());
  simulator_.run_for(std::chrono::minutes(2));
  EXPECT_EQ(partition().leader, BrokerId());
  ASSERT_EQ(add(other).start(), Error());
  ASSERT_TRUE(wait_until([&] { return partition().leader.value() == other; }));
}

// As after a power cut of everything, of a topic that is kept in memory.
TEST_F(ClusterReplicas, WhenAllMayHaveLostRecordsTheOneThatHasMostLeadsAtLast) {
  start_with_topic();
  const auto id = partition().id;
  const std::vector<int> order{replica(2), replica(0), replica(1)};
  for (int broker_id = 1; broker_id <= 3; ++broker_id) broker(broker_id).kill();
  simulator_.run_for(std::chrono::seconds(20));
  for (const int broker_id : order) logs_[broker_id].intact_since = BrokerEpoch(1);
  logs_[order[1]].last_epoch[id] = model::LeaderEpoch(0);
  logs_[order[0]].last_epoch[id] = logs_[order[2]].last_epoch[id] = model::LeaderEpoch();
  for (const int broker_id : order) {
    if (broker_id != order[0]) {
      simulator_.run_for(std::chrono::seconds(30));
      EXPECT_EQ(partition().leader, BrokerId());
    }
    ASSERT_EQ(add(broker_id).start(), Error());
  }
  ASSERT_TRUE(wait_until([&] { return partition().leader.value() == order[1]; }));
  EXPECT_EQ(isr(), std::vector{order[1]});
  EXPECT_EQ(partition().loss_epoch, partition().leader_epoch);
}

// Only where the topic says so, and not before brokers that were only restarted would be back.
TEST_F(ClusterReplicas, ATopicMayGiveUpRecordsForALeader) {
  start_with_topic(2, 1);
  ASSERT_TRUE(alter("orders", "unclean_election", "true").status.ok());
  const auto id = partition().id;
  const int leader = replica(0);
  ASSERT_TRUE(ask(proposal({registered(leader)})).results[0].status.ok());
  logs_[replica(1)].end[id] = model::Offset(50);
  logs_[replica(2)].end[id] = model::Offset(70);
  logs_[leader].end[id] = model::Offset(90);
  lose(leader);
  EXPECT_EQ(partition().leader, BrokerId());
  simulator_.run_for(std::chrono::seconds(20));
  EXPECT_EQ(partition().leader, BrokerId());
  ASSERT_TRUE(
      wait_until([&] { return partition().leader != BrokerId(); }, std::chrono::seconds(20)));
  EXPECT_EQ(partition().leader.value(), replica(2));
  EXPECT_EQ(isr(), std::vector{replica(2)});
  EXPECT_TRUE(elr().empty());
  EXPECT_EQ(partition().loss_epoch, partition().leader_epoch);
  EXPECT_EQ(partition().loss_start, model::Offset(70));
  EXPECT_EQ(partition().loss_end, model::Offset());

  // Who had everything says how much that was, and follows.
  ASSERT_EQ(add(leader).start(), Error());
  ASSERT_TRUE(wait_until([&] { return partition().loss_end == model::Offset(90); }));
  EXPECT_EQ(partition().leader.value(), replica(2));
  EXPECT_EQ(isr(), std::vector{replica(2)});

  protocol::ControlPartitionsRequest seen;
  seen.action = protocol::PartitionAction::acknowledge_loss;
  seen.partitions = {id};
  EXPECT_TRUE(
      run(wait_for_controller().control(seen, in(std::chrono::seconds(5)))).results[0].status.ok());
  EXPECT_EQ(partition().loss_epoch, model::LeaderEpoch());
  EXPECT_EQ(partition().loss_start, model::Offset());
}

// What [topic.defaults] says goes for topics that say nothing.
TEST_F(ClusterReplicas, RecordsMayBeGivenUpByDefault) {
  topic_defaults_.unclean_election = true;
  start_with_topic(1, 1);
  ASSERT_TRUE(create_replicated("cautious", 1, 3, 1).status.ok());
  ASSERT_TRUE(alter("cautious", "unclean_election", "false").status.ok());
  EXPECT_TRUE(topic("orders")->settings.unclean_election);
  EXPECT_FALSE(topic("cautious")->settings.unclean_election);
  const int leader = replica(0);
  ASSERT_TRUE(ask(proposal({registered(leader)})).results[0].status.ok());
  lose(leader);
  EXPECT_TRUE(wait_until([&] { return partition().leader != BrokerId(); }));
}

// Without the setting it is for an operator to say.
TEST_F(ClusterReplicas, AnOperatorMayGiveUpRecordsForALeader) {
  start_with_topic(1, 1);
  const auto id = partition().id;
  const int leader = replica(0);
  ASSERT_TRUE(ask(proposal({registered(leader)})).results[0].status.ok());
  logs_[replica(1)].end[id] = model::Offset(50);
  const auto elect = [&] { return control(PartitionAction::elect_with_loss, replica(1)); };
  const auto acknowledge = [&] { return control(PartitionAction::acknowledge_loss, replica(1)); };
  EXPECT_EQ(elect().status.error(), WireError::invalid_request);
  EXPECT_EQ(elect().leader, leader);
  lose(leader);
  broker(replica(1)).reporting = false;
  const auto done = elect();
  EXPECT_TRUE(done.status.ok()) << done.status.text;
  EXPECT_TRUE(done.changed);
  EXPECT_EQ(done.leader, replica(1));
  EXPECT_EQ(partition().loss_epoch, partition().leader_epoch);
  EXPECT_EQ(partition().loss_start, model::Offset());
  const auto early = acknowledge();
  EXPECT_EQ(early.status.error(), WireError::invalid_request) << "what it keeps it has yet to say";
  EXPECT_FALSE(early.changed);
  broker(replica(1)).reporting = true;
  ASSERT_TRUE(wait_until([&] { return partition().loss_start == model::Offset(50); }));
  EXPECT_TRUE(acknowledge().changed);
  EXPECT_FALSE(acknowledge().changed) << "there is none any more";
}

TEST_F(ClusterReplicas, WithoutTheSettingALeaderIsWaitedForForEver) {
  start_with_topic(1, 1);
  const int leader = replica(0);
  ASSERT_TRUE(ask(proposal({registered(leader)})).results[0].status.ok());
  lose(leader);
  simulator_.run_for(std::chrono::minutes(10));
  EXPECT_EQ(partition().leader, BrokerId());
  ASSERT_EQ(add(leader).start(), Error());
  ASSERT_TRUE(wait_until([&] { return partition().leader.value() == leader; }));
  EXPECT_EQ(partition().loss_epoch, model::LeaderEpoch());
}

// The same records are damaged everywhere: whoever leads goes on with the rest, until an operator
// gives them up.
TEST_F(ClusterReplicas, WhereNobodyIsBetterThereIsNoElection) {
  start_with_topic();
  const auto say = [&](int who, std::int64_t offset, ReplicaState state) {
    auto damaged = report_of(state);
    damaged.last_leader_epoch = model::LeaderEpoch(0);
    damaged.damage.push_back({model::Offset(0), 400, model::Offset(offset), model::Offset()});
    damaged.reason = protocol::Status::of(WireError::partition_corrupt, "a place");
    EXPECT_TRUE(tell(who, damaged));
  };
  say(replica(1), 70, ReplicaState::opened);
  say(replica(2), 90, ReplicaState::opened);
  say(replica(0), 70, ReplicaState::resigns);
  EXPECT_EQ(partition().leader.value(), replica(2)) << "it is damaged elsewhere";
  say(replica(2), 70, ReplicaState::resigns);
  EXPECT_EQ(partition().leader.value(), replica(2));
  EXPECT_EQ(control(PartitionAction::check_loss, 9).status.error(), WireError::invalid_request);
  EXPECT_TRUE(control(PartitionAction::check_loss, replica(1)).status.ok());
  EXPECT_EQ(partition().leader.value(), replica(2));
  simulator_.run_for(std::chrono::minutes(20));
  EXPECT_EQ(partition().leader.value(), replica(2)) << "the first replica is damaged, too";
  EXPECT_TRUE(control(PartitionAction::elect_with_loss, replica(1)).changed);
  EXPECT_EQ(partition().leader.value(), replica(1));
  EXPECT_EQ(partition().loss_epoch, partition().leader_epoch);
}

TEST_F(ClusterReplicas, WhoseDiskHasFailedIsNotChosenDespiteALoss) {
  start_with_topic(1, 1);
  const int leader = replica(0);
  ASSERT_TRUE(ask(proposal({registered(leader)})).results[0].status.ok());
  lose(leader);
  auto failed = report_of(ReplicaState::failed);
  failed.last_leader_epoch = {};
  failed.reason = protocol::Status::of(WireError::storage_failed, "orders-0: the disk has failed");
  ASSERT_TRUE(tell(replica(1), failed));
  const auto refused = control(PartitionAction::elect_with_loss, replica(1));
  EXPECT_EQ(refused.status.error(), WireError::invalid_request);
  EXPECT_NE(refused.status.text.find("the disk has failed"), std::string::npos);
}

// A log that was made anew is no loss where nobody had opened the partition before.
TEST_F(ClusterReplicas, WhatWasNeverOpenHasLostNothing) {
  start(3);
  auto& controller = wait_for_controller();
  const int id = controller.image()->controller() == BrokerId(1) ? 2 : 1;
  broker(id).reporting = false;
  protocol::NewTopic topic;
  topic.name = "orders";
  topic.partitions = 6;
  topic.replicas = 1;
  EXPECT_EQ(run(controller.create_topic(topic, false, in(std::chrono::seconds(5)))).status.error(),
            WireError::timed_out);
  const auto lossy = [&] {
    int lossy = 0;
    for (std::int32_t number = 0; number < 6; ++number)
      lossy += partition(number).loss_epoch != model::LeaderEpoch();
    return lossy;
  };
  const auto comes_back_empty = [&](int epoch) {
    broker(id).kill();
    simulator_.run_for(std::chrono::seconds(20));
    logs_[id].last_epoch.clear();
    logs_[id].intact_since = BrokerEpoch(epoch);
    EXPECT_EQ(add(id).start(), Error());
    EXPECT_TRUE(wait_until([&] {
      for (std::int32_t number = 0; number < 6; ++number) {
        if (partition(number).leader == BrokerId()) return false;
      }
      return true;
    }));
  };
  comes_back_empty(1000);
  EXPECT_EQ(lossy(), 0);
  comes_back_empty(2000);
  EXPECT_EQ(lossy(), 2);
}

// What a replica said of itself while another one led counts when that one is gone too.
TEST_F(ClusterReplicas, WhoCameBackBeforeTheLastLeaderWasLostIsNotForgotten) {
  start_with_topic(6);
  const auto& controller = wait_for_controller();
  std::int32_t number = 0;  // the controller keeps its second replica, and stays
  while (partition(number).replicas[1] != controller.image()->controller()) ++number;
  const int leader = replica(0, number);
  const int early = replica(2, number);
  ASSERT_TRUE(
      ask(proposal({registered(leader), registered(early)}, number)).results[0].status.ok());
  lose(early);
  ASSERT_EQ(isr(number), std::vector{leader});
  ASSERT_EQ(elr(number), std::vector{early});
  logs_[early].intact_since = BrokerEpoch(1);
  ASSERT_EQ(add(early).start(), Error());
  ASSERT_TRUE(wait_until([&] { return elr(number).empty(); }));
  lose(leader);
  ASSERT_EQ(partition(number).leader, BrokerId());
  logs_[leader].intact_since = BrokerEpoch(1);
  ASSERT_EQ(add(leader).start(), Error());
  ASSERT_TRUE(wait_until([&] { return partition(number).leader != BrokerId(); }));
  EXPECT_EQ(partition(number).loss_epoch, partition(number).leader_epoch);
}

}  // namespace
}  // namespace mq::controller
