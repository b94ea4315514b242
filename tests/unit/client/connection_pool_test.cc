#include "client/core/admin_core.h"
#include "producer_fixture.h"

namespace mq::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ConnectionPoolTest : public ProducerWorld {
 protected:
  Result<void> try_start(ProducerConfig made) {
    core = std::make_unique<client::ProducerCore>(client_runtime, *client_network, std::move(made));
    return run(simulator, core->start());
  }
  /// Attempts in a minute of steady state, with records waiting to be sent.
  std::uint64_t attempts_in_a_minute() {
    const auto orders = topic("orders");
    EXPECT_EQ(send(*orders, "waiting"), client::Appended::accepted);
    trouble();
    simulator.run_for(seconds(10));
    const std::uint64_t before = core->client().pool.attempts();
    log.clear();
    simulator.run_for(seconds(60));
    return core->client().pool.attempts() - before;
  }
  std::function<void()> trouble;
};

TEST_F(ConnectionPoolTest, RefusedConnectionsAreTriedAtMostTwicePerSecond) {
  broker->add_topic("orders", 1);
  ASSERT_TRUE(try_start(producer_config()));
  trouble = [&] { run(simulator, broker->stop()); };
  const auto attempts = attempts_in_a_minute();
  EXPECT_LE(attempts, 120u);
  EXPECT_GE(attempts, 20u);
  EXPECT_LE(log.size(), 7u);
  auto old = std::move(broker);
  start_broker();
  broker->add_topic("orders", 1);
  broker->topic("orders").id = old->topic("orders").id;
  EXPECT_TRUE(wait_for_results(seconds(7)));
}

TEST_F(ConnectionPoolTest, AcceptThenCloseIsNotALoop) {
  broker->add_topic("orders", 1);
  ASSERT_TRUE(try_start(producer_config()));
  trouble = [&] {
    broker->close_at_once = true;
    broker->break_connections();
  };
  EXPECT_LE(attempts_in_a_minute(), 120u);
  EXPECT_LE(log.size(), 7u);
  broker->close_at_once = false;
  EXPECT_TRUE(wait_for_results(seconds(7)));
}

TEST_F(ConnectionPoolTest, DroppedPacketsAreNotALoop) {
  broker->add_topic("orders", 1);
  ASSERT_TRUE(try_start(producer_config()));
  trouble = [&] {
    network.cut("client", "broker");
    network.reset_connections("client");
  };
  EXPECT_LE(attempts_in_a_minute(), 120u);
  network.heal();
  EXPECT_TRUE(wait_for_results(seconds(12)));
}

TEST_F(ConnectionPoolTest, NobodyThereIsUnreachableWithinTheTimeout) {
  run(simulator, broker->stop());
  auto config = producer_config();
  config.connect_timeout = seconds(3);
  const auto before = simulator.now();
  const auto started = try_start(config);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::unreachable);
  EXPECT_TRUE(started.error().retriable);
  EXPECT_EQ(started.error().message, "cannot reach broker:9500: connection refused");
  EXPECT_LE(simulator.now() - before, seconds(4));
}

TEST_F(ConnectionPoolTest, AnotherProtocolIsToldByName) {
  broker->greeting = "HTTP/1.1 400 Bad Request\r\n\r\n";
  const auto started = try_start(producer_config());
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::not_mq);
  EXPECT_EQ(started.error().message, "broker:9500 is not an mq broker: an HTTP server answered");
}

TEST_F(ConnectionPoolTest, SecondBootstrapAddressIsUsedWhenTheFirstIsDead) {
  broker->add_topic("orders", 1);
  auto config = producer_config();
  config.bootstrap = {"broker:1", "broker:9500"};
  EXPECT_TRUE(try_start(config));
}

TEST_F(ConnectionPoolTest, UnreachableAdvertisedAddressIsNamedBesideTheBootstrapOneThatWorked) {
  run(simulator, broker->stop());
  start_broker({"elsewhere", 9999});
  broker->add_topic("orders", 1);
  auto config = producer_config();
  config.delivery_timeout = seconds(8);
  ASSERT_TRUE(try_start(config));
  const auto orders = topic("orders");
  ASSERT_EQ(send(*orders, "lost"), client::Appended::accepted);
  ASSERT_TRUE(wait_for_results(seconds(20)));
  const Error& error = results["lost"].front().error();
  EXPECT_EQ(error.code, Errc::delivery_timed_out);
  EXPECT_NE(error.message.find("elsewhere:9999"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("bootstrap broker:9500 did answer"), std::string::npos)
      << error.message;
}

TEST_F(ConnectionPoolTest, StopDuringConnectEnds) {
  run(simulator, broker->stop());
  broker->deaf = true;
  start_broker();
  broker->deaf = true;
  core = std::make_unique<client::ProducerCore>(client_runtime, *client_network, producer_config());
  bool ended = false;
  client_runtime.spawn("start",
                       [](client::ProducerCore& core, bool& ended) -> asio::awaitable<void> {
                         const auto started = co_await core.start();
                         EXPECT_FALSE(started);
                         ended = true;
                       }(*core, ended));
  simulator.run_for(milliseconds(100));
  const auto before = simulator.now();
  run(simulator, core->stop());
  EXPECT_LT(simulator.now() - before, seconds(2));
  EXPECT_TRUE(simulator.run_until([&] { return ended; }, seconds(1)));
  core.reset();
}

class AdminTest : public ClientWorld {
 protected:
  AdminTest() : admin(client_runtime, *client_network, config<ClientConfig>()) {
    auto started = run(simulator, admin.start());
    EXPECT_TRUE(started);
  }
  ~AdminTest() override { run(simulator, admin.stop()); }
  client::AdminCore admin;
};

TEST_F(AdminTest, CreateReturnsWhenTheTopicHasLeaders) {
  broker->topics_ready_after = 2;
  std::vector<NewTopic> topics;
  topics.emplace_back("orders");
  topics.back().partitions = 3;
  broker->add_topic("there", 1);
  topics.emplace_back("there");
  auto outcomes = run(simulator, admin.create_topics(topics, false));
  ASSERT_EQ(outcomes.size(), 2u);
  ASSERT_TRUE(outcomes.at("orders"));
  EXPECT_EQ(outcomes.at("orders")->partitions, 3);
  EXPECT_TRUE(broker->topic("orders").ready);
  EXPECT_EQ(outcomes.at("there").error().code, Errc::topic_exists);
  std::vector<std::string> names{"orders", "none"};
  auto deleted = run(simulator, admin.delete_topics(names));
  EXPECT_TRUE(deleted.at("orders"));
  EXPECT_EQ(deleted.at("none").error().code, Errc::unknown_topic);
}

TEST_F(AdminTest, EveryItemHasTheErrorWhenNobodyAnswers) {
  run(simulator, broker->stop());
  simulator.run_for(milliseconds(100));
  std::vector<std::string> names{"a", "b"};
  auto deleted = run(simulator, admin.delete_topics(names));
  ASSERT_EQ(deleted.size(), 2u);
  EXPECT_EQ(deleted.at("a").error().code, Errc::unreachable);
  EXPECT_EQ(deleted.at("b").error().code, Errc::unreachable);
}

TEST_F(AdminTest, NameThatCannotBeSentHasItsOwnError) {
  const std::string longest(5000, 'a');
  const std::string no_text("\xff");
  std::vector<NewTopic> topics;
  for (const auto& name : {longest, no_text, std::string("orders")}) topics.emplace_back(name);
  auto created = run(simulator, admin.create_topics(topics, false));
  ASSERT_EQ(created.size(), 3u);
  EXPECT_EQ(created.at(longest).error().code, Errc::invalid_topic_name);
  EXPECT_FALSE(created.at(longest).error().maybe_applied);
  EXPECT_EQ(created.at(no_text).error().code, Errc::invalid_topic_name);
  EXPECT_TRUE(created.at("orders"));
  std::vector<std::string> names{longest, no_text};
  auto described = run(simulator, admin.describe_topics(names));
  EXPECT_EQ(described.at(longest).error().code, Errc::unknown_topic);
  EXPECT_EQ(described.at(no_text).error().code, Errc::unknown_topic);
  names.emplace_back("orders");
  auto deleted = run(simulator, admin.delete_topics(names));
  EXPECT_EQ(deleted.at(longest).error().code, Errc::unknown_topic);
  EXPECT_TRUE(deleted.at("orders"));
}

TEST_F(AdminTest, ClusterNamesItsBrokers) {
  auto cluster = run(simulator, admin.describe_cluster());
  ASSERT_TRUE(cluster);
  ASSERT_EQ(cluster->brokers.size(), 1u);
  EXPECT_EQ(cluster->brokers[0].address, "broker:9500");
  EXPECT_EQ(cluster->controller, 1);
}

}  // namespace
}  // namespace mq::testing
