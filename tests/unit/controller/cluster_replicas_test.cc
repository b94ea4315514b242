// Partitions with several replicas: who leads, who is in sync, and what leaders may ask for.
#include "base/mutants.h"
#include "controller/topic_rules.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::StoreFault;
using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using protocol::WireError;

class ClusterReplicas : public mq::testing::Cluster {
 protected:
  void start_with_topic(std::int32_t partitions = 1, std::int32_t min_isr = -1) {
    start(3);
    ASSERT_TRUE(create_replicated("orders", partitions, 3, min_isr).status.ok());
    wait_until_settled();
  }
  metadata::PartitionAssignment partition(std::int32_t number = 0) {
    return *topic("orders")->find(number);
  }
  [[nodiscard]] IsrMember registered(int id) { return {BrokerId(id), broker(id).member.epoch()}; }
  /// Of the replicas, in their order; the first leads at first.
  int replica(std::size_t at, std::int32_t number = 0) {
    return partition(number).replicas[at].value();
  }
  std::vector<int> isr(std::int32_t number = 0) {
    std::vector<int> ids;
    for (const auto& member : partition(number).isr) ids.push_back(member.broker.value());
    return ids;
  }
  std::vector<int> elr(std::int32_t number = 0) {
    std::vector<int> ids;
    for (const auto& member : partition(number).elr) ids.push_back(member.broker.value());
    return ids;
  }
  /// As its leader would ask.
  protocol::AlterIsrRequest proposal(std::vector<IsrMember> isr, std::int32_t number = 0) {
    const auto now = partition(number);
    protocol::AlterIsrRequest request;
    request.broker = now.leader.value();
    request.broker_epoch = broker(now.leader.value()).member.epoch().value();
    request.entries.push_back({now.id, now.leader_epoch, now.version, std::move(isr)});
    return request;
  }
  protocol::AlterIsrResponse ask(protocol::AlterIsrRequest request) {
    return run(wait_for_controller().alter_isr(std::move(request), in(std::chrono::seconds(5))));
  }
  protocol::LeaveBrokerResponse leave_and_hear(int id, std::int64_t epoch) {
    protocol::LeaveBrokerRequest request;
    request.broker = id;
    request.broker_epoch = epoch;
    return run(wait_for_controller().leave(request, in(std::chrono::seconds(5))));
  }
  WireError leave(int id, std::int64_t epoch) {
    return leave_and_hear(id, epoch).envelope.status.error();
  }
  protocol::TopicResult set_min_isr(const std::string& value) {
    protocol::AlterTopic change;
    change.name = "orders";
    if (value.empty())
      change.unset = {"min_isr"};
    else
      change.set = {{"min_isr", value}};
    return run(wait_for_controller().alter_topic(change, in(std::chrono::seconds(20))));
  }
  bool add_partitions_up_to(std::int32_t total) {
    return run(wait_for_controller().add_partitions("orders", total, in(std::chrono::seconds(20))))
        .status.ok();
  }
  /// Dies, and its session ends.
  void lose(int id) {
    broker(id).kill();
    simulator_.run_for(kSessionTime + std::chrono::seconds(2));
    (void)wait_for_controller();
    simulator_.run_for(std::chrono::seconds(1));
  }
};

TEST_F(ClusterReplicas, ANewPartitionIsLedByItsFirstReplicaWithAllInSync) {
  start_with_topic(6);
  std::map<int, int> led;
  for (std::int32_t number = 0; number < 6; ++number) {
    const auto one = partition(number);
    ASSERT_EQ(one.replicas.size(), 3u);
    EXPECT_EQ(std::set(one.replicas.begin(), one.replicas.end()).size(), 3u);
    EXPECT_EQ(one.leader, one.replicas.front());
    EXPECT_EQ(isr(number).size(), 3u);
    EXPECT_EQ(one.min_isr, 2u);
    ++led[one.leader.value()];
  }
  for (int id = 1; id <= 3; ++id) EXPECT_EQ(led[id], 2) << id;
}

// MET-2
TEST_F(ClusterReplicas, ATopicIsMadeWhenAllItsReplicasAre) {
  start(3);
  broker(2).reporting = false;
  protocol::NewTopic topic;
  topic.name = "orders";
  topic.partitions = 2;
  topic.replicas = 3;
  auto& controller = wait_for_controller();
  EXPECT_EQ(run(controller.create_topic(topic, false, in(std::chrono::seconds(5)))).status.error(),
            WireError::timed_out);
  EXPECT_EQ(controller.image()->find_topic("orders")->hidden_from, 0);
  broker(2).reporting = true;
  EXPECT_TRUE(
      wait_until([&] { return controller.image()->find_topic("orders")->hidden_from == -1; }));
}

TEST_F(ClusterReplicas, AReplicaThatCannotBeMadeTakesTheTopicBack) {
  start(3);
  logs_[3].refuses = protocol::Status::of(WireError::storage_full, "no room");
  EXPECT_EQ(create_replicated("orders", 2, 3).status.error(), WireError::storage_full);
  EXPECT_TRUE(wait_until([&] { return paths("/topics/").empty(); }));
}

TEST_F(ClusterReplicas, MoreReplicasThanBrokersAreRefusedWithNumbers) {
  start(2);
  const auto refused = create_replicated("orders", 1, 3).status;
  EXPECT_EQ(refused.error(), WireError::invalid_replicas);
  EXPECT_NE(refused.text.find("replicas = 3: the cluster has 2 brokers; choose --replicas 2"),
            std::string::npos)
      << refused.text;
  EXPECT_EQ(create_replicated("orders", 1, 2, 3).status.error(), WireError::invalid_replicas);
  EXPECT_EQ(create_replicated("orders", 1, 4).status.error(), WireError::invalid_replicas);
  EXPECT_TRUE(create_replicated("orders", 1, 2).status.ok());
  EXPECT_EQ(partition().min_isr, 1u);
  const int lost = controlling()->id == 1 ? 2 : 1;
  lose(lost);
  const auto away = create_replicated("more", 1, 2, 2).status;
  EXPECT_NE(away.text.find(fmt::format("min_isr = 2 wants as many brokers, and 1 broker is alive; "
                                       "broker {} is away: start it, or choose --replicas 1",
                                       lost)),
            std::string::npos)
      << away.text;
}

// As in a restart of one broker after the other.
TEST_F(ClusterReplicas, ABrokerThatIsAwayGetsItsCopiesWhenItIsBack) {
  start(3);
  const int lost = controlling()->id == 1 ? 2 : 1;
  lose(lost);
  ASSERT_TRUE(create_replicated("orders", 6, 3).status.ok());
  for (std::int32_t number = 0; number < 6; ++number) {
    EXPECT_EQ(partition(number).replicas.size(), 3u);
    EXPECT_EQ(replica(2, number), lost);
    EXPECT_EQ(isr(number).size(), 2u);
    EXPECT_EQ(partition(number).min_isr, 2u);
  }
  EXPECT_TRUE(add_partitions_up_to(8));
  ASSERT_EQ(add(lost).start(), Error());
  wait_until_settled();
  auto wanted = proposal(partition().isr);
  wanted.entries[0].isr.push_back(registered(lost));
  EXPECT_TRUE(ask(wanted).results[0].status.ok());
}

TEST_F(ClusterReplicas, WithoutANumberThereAreThreeOrAsManyAsBrokers) {
  ControllerConfig config;
  config.replicas_max = 7;
  protocol::NewTopic topic;
  EXPECT_EQ(copies_of(config, topic, 0), 1u);
  EXPECT_EQ(copies_of(config, topic, 1), 1u);
  EXPECT_EQ(copies_of(config, topic, 2), 2u);
  EXPECT_EQ(copies_of(config, topic, 9), 3u);
  config.default_replicas = 5;
  EXPECT_EQ(copies_of(config, topic, 1), 5u);
  topic.replicas = 2;
  EXPECT_EQ(copies_of(config, topic, 9), 2u);
  EXPECT_EQ(min_isr_of(0, 1), 1u);
  EXPECT_EQ(min_isr_of(0, 2), 1u);
  EXPECT_EQ(min_isr_of(0, 3), 2u);
  EXPECT_EQ(min_isr_of(3, 2), 2u);
  EXPECT_TRUE(overrides_of(config, topic).empty());
  config.default_min_isr = 2;
  EXPECT_EQ(overrides_of(config, topic).at("min_isr"), "2");
  topic.min_isr = 1;
  EXPECT_EQ(overrides_of(config, topic).at("min_isr"), "1");
}

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
  protocol::AlterTopic allows;
  allows.name = "orders";
  allows.set = {{"unclean_election", "true"}};
  ASSERT_TRUE(
      run(wait_for_controller().alter_topic(allows, in(std::chrono::seconds(20)))).status.ok());
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
  protocol::AlterTopic waits;
  waits.name = "cautious";
  waits.set = {{"unclean_election", "false"}};
  ASSERT_TRUE(
      run(wait_for_controller().alter_topic(waits, in(std::chrono::seconds(20)))).status.ok());
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
  protocol::ControlPartitionsRequest wanted;
  wanted.action = protocol::PartitionAction::elect_with_loss;
  wanted.broker = replica(1);
  wanted.partitions = {id};
  const auto control = [&] {
    return run(wait_for_controller().control(wanted, in(std::chrono::seconds(5)))).results[0];
  };
  EXPECT_EQ(control().status.error(), WireError::invalid_request);
  EXPECT_EQ(control().leader, leader);
  lose(leader);
  broker(replica(1)).reporting = false;
  const auto done = control();
  EXPECT_TRUE(done.status.ok()) << done.status.text;
  EXPECT_TRUE(done.changed);
  EXPECT_EQ(done.leader, replica(1));
  EXPECT_EQ(partition().loss_epoch, partition().leader_epoch);
  wanted.action = protocol::PartitionAction::acknowledge_loss;
  EXPECT_EQ(partition().loss_start, model::Offset());
  const auto early = control();
  EXPECT_EQ(early.status.error(), WireError::invalid_request) << "what it keeps it has yet to say";
  EXPECT_FALSE(early.changed);
  broker(replica(1)).reporting = true;
  ASSERT_TRUE(wait_until([&] { return partition().loss_start == model::Offset(50); }));
  EXPECT_TRUE(control().changed);
  EXPECT_FALSE(control().changed) << "there is none any more";
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
  protocol::ReportReplicasRequest request;
  request.broker = leader;
  request.broker_epoch = broker(leader).member.epoch().value();
  auto& stalled = request.replicas.emplace_back();
  stalled.partition = partition().id;
  stalled.state = protocol::ReplicaState::resigns;
  stalled.last_leader_epoch = partition().leader_epoch;
  stalled.log_end_offset = model::Offset(0);
  ASSERT_TRUE(
      run(wait_for_controller().report(request, in(std::chrono::seconds(5)))).envelope.status.ok());
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

protocol::ReplicaReport damaged_at(const model::PartitionId& id, std::int64_t offset) {
  protocol::ReplicaReport report;
  report.partition = id;
  report.log_end_offset = model::Offset(0);
  report.last_leader_epoch = model::LeaderEpoch(0);
  report.damage.push_back({model::Offset(0), 400, model::Offset(offset), model::Offset()});
  report.reason = protocol::Status::of(WireError::partition_corrupt, "a place");
  return report;
}

// The same records are damaged everywhere: whoever leads goes on with the rest, until an operator
// gives them up.
TEST_F(ClusterReplicas, WhereNobodyIsBetterThereIsNoElection) {
  start_with_topic();
  const auto id = partition().id;
  const auto say = [&](int who, std::int64_t offset, protocol::ReplicaState state) {
    protocol::ReportReplicasRequest request;
    request.broker = who;
    request.broker_epoch = broker(who).member.epoch().value();
    request.replicas.push_back(damaged_at(id, offset));
    request.replicas.back().state = state;
    EXPECT_TRUE(run(wait_for_controller().report(request, in(std::chrono::seconds(5))))
                    .envelope.status.ok());
  };
  const auto control = [&](protocol::PartitionAction action, int who) {
    protocol::ControlPartitionsRequest wanted;
    wanted.action = action;
    wanted.broker = who;
    wanted.partitions = {id};
    return run(wait_for_controller().control(wanted, in(std::chrono::seconds(5)))).results[0];
  };
  using protocol::PartitionAction;
  using protocol::ReplicaState;
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
  const auto id = partition().id;
  const int leader = replica(0);
  ASSERT_TRUE(ask(proposal({registered(leader)})).results[0].status.ok());
  lose(leader);
  protocol::ReportReplicasRequest request;
  request.broker = replica(1);
  request.broker_epoch = broker(replica(1)).member.epoch().value();
  auto& failed = request.replicas.emplace_back();
  failed.partition = id;
  failed.state = protocol::ReplicaState::failed;
  failed.reason = protocol::Status::of(WireError::storage_failed, "orders-0: the disk has failed");
  ASSERT_TRUE(
      run(wait_for_controller().report(request, in(std::chrono::seconds(5)))).envelope.status.ok());
  protocol::ControlPartitionsRequest wanted;
  wanted.action = protocol::PartitionAction::elect_with_loss;
  wanted.broker = replica(1);
  wanted.partitions = {id};
  const auto refused =
      run(wait_for_controller().control(wanted, in(std::chrono::seconds(5)))).results[0];
  EXPECT_EQ(refused.status.error(), WireError::invalid_request);
  EXPECT_NE(refused.status.text.find("the disk has failed"), std::string::npos);
}

// What the leader heard of it before says nothing of what is made anew.
TEST_F(ClusterReplicas, AReplicaThatFailedIsLetInOnlyAfterItIsOpenAgain) {
  start_with_topic();
  const int failed = replica(2);
  protocol::ReportReplicasRequest request;
  request.broker = failed;
  request.broker_epoch = broker(failed).member.epoch().value();
  auto& report = request.replicas.emplace_back();
  report.partition = partition().id;
  report.state = protocol::ReplicaState::failed;
  const auto tell = [&] {
    auto& controller = wait_for_controller();
    return run(controller.report(request, in(std::chrono::seconds(5)))).envelope.status.ok();
  };
  ASSERT_TRUE(tell());
  const auto let_in = [&] {
    auto wanted = proposal({registered(replica(0)), registered(replica(1))});
    wanted.entries[0].isr.push_back(registered(failed));
    return ask(wanted).results[0].status.ok();
  };
  auto without = proposal({registered(replica(0)), registered(replica(1))});
  EXPECT_TRUE(ask(without).results[0].status.ok());
  EXPECT_FALSE(let_in());
  report.state = protocol::ReplicaState::opened;
  report.intact_since = broker(failed).member.epoch();
  report.last_leader_epoch = partition().leader_epoch;
  report.log_end_offset = model::Offset(0);
  ASSERT_TRUE(tell());
  EXPECT_TRUE(let_in());
}

// REP-5: what its leader asks for late is of an epoch that has ended, whoever is controller then.
TEST_F(ClusterReplicas, ARequestForAReplicaThatWasMadeAnewMeanwhileIsOfAnEarlierEpoch) {
  start_with_topic();
  const int damaged = replica(2);
  auto late = proposal({registered(replica(0)), registered(replica(1)), registered(damaged)});
  const auto leader = partition().leader;
  const auto epoch = partition().leader_epoch;
  protocol::ReportReplicasRequest request;
  request.broker = damaged;
  request.broker_epoch = broker(damaged).member.epoch().value();
  auto& report = request.replicas.emplace_back();
  report.partition = partition().id;
  report.state = protocol::ReplicaState::failed;
  report.last_leader_epoch = epoch;
  const auto tell = [&] {
    auto& controller = wait_for_controller();
    return run(controller.report(request, in(std::chrono::seconds(5)))).envelope.status.ok();
  };
  ASSERT_TRUE(tell());
  EXPECT_EQ(partition().leader, leader);
  EXPECT_GT(partition().leader_epoch, epoch);
  report.state = protocol::ReplicaState::opened;
  report.intact_since = broker(damaged).member.epoch();
  report.log_end_offset = model::Offset(0);
  ASSERT_TRUE(tell());
  late.entries[0].version = partition().version;
  EXPECT_EQ(ask(late).results[0].status.error(), protocol::WireError::fenced_leader_epoch);
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

// CTL-8
TEST_F(ClusterReplicas, TheIsrBecomesWhatItsLeaderAsksFor) {
  start_with_topic();
  const auto before = partition();
  const auto smaller = ask(proposal({registered(replica(0)), registered(replica(2))}));
  ASSERT_EQ(smaller.results.size(), 1u);
  EXPECT_TRUE(smaller.results[0].status.ok()) << smaller.results[0].status.text;
  EXPECT_EQ(smaller.results[0].state.version.value(), before.version.value() + 1);
  EXPECT_EQ(smaller.results[0].state.leader_epoch, before.leader_epoch);
  EXPECT_EQ(smaller.results[0].state.min_isr, 2u);
  EXPECT_EQ(isr(), (std::vector{replica(0), replica(2)}));
  // The same again: the version tells that nothing else is under way.
  const auto again = ask(proposal(partition().isr));
  EXPECT_TRUE(again.results[0].status.ok());
  EXPECT_EQ(again.results[0].state.version.value(), before.version.value() + 2);
  const auto whole = ask(proposal(before.isr));
  EXPECT_TRUE(whole.results[0].status.ok());
  EXPECT_EQ(partition().isr, before.isr);
  EXPECT_EQ(state(before.id).isr, before.isr);
}

TEST_F(ClusterReplicas, AShrinkBelowMinIsrKeepsWhoLeftInTheElr) {
  start_with_topic();
  const auto whole = partition().isr;
  EXPECT_TRUE(ask(proposal({whole[0]})).results[0].status.ok());
  EXPECT_EQ(elr(), (std::vector{replica(1), replica(2)}));
  EXPECT_TRUE(ask(proposal({whole[0], whole[1]})).results[0].status.ok());
  EXPECT_TRUE(elr().empty());
}

TEST_F(ClusterReplicas, WhatIsRefusedComesWithTheStateInForce) {
  start_with_topic();
  auto old_version = proposal({registered(replica(0))});
  old_version.entries[0].version = model::PartitionVersion(-1);
  auto unknown = proposal({registered(replica(0))});
  unknown.entries[0].partition.partition = 7;
  old_version.entries.push_back(unknown.entries[0]);
  old_version.entries.push_back(
      proposal({registered(replica(0)), registered(replica(1))}).entries[0]);
  old_version.entries.push_back(old_version.entries.back());
  const auto answer = ask(old_version);
  ASSERT_TRUE(answer.envelope.status.ok());
  ASSERT_EQ(answer.results.size(), 4u);
  EXPECT_EQ(answer.results[0].status.error(), WireError::invalid_request);
  EXPECT_EQ(answer.results[0].state.isr.size(), 2u);  // of the entry behind it
  EXPECT_EQ(answer.results[1].status.error(), WireError::unknown_topic_id);
  EXPECT_EQ(answer.results[1].state.version, model::PartitionVersion());
  EXPECT_TRUE(answer.results[2].status.ok());
  EXPECT_EQ(answer.results[3].status.error(), WireError::invalid_request);
  auto of_another = proposal({registered(replica(1))});
  of_another.broker = replica(1);
  EXPECT_EQ(ask(of_another).results[0].status.error(), WireError::not_leader);
  auto stale = proposal({registered(replica(0))});
  stale.broker_epoch = 17;
  EXPECT_EQ(ask(stale).envelope.status.error(), WireError::stale_broker_epoch);
}

/// A member that is added has registered anew, and the controller has not heard of it.
class StaleMembers : public ClusterReplicas {
 protected:
  /// Whether the ISR names a registration that is over.
  bool the_isr_is_stale() {
    start(3);
    EXPECT_TRUE(create_replicated("orders", 1, 3).status.ok());
    wait_until_settled();
    const auto whole = partition().isr;
    const int joins = replica(2) == controlling()->id ? replica(1) : replica(2);
    const auto member = registered(joins);
    std::vector<IsrMember> others;
    for (const auto& one : whole) {
      if (one.broker.value() != joins) others.push_back(one);
    }
    EXPECT_TRUE(ask(proposal(others)).results[0].status.ok());
    const auto wanted = proposal(whole);
    // As by a new registration just now.
    ++state_->nodes.at(layout::broker_epoch(member.broker)).version;
    const auto answer = ask(wanted);
    EXPECT_NE(answer.results[0].status.ok(), state(partition().id).isr.size() == 2);
    return std::ranges::count(state(partition().id).isr, member) > 0;
  }
};

TEST_F(StaleMembers, AreNotAdded) { EXPECT_FALSE(the_isr_is_stale()); }

TEST_F(StaleMembers, ThatNobodyChecksAreCaught) {
  const base::EnabledMutant mutant("isr_member_unchecked");
  EXPECT_TRUE(the_isr_is_stale());
}

TEST_F(ClusterReplicas, AnUnansweredWriteIsFoundOut) {
  start_with_topic();
  const auto before = partition();
  int writes = 0;
  state_->fault = [&writes](bool write) {
    return write && ++writes == 1 ? StoreFault::lost_answer : StoreFault::none;
  };
  const auto answer = ask(proposal({before.isr[0], before.isr[1]}));
  state_->fault = nullptr;
  ASSERT_TRUE(answer.envelope.status.ok());
  EXPECT_TRUE(answer.results[0].status.ok()) << answer.results[0].status.text;
  EXPECT_EQ(answer.results[0].state.version.value(), before.version.value() + 1);
}

TEST_F(ClusterReplicas, AProposalThatIsNotWrittenSaysSo) {
  start_with_topic();
  const auto before = partition();
  state_->fault = [](bool write) { return write ? StoreFault::unavailable : StoreFault::none; };
  const auto answer = ask(proposal({before.isr[0], before.isr[1]}));
  state_->fault = nullptr;
  EXPECT_EQ(answer.results[0].status.error(), WireError::metadata_unavailable);
  EXPECT_EQ(answer.results[0].state.version, before.version);
  EXPECT_TRUE(ask(proposal({before.isr[0], before.isr[1]})).results[0].status.ok());
}

TEST_F(ClusterReplicas, ABrokerThatLeavesHandsOverAtOnce) {
  start_with_topic(6);
  const int leaves = replica(0);
  const auto epoch = broker(leaves).member.epoch().value();
  EXPECT_EQ(leave(leaves, epoch + 1), WireError::stale_broker_epoch);
  EXPECT_EQ(leave(leaves, epoch), WireError::ok);
  for (std::int32_t number = 0; number < 6; ++number) {
    EXPECT_NE(partition(number).leader.value(), leaves);
    EXPECT_NE(partition(number).leader, BrokerId());
    EXPECT_EQ(std::ranges::count(isr(number), leaves), 0);
  }
  // It is not taken in again under this registration.
  auto wanted = proposal(partition().isr);
  wanted.entries[0].isr.push_back({BrokerId(leaves), BrokerEpoch(epoch)});
  EXPECT_EQ(ask(wanted).results[0].status.error(), WireError::invalid_request);
  broker(leaves).stop();
  ASSERT_EQ(add(leaves).start(), Error());
  wait_until_settled();
  wanted = proposal(partition().isr);
  wanted.entries[0].isr.push_back(registered(leaves));
  EXPECT_TRUE(ask(wanted).results[0].status.ok());
}

TEST_F(ClusterReplicas, ABrokerThatLeavesKeepsWhatNobodyElseCanLead) {
  start_with_topic();
  ASSERT_TRUE(create("alone", 3).status.ok());
  const auto alone = topic("alone")->partitions[0];
  const int keeps = alone.leader.value();
  EXPECT_EQ(leave(keeps, broker(keeps).member.epoch().value()), WireError::ok);
  EXPECT_EQ(topic("alone")->partitions[0].leader.value(), keeps);
  EXPECT_EQ(topic("alone")->partitions[0].leader_epoch, alone.leader_epoch);
}

TEST_F(ClusterReplicas, ABrokerThatLeavesHandsOverLaterWhatOnlyItCouldLead) {
  start_with_topic(1, 1);
  const int leaves = replica(0);
  const auto epoch = broker(leaves).member.epoch().value();
  ASSERT_TRUE(ask(proposal({registered(leaves)})).results[0].status.ok());
  auto answer = leave_and_hear(leaves, epoch);
  EXPECT_EQ(answer.waiting, "orders-0");
  EXPECT_EQ(answer.only_here, "");
  EXPECT_EQ(partition().leader.value(), leaves);
  // It leads on meanwhile, and takes in who has caught up.
  ASSERT_TRUE(ask(proposal({registered(leaves), registered(replica(1))})).results[0].status.ok());
  answer = leave_and_hear(leaves, epoch);
  EXPECT_EQ(answer.waiting, "");
  EXPECT_EQ(partition().leader.value(), replica(1));
  EXPECT_EQ(isr(), std::vector{replica(1)});
}

TEST_F(ClusterReplicas, ABrokerThatLeavesIsToldWhatNobodyElseHas) {
  start_with_topic(7, 1);
  const int leaves = replica(0);
  for (int id = 1; id <= 3; ++id) {
    if (id != leaves) lose(id);
  }
  const auto answer = leave_and_hear(leaves, broker(leaves).member.epoch().value());
  EXPECT_EQ(answer.waiting, "");
  EXPECT_EQ(answer.only_here, "orders-0, orders-1, orders-2, orders-3, orders-4 and 2 more");
}

TEST_F(ClusterReplicas, MinIsrComesIntoForceTogetherWithTheEndOfTheElr) {
  start_with_topic(2);
  const auto whole = partition().isr;
  EXPECT_TRUE(ask(proposal({whole[0]})).results[0].status.ok());
  ASSERT_EQ(elr().size(), 2u);
  EXPECT_TRUE(set_min_isr("1").status.ok());
  EXPECT_EQ(partition().min_isr, 1u);
  EXPECT_TRUE(elr().empty());
  EXPECT_EQ(topic("orders")->settings.min_isr, 1u);
  EXPECT_EQ(partition(1).min_isr, 1u);
  EXPECT_TRUE(set_min_isr("3").status.ok());
  EXPECT_EQ(partition().min_isr, 3u);
  EXPECT_TRUE(elr().empty());
  EXPECT_EQ(set_min_isr("4").status.error(), WireError::invalid_replicas);
  EXPECT_TRUE(set_min_isr("").status.ok());
  EXPECT_EQ(partition().min_isr, 2u);
  EXPECT_TRUE(add_partitions_up_to(4));
  EXPECT_EQ(partition(3).replicas.size(), 3u);
  EXPECT_EQ(partition(3).min_isr, 2u);
}

// What the topic says is put in force by whoever is the controller then.
TEST_F(ClusterReplicas, AMinIsrThatWasStoredAloneComesIntoForceLater) {
  start_with_topic(2);
  int writes = 0;
  state_->fault = [&writes](bool write) {
    return write && ++writes > 1 ? StoreFault::unavailable : StoreFault::none;
  };
  EXPECT_EQ(set_min_isr("3").status.error(), WireError::timed_out);
  EXPECT_EQ(partition().min_isr, 2u);
  state_->fault = nullptr;
  EXPECT_TRUE(wait_until([&] { return partition().min_isr == 3u && partition(1).min_isr == 3u; },
                         std::chrono::seconds(5)));
}

}  // namespace
}  // namespace mq::controller
