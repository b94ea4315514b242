// Changes and descriptions where there are several brokers.
#include "several_brokers_fixture.h"

namespace mq::testing {
namespace {

using std::chrono::seconds;

TEST_F(SeveralBrokersTest, ChangesGoToTheControllerAndFollowIt) {
  cluster->controller = 2;
  auto& client = start_admin(config<ClientConfig>());
  std::vector<NewTopic> topics;
  topics.emplace_back("orders");
  topics.back().partitions = 3;
  auto created = run(simulator, client.create_topics(topics, false));
  ASSERT_TRUE(created.at("orders")) << to_string(created.at("orders").error());
  EXPECT_EQ(broker(2).change_requests, 1);
  EXPECT_EQ(broker(1).change_requests + broker(3).change_requests, 0);
  // The controller moves; who is asked first says so, and the new one is found.
  cluster->controller = 3;
  ++cluster->version;
  std::map<std::string, TopicChange> changes;
  changes["orders"].set["retention.age"] = "7d";
  changes["orders"].unset = {"segment.bytes"};
  auto altered = run(simulator, client.alter_topics(changes));
  ASSERT_TRUE(altered.at("orders"));
  EXPECT_EQ(broker(2).change_requests, 2);
  ASSERT_TRUE(broker(3).altered);
  EXPECT_EQ(broker(3).altered->set.at("retention.age"), "7d");
  EXPECT_EQ(broker(3).altered->unset, std::vector<std::string>{"segment.bytes"});
  auto added = run(simulator, client.add_partitions({{"orders", 5}}));
  ASSERT_TRUE(added.at("orders"));
  EXPECT_EQ(*added.at("orders"), 5);
  auto deleted = run(simulator, client.delete_topics({"orders"}));
  EXPECT_TRUE(deleted.at("orders"));
  EXPECT_EQ(broker(3).change_requests, 3);
}

TEST_F(SeveralBrokersTest, AChangeWaitsForAControllerToBeElected) {
  cluster->controller = -1;
  auto& client = start_admin(config<ClientConfig>());
  client_runtime.start_timer(simulator.now() + seconds(3), [this] {
    cluster->controller = 1;
    ++cluster->version;
  });
  std::vector<NewTopic> topics;
  topics.emplace_back("orders");
  auto created = run(simulator, client.create_topics(topics, false));
  EXPECT_TRUE(created.at("orders"));
}

TEST_F(SeveralBrokersTest, WithoutAControllerAChangeIsRefusedByName) {
  cluster->controller = -1;
  auto made = config<ClientConfig>();
  made.request_timeout = seconds(2);
  auto& client = start_admin(made);
  auto deleted = run(simulator, client.delete_topics({"orders"}));
  const Error& error = deleted.at("orders").error();
  EXPECT_EQ(error.code, Errc::not_controller);
  EXPECT_FALSE(error.maybe_applied);
  EXPECT_TRUE(error.retriable);
}

TEST_F(SeveralBrokersTest, AfterAChangeOlderImagesAreWaitedFor) {
  cluster->controller = 2;
  auto& client = start_admin(config<ClientConfig>("broker-1:9500"));
  add_topic("orders", {1});
  broker(1).freeze_image();
  broker(3).freeze_image();
  auto deleted = run(simulator, client.delete_topics({"orders"}));
  ASSERT_TRUE(deleted.at("orders"));
  // Broker 1 would still know it; the answer comes from one that does not.
  const auto found =
      run(simulator, client.client().metadata.lookup("orders", simulator.now() + seconds(5)));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::unknown_topic);
}

TEST_F(SeveralBrokersTest, DescriptionsArePutTogetherFromTheLeaders) {
  add_topic("orders", {1, 2, 3, -1});
  cluster->topics.at("orders").partitions[1].end = 20;
  cluster->topics.at("orders").partitions[2].end = 30;
  auto& client = start_admin(config<ClientConfig>());
  auto topics = run(simulator, client.list_topics());
  ASSERT_TRUE(topics);
  ASSERT_EQ(topics->size(), 1U);
  EXPECT_EQ((*topics)[0].records, 50U);
  EXPECT_EQ((*topics)[0].bytes, 3000U);
  EXPECT_EQ((*topics)[0].partitions_not_serving, 1);
  auto described = run(simulator, client.describe_topics({"orders", "none"}));
  EXPECT_EQ(described.at("none").error().code, Errc::unknown_topic);
  const auto& partitions = described.at("orders")->partitions;
  EXPECT_EQ(partitions[1].high_watermark, 20);
  EXPECT_EQ(partitions[2].high_watermark, 30);
  EXPECT_EQ(partitions[3].high_watermark, -1);
  EXPECT_EQ(partitions[3].note, "no leader: broker 3 cannot use its log") << "as it says itself";
  ASSERT_EQ(partitions[3].replica_notes.size(), 1U);
  EXPECT_EQ(partitions[3].replica_notes[0].text, "cannot use its log");
}

TEST_F(SeveralBrokersTest, ASilentBrokerIsNamedAndHidesNobody) {
  add_topic("orders", {1, 2});
  auto& client = start_admin(config<ClientConfig>());
  cluster->away = {3};
  ++cluster->version;
  silence(2);
  const auto before = simulator.now();
  auto described = run(simulator, client.describe_topics({"orders"}));
  const auto& partitions = described.at("orders")->partitions;
  EXPECT_EQ(partitions[0].high_watermark, 0);
  EXPECT_EQ(partitions[1].note, "its leader, broker 2, does not answer");
  auto all = run(simulator, client.describe_brokers());
  EXPECT_LT(simulator.now() - before, seconds(5));
  EXPECT_TRUE(all.at(1));
  EXPECT_EQ(all.at(2).error().code, Errc::unreachable);
  EXPECT_EQ(all.at(3).error().message, "broker 3 (broker-3:9500) is not in the cluster now");
}

}  // namespace
}  // namespace mq::testing
