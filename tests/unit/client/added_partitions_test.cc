// Partitions that a topic gets while clients use it, and brokers that learn late of them.
#include "several_brokers_fixture.h"

namespace mq::testing {
namespace {

using std::chrono::seconds;

class AddedPartitions : public SeveralBrokersTest {
 protected:
  void add(std::int32_t leader) {
    auto& log = cluster->topics.at("orders").partitions.emplace_back();
    log.leader = leader;
    ++cluster->version;
    for (auto& [id, one] : brokers) one->image_changed();
  }
  void start_consumer() {
    consumer = std::make_unique<client::ConsumerCore>(client_runtime, *client_network,
                                                      config<ConsumerConfig>());
    ASSERT_TRUE(run(simulator, consumer->start()));
  }
  bool read(const std::string& value, base::Duration limit) {
    return simulator.run_until(
        [&] {
          while (const auto taken = consumer->take()) {
            if (!*taken) continue;
            for (const auto& record : **taken) read_.emplace(as_text(*record.value));
          }
          return read_.contains(value);
        },
        limit);
  }
  std::set<std::string> read_;
};

TEST_F(AddedPartitions, AreUsedByAProducerThatSends) {
  add_topic("orders", {1});
  start_producer(config<ProducerConfig>());
  const auto orders = topic("orders");
  send(*orders, "a", 0);
  ASSERT_TRUE(wait_for("a", seconds(5)));
  add(2);
  add(3);
  EXPECT_EQ(orders->partition_count, 1U);
  send(*orders, "b", 0);
  ASSERT_TRUE(wait_for("b", seconds(5)));
  ASSERT_TRUE(simulator.run_until([&] { return orders->partition_count == 3; }, seconds(2)));
  send(*orders, "c", 2);
  ASSERT_TRUE(wait_for("c", seconds(5)));
  EXPECT_TRUE(results.at("c"));
  EXPECT_EQ(broker(3).produced_batches, 1);
  // The keys go by the new number.
  EXPECT_EQ(topic("orders").get(), orders.get());
}

TEST_F(AddedPartitions, AreReadByWhoeverReadsTheWholeTopic) {
  add_topic("orders", {1});
  start_producer(config<ProducerConfig>());
  const auto orders = topic("orders");
  send(*orders, "a", 0);
  start_consumer();
  ASSERT_TRUE(run(simulator, consumer->assign_topics({{"orders", Start{Start::latest}}})));
  add(2);
  send(*orders, "b", 0);
  ASSERT_TRUE(simulator.run_until([&] { return orders->partition_count == 2; }, seconds(5)));
  send(*orders, "c", 1);
  ASSERT_TRUE(wait_for("c", seconds(5)));
  EXPECT_TRUE(read("c", seconds(5))) << "from its beginning";
  EXPECT_EQ(consumer->positions().size(), 2U);
  // Their beginning may have moved on by the time they are found.
  add(3);
  auto& log = cluster->topics.at("orders").partitions[2];
  log.start = log.end = 40;
  send(*orders, "d", 0);
  ASSERT_TRUE(simulator.run_until([&] { return orders->partition_count == 3; }, seconds(5)));
  send(*orders, "e", 2);
  EXPECT_TRUE(read("e", seconds(5)));
}

TEST_F(AddedPartitions, AreNotReadByWhoeverNamedPartitions) {
  add_topic("orders", {1});
  start_consumer();
  ASSERT_TRUE(run(simulator, consumer->assign({{{"orders", 0}, Start{Start::earliest}}})));
  add(2);
  simulator.run_for(seconds(5));
  EXPECT_EQ(consumer->positions().size(), 1U);
}

// Brokers that lag behind are not asked in a circle.
TEST_F(AddedPartitions, AreLearntFromABrokerThatHasTheNewImage) {
  add_topic("orders", {1});
  start_producer(config<ProducerConfig>());
  const auto orders = topic("orders");
  send(*orders, "a", 0);
  ASSERT_TRUE(wait_for("a", seconds(5)));
  broker(2).freeze_image();
  broker(3).freeze_image();
  add(1);
  const int before = broker(2).metadata_requests + broker(3).metadata_requests;
  send(*orders, "b", 0);
  ASSERT_TRUE(simulator.run_until([&] { return orders->partition_count == 2; }, seconds(10)));
  simulator.run_for(seconds(20));
  EXPECT_LE(broker(2).metadata_requests + broker(3).metadata_requests - before, 10);
}

TEST_F(AddedPartitions, AreWaitedForAlone) {
  add_topic("orders", {1, 2});
  move_leader("orders", 1, -1);  // its broker is away
  auto& client = start_admin(config<ClientConfig>());
  const auto began = simulator.now();
  const auto added = run(simulator, client.add_partitions({{"orders", 3}}));
  ASSERT_TRUE(added.at("orders"));
  EXPECT_LT(simulator.now() - began, seconds(1));
}

// A broker takes over an image later than the one that the client has asked.

using LaggingBroker = AddedPartitions;

// CLI-6: a broker takes over the image after the one that the client asked.
TEST_F(LaggingBroker, ALeaderThatDoesNotKnowTheTopicYetIsAskedAgain) {
  broker(1).freeze_image();
  add_topic("late", {1});
  broker(2).freeze_image();
  start_producer(config<ProducerConfig>("broker-2:9500"));
  const auto late = topic("late");
  send(*late, "early", 0);
  consumer = std::make_unique<client::ConsumerCore>(client_runtime, *client_network,
                                                    config<ConsumerConfig>("broker-2:9500"));
  ASSERT_TRUE(run(simulator, consumer->start()));
  const auto assigned = run(simulator, consumer->assign({{{"late", 0}, Start::at(0)}}));
  ASSERT_TRUE(assigned) << to_string(assigned.error());
  simulator.run_for(seconds(3));
  EXPECT_FALSE(results.contains("early"));
  broker(1).thaw_image();
  ASSERT_TRUE(wait_for("early", seconds(3)));
  EXPECT_TRUE(results.at("early")) << to_string(results.at("early").error());
  EXPECT_TRUE(read("early", seconds(5)));
}

TEST_F(LaggingBroker, ALeaderThatDoesNotKnowThePartitionYetIsAskedAgain) {
  add_topic("orders", {2});
  broker(1).freeze_image();
  auto& added = cluster->topics.at("orders").partitions.emplace_back();
  added.leader = 1;
  ++cluster->version;
  start_producer(config<ProducerConfig>("broker-2:9500"));
  const auto orders = topic("orders");
  send(*orders, "early", 1);
  simulator.run_for(seconds(3));
  EXPECT_FALSE(results.contains("early"));
  broker(1).thaw_image();
  ASSERT_TRUE(wait_for("early", seconds(3)));
  EXPECT_TRUE(results.at("early")) << to_string(results.at("early").error());
}

}  // namespace
}  // namespace mq::testing
