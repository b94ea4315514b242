#include "mqctl/verbs/cluster_health.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "mqctl/verbs/stop_check.h"

namespace mq::mqctl {
namespace {

class ClusterHealth : public ::testing::Test {
 protected:
  ClusterHealth() {
    facts.cluster.controller = 2;
    for (int id = 1; id <= 3; ++id) {
      BrokerInfo broker;
      broker.id = id;
      broker.address = "mq" + std::to_string(id) + ":9500";
      facts.cluster.brokers.push_back(broker);
      BrokerDescription described;
      described.id = id;
      facts.brokers.emplace(id, described);
      PartitionInfo partition;
      partition.topic = "orders";
      partition.partition = id - 1;
      partition.leader = id;
      partition.replicas = partition.in_sync = {id};
      facts.partitions.push_back(partition);
    }
  }
  /// The troubles of all checks up to this level.
  std::vector<std::string> troubles(int level) const {
    std::vector<std::string> all;
    for (const auto& check : checks_of(facts))
      if (check.level <= level) all.insert(all.end(), check.troubles.begin(), check.troubles.end());
    return all;
  }
  void lose(std::int32_t id) {
    Error error;
    error.code = Errc::unreachable;
    error.message = "cannot reach it";
    facts.brokers.insert_or_assign(id, error);
  }
  ClusterFacts facts;
};

using Lines = std::vector<std::string>;

TEST_F(ClusterHealth, NothingIsWrongAtAnyLevel) { EXPECT_EQ(troubles(4), Lines{}); }

TEST_F(ClusterHealth, ABrokerThatIsAwayTakesItsPartitionsAlong) {
  lose(3);
  facts.cluster.brokers[2].away = true;
  facts.partitions[2].leader = -1;
  EXPECT_EQ(troubles(1), Lines{});
  EXPECT_EQ(troubles(2), Lines{"1 of 3 partitions have no leader (they are on broker 3)"});
  EXPECT_EQ(troubles(3).back(), "broker 3 (mq3:9500) is not in the cluster");
  EXPECT_EQ(count(facts.partitions).leaderless, 1U);
  EXPECT_EQ(count(facts.partitions).under_replicated, 0U);
}

TEST_F(ClusterHealth, ASilentBrokerAndNoController) {
  lose(1);
  facts.cluster.controller = -1;
  EXPECT_EQ(troubles(2), Lines{"there is no controller"});
  EXPECT_EQ(troubles(3).back(), "broker 1 (mq1:9500) does not answer: cannot reach it");
}

TEST_F(ClusterHealth, FewerCopiesThanThereShouldBe) {
  facts.partitions[0].replicas = {1, 2};
  EXPECT_EQ(troubles(2), Lines{});
  EXPECT_EQ(troubles(3), Lines{"1 of 3 partitions have fewer copies in sync than they should"});
}

TEST_F(ClusterHealth, WhyNobodyLeadsIsSaidOfTheFirst) {
  for (auto& partition : facts.partitions) partition.leader = -1;
  facts.leaderless = {{{"orders", 0}, "no leader: broker 1 is away"}};
  const auto lines = troubles(2);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1], "orders/0: no leader: broker 1 is away");
  EXPECT_EQ(lines[2], "and 2 more: mqctl partition list --leaderless");
}

TEST_F(ClusterHealth, WritesThatAreRefusedAreTroubleOfTheSecondLevel) {
  for (auto& partition : facts.partitions) {
    partition.replicas = {1, 2, 3};
    partition.min_isr = 2;
    partition.in_sync = {1, 2};
  }
  EXPECT_EQ(troubles(2), Lines{});
  facts.partitions[1].in_sync = {2};
  EXPECT_EQ(troubles(1), Lines{});
  EXPECT_EQ(troubles(2), Lines{"acks=all is refused (NOT_ENOUGH_REPLICAS) by 1 of 3 partitions: "
                               "orders/1 (1 of min_isr 2 in sync, without brokers 1,3)"});
  facts.partitions[1].leader = -1;
  EXPECT_EQ(count(facts.partitions).below_min_isr, 0U) << "it refuses everything";
  for (int i = 0; i < 6; ++i) {
    facts.partitions.push_back(facts.partitions[0]);
    facts.partitions.back().in_sync = {1};
  }
  EXPECT_NE(troubles(2).back().find("by 6 of 9 partitions"), std::string::npos);
  EXPECT_NE(troubles(2).back().find(" and 1 more"), std::string::npos);
}

TEST_F(ClusterHealth, WhatBrokersSayOfThemselves) {
  facts.brokers.at(1)->partitions_not_serving = 1;
  facts.brokers.at(1)->partitions_led = 4;
  facts.brokers.at(2)->metadata_trouble = "ZooKeeper does not answer";
  DiskDescription disk;
  disk.path = "/data/b";
  disk.state = "failed";
  disk.reason = "fdatasync failed";
  facts.brokers.at(3)->disks = {disk};
  EXPECT_EQ(troubles(2), Lines{"broker 1: 1 of 4 partitions are not served"});
  EXPECT_EQ(troubles(3).back(),
            "broker 2: ZooKeeper does not answer; producing and consuming go on");
  EXPECT_EQ(troubles(4).back(), "broker 3: disk /data/b is failed: fdatasync failed");
}

// What brokers give the alarm for is said once, whoever says it.
TEST_F(ClusterHealth, AlarmsOfBrokersCountAtTheirLevel) {
  for (auto& [id, broker] : facts.brokers) broker->alerts = {{"records", 3, "orders/0 is short"}};
  facts.brokers.at(2)->alerts.push_back({"damage", 2, "a node is missing"});
  EXPECT_EQ(troubles(1), Lines{});
  EXPECT_EQ(troubles(2), Lines{"a node is missing"});
  EXPECT_EQ(troubles(3).size(), 2U);
}

TEST(CanStop, ABrokerWhoseCopiesAreNotNeeded) {
  PartitionDescription partition;
  partition.replicas = {1, 2, 3};
  partition.in_sync = {1, 2, 3};
  partition.min_isr = 2;
  EXPECT_EQ(why_not_without(partition, 1), "nobody leads it now");
  partition.leader = 1;
  EXPECT_EQ(why_not_without(partition, 1), "");
  partition.in_sync = {1, 2};
  EXPECT_NE(why_not_without(partition, 1).find("acks=all need 2"), std::string::npos);
  EXPECT_EQ(why_not_without(partition, 3), "") << "it is not in sync anyway";
  partition.in_sync = {1};
  EXPECT_EQ(why_not_without(partition, 1), "no other copy of it is in sync");
  partition.replicas = {1};
  EXPECT_EQ(why_not_without(partition, 1), "there is no other copy of it");
}

}  // namespace
}  // namespace mq::mqctl
