#include "several_brokers_fixture.h"

namespace mq::testing {
namespace {

using protocol::Status;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(SeveralBrokersTest, RecordsGoToTheLeaderOfTheirPartition) {
  add_topic("orders", {1, 2, 3});
  start_producer(config<ProducerConfig>("broker-2:9500"));
  const auto orders = topic("orders");
  for (int i = 0; i < 3; ++i) send(*orders, std::to_string(i), i);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(wait_for(std::to_string(i), seconds(5)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(results.at(std::to_string(i)));
    EXPECT_EQ(broker(i + 1).produced_batches, 1);
  }
}

TEST_F(SeveralBrokersTest, PartitionsOfOneBrokerShareARequest) {
  add_topic("orders", {1, 2, 2, 2, 2, 3});
  start_producer(config<ProducerConfig>());
  const auto orders = topic("orders");
  send(*orders, "first", 1);
  ASSERT_TRUE(wait_for("first", seconds(5)));
  broker(2).produce_delay = milliseconds(20);
  for (int i = 1; i <= 4; ++i) send(*orders, fmt::format("a{}", i), i);
  for (int i = 1; i <= 4; ++i) ASSERT_TRUE(wait_for(fmt::format("a{}", i), seconds(5)));
  const auto& entries = broker(2).produce_entries;
  EXPECT_GE(*std::ranges::max_element(entries), 3U);

  consumer = std::make_unique<client::ConsumerCore>(client_runtime, *client_network,
                                                    config<ConsumerConfig>());
  ASSERT_TRUE(run(simulator, consumer->start()));
  std::map<TopicPartition, Start> all;
  for (int i = 0; i < 6; ++i) all[{"orders", i}] = {Start::earliest};
  ASSERT_TRUE(run(simulator, consumer->assign(all)));
  simulator.run_for(seconds(1));
  EXPECT_EQ(broker(2).offset_requests, 1);
  EXPECT_EQ(broker(2).fetch_entries.front(), 4U);
  EXPECT_EQ(broker(1).fetch_entries.front(), 1U);
}

TEST_F(SeveralBrokersTest, NotLeaderIsFollowedToTheNewOneByOneRefresh) {
  add_topic("orders", {1});
  start_producer(config<ProducerConfig>());
  const auto orders = topic("orders");
  send(*orders, "before", 0);
  ASSERT_TRUE(wait_for("before", seconds(5)));
  move_leader("orders", 0, 3);
  int asked = 0;
  for (auto& [id, one] : brokers) asked += one->metadata_requests;
  send(*orders, "after", 0);
  ASSERT_TRUE(wait_for("after", seconds(1)));
  EXPECT_TRUE(results.at("after"));
  EXPECT_EQ(broker(3).produced_batches, 1);
  int again = 0;
  for (auto& [id, one] : brokers) again += one->metadata_requests;
  EXPECT_EQ(again, asked + 1);
}

TEST_F(SeveralBrokersTest, AConsumerFollowsItsLeader) {
  add_topic("orders", {1});
  start_producer(config<ProducerConfig>());
  consumer = std::make_unique<client::ConsumerCore>(client_runtime, *client_network,
                                                    config<ConsumerConfig>());
  ASSERT_TRUE(run(simulator, consumer->start()));
  ASSERT_TRUE(run(simulator, consumer->assign({{{"orders", 0}, {Start::earliest}}})));
  const auto orders = topic("orders");
  const auto read = [&] {
    std::optional<Result<Batch>> taken;
    simulator.run_until([&] { return (taken = consumer->take()).has_value(); }, seconds(5));
    return taken && *taken ? std::string(as_text(*(**taken)[0].value)) : "nothing";
  };
  send(*orders, "one", 0);
  EXPECT_EQ(read(), "one");
  move_leader("orders", 0, 2);
  send(*orders, "two", 0);
  EXPECT_EQ(read(), "two");
  EXPECT_GT(broker(2).fetch_requests, 0);
}

TEST_F(SeveralBrokersTest, ASilentFirstAddressDelaysTheConnectionByLessThanASecond) {
  add_topic("orders", {2});
  network.cut("client", "broker-1");
  const auto before = simulator.now();
  start_producer(config<ProducerConfig>());
  EXPECT_LT(simulator.now() - before, seconds(1));
}

TEST_F(SeveralBrokersTest, ADeafFirstAddressDelaysTheConnectionByLessThanASecond) {
  broker(1).deaf = true;
  const auto before = simulator.now();
  start_producer(config<ProducerConfig>());
  EXPECT_LT(simulator.now() - before, seconds(1));
}

TEST_F(SeveralBrokersTest, AFrozenBrokerDelaysALookupByLittleMoreThanASecond) {
  add_topic("orders", {2});
  start_producer(config<ProducerConfig>());
  broker(1).silent = true;  // connected, and no answer to anything
  const auto before = simulator.now();
  EXPECT_TRUE(topic("orders"));
  EXPECT_LT(simulator.now() - before, milliseconds(1500));
}

TEST_F(SeveralBrokersTest, AStoppingBrokerIsNotAskedTwice) {
  add_topic("orders", {2});
  start_producer(config<ProducerConfig>());
  broker(1).refuse_metadata = [] { return Status::of(WireError::shutting_down, "bye", 1); };
  const auto before = simulator.now();
  EXPECT_TRUE(topic("orders"));
  EXPECT_LT(simulator.now() - before, milliseconds(300));
}

TEST_F(SeveralBrokersTest, ADeadBrokerDelaysNobodyElsesPartitions) {
  add_topic("orders", {1, 2, 3});
  auto made = config<ProducerConfig>();
  made.delivery_timeout = seconds(20);
  start_producer(made);
  const auto orders = topic("orders");
  for (int i = 0; i < 3; ++i) send(*orders, fmt::format("warm{}", i), i);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(wait_for(fmt::format("warm{}", i), seconds(5)));
  silence(1);
  send(*orders, "lost", 0);
  simulator.run_for(seconds(2));
  const auto before = simulator.now();
  send(*orders, "b", 1);
  send(*orders, "c", 2);
  ASSERT_TRUE(wait_for("b", seconds(5)) && wait_for("c", seconds(5)));
  EXPECT_LT(at.at("b") - before, milliseconds(500));
  EXPECT_LT(at.at("c") - before, milliseconds(500));
  // And when its partition gets another leader, it goes on there.
  move_leader("orders", 0, 3);
  ASSERT_TRUE(wait_for("lost", seconds(5)));
  EXPECT_TRUE(results.at("lost"));
}

TEST_F(SeveralBrokersTest, AllBrokersAwayAreNotStormed) {
  add_topic("orders", {1, 2, 3});
  auto made = config<ProducerConfig>();
  std::size_t lines = 0;
  made.log = [&lines](LogLevel, std::string_view) { ++lines; };
  made.delivery_timeout = std::chrono::minutes(10);
  start_producer(made);
  const auto orders = topic("orders");
  for (auto& [id, one] : brokers) run(simulator, one->stop());
  for (int i = 0; i < 3; ++i) send(*orders, fmt::format("waiting{}", i), i);
  simulator.run_for(seconds(10));
  const auto before = producer->client().pool.attempts();
  lines = 0;
  simulator.run_for(seconds(60));
  const auto attempts = producer->client().pool.attempts() - before;
  EXPECT_LE(attempts, 130U);  // two per second of all addresses together
  EXPECT_GE(attempts, 20U);
  EXPECT_LE(lines, 30U);
}

TEST_F(SeveralBrokersTest, APartitionWithoutALeaderWaitsForOne) {
  add_topic("orders", {-1});
  start_producer(config<ProducerConfig>());
  const auto orders = topic("orders");
  send(*orders, "early", 0);
  simulator.run_for(seconds(3));
  EXPECT_FALSE(results.contains("early"));
  move_leader("orders", 0, 2);
  ASSERT_TRUE(wait_for("early", seconds(2)));
  EXPECT_TRUE(results.at("early"));
}

TEST_F(SeveralBrokersTest, ARecordThatFoundNoLeaderSaysSo) {
  add_topic("orders", {-1});
  auto made = config<ProducerConfig>();
  made.delivery_timeout = seconds(2);
  start_producer(made);
  const auto orders = topic("orders");
  send(*orders, "early", 0);
  ASSERT_TRUE(wait_for("early", seconds(5)));
  const Error& error = results.at("early").error();
  EXPECT_EQ(error.code, Errc::delivery_timed_out);
  EXPECT_FALSE(error.maybe_applied);
  EXPECT_EQ(error.message, "orders/0: not acknowledged within 2000 ms: it has no leader");
  EXPECT_EQ(error.hint.find("may be there"), std::string::npos) << error.hint;
}

// CLI-6.
TEST_F(SeveralBrokersTest, AnOlderImageTakesNothingBack) {
  add_topic("orders", {1});
  broker(1).freeze_image();
  move_leader("orders", 0, 2);
  start_producer(config<ProducerConfig>("broker-2:9500"));
  const auto orders = topic("orders");
  auto& metadata = producer->client().metadata;
  const model::PartitionId id{orders->id, 0};
  ASSERT_EQ(metadata.leader(id), 2);
  run(simulator, broker(2).stop());
  run(simulator, broker(3).stop());
  network.cut("client", "broker-3");
  protocol::MetadataRequest request;
  request.topics = {"orders"};
  const auto answer = run(simulator, metadata.fetch(request, simulator.now() + seconds(20)));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->topics[0].partitions[0].leader, 1);
  EXPECT_EQ(metadata.leader(id), 2);
}

// CLI-6.
TEST_F(SeveralBrokersTest, ATopicIsNotGoneBecauseAnOlderImageDoesNotKnowItYet) {
  broker(1).freeze_image();
  add_topic("late", {2});
  start_producer(config<ProducerConfig>("broker-2:9500"));
  const auto late = topic("late");
  auto& metadata = producer->client().metadata;
  run(simulator, broker(2).stop());
  run(simulator, broker(3).stop());
  protocol::MetadataRequest request;
  request.topics = {"late"};
  const auto answer = run(simulator, metadata.fetch(request, simulator.now() + seconds(20)));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->topics[0].status.error(), WireError::unknown_topic);
  EXPECT_FALSE(metadata.gone(late->id));
}

}  // namespace
}  // namespace mq::testing
