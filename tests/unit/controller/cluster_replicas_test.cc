// Partitions with several replicas: who has them, who is in sync, and what leaders may ask for.
#include "base/mutants.h"
#include "controller/topic_rules.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_replicas_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;

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
