#include <fmt/format.h>

#include "client/core/admin_core.h"
#include "producer_fixture.h"

namespace mq::testing {
namespace {

using protocol::Status;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Three brokers of one cluster, each on a node of its own, and a client.
class SeveralBrokersTest : public ::testing::Test {
 protected:
  SeveralBrokersTest() : network(simulator), client_runtime(simulator) {
    client_network = network.join("client", client_runtime);
    cluster->version = 1;
    for (int id = 1; id <= 3; ++id) {
      nodes.push_back(std::make_unique<Node>(simulator, network, host(id)));
      brokers[id] = std::make_unique<FakeBroker>(nodes.back()->runtime, *nodes.back()->network,
                                                 base::Endpoint{host(id), 9500},
                                                 base::Endpoint{host(id), 9500}, cluster, id);
    }
  }
  ~SeveralBrokersTest() override {
    network.heal();
    if (producer) run(simulator, producer->stop());
    if (consumer) run(simulator, consumer->stop());
    if (admin) run(simulator, admin->stop());
    for (auto& [id, broker] : brokers) run(simulator, broker->stop());
    simulator.run_for(seconds(1));
  }

  struct Node {
    Node(Simulator& simulator, SimNetwork& network, const std::string& name)
        : runtime(simulator), network(network.join(name, runtime)) {}
    SimRuntime runtime;
    std::unique_ptr<base::Network> network;
  };
  static std::string host(int id) { return fmt::format("broker-{}", id); }

  FakeBroker& broker(int id) { return *brokers.at(id); }
  /// A topic whose partitions are led by these brokers.
  void add_topic(const std::string& name, const std::vector<std::int32_t>& leaders) {
    auto& topic = broker(1).add_topic(name, static_cast<int>(leaders.size()));
    for (std::size_t i = 0; i < leaders.size(); ++i) topic.partitions[i].leader = leaders[i];
    ++cluster->version;
  }
  void move_leader(const std::string& name, std::size_t partition, std::int32_t to) {
    auto& log = cluster->topics.at(name).partitions.at(partition);
    log.leader = to;
    ++log.leader_epoch;
    ++cluster->version;
    for (auto& [id, one] : brokers) one->image_changed();
  }
  /// Nothing of this broker reaches the client any more, and nobody says so.
  void silence(int id) {
    network.cut("client", host(id));
    network.reset_connections(host(id));
  }

  template <class Config>
  Config config(const std::string& bootstrap = "broker-1:9500,broker-2:9500,broker-3:9500") {
    Config made;
    made.bootstrap.clear();
    for (std::size_t at = 0; at < bootstrap.size();) {
      const auto comma = std::min(bootstrap.find(',', at), bootstrap.size());
      made.bootstrap.push_back(bootstrap.substr(at, comma - at));
      at = comma + 1;
    }
    return made;
  }
  void start_producer(ProducerConfig made) {
    made.compression = Compression::none;
    made.enable_idempotence = false;
    producer = std::make_unique<client::ProducerCore>(client_runtime, *client_network, made);
    const auto started = run(simulator, producer->start());
    ASSERT_TRUE(started) << to_string(started.error());
  }
  client::ProducerTopicPtr topic(const std::string& name) {
    auto found = run(simulator, producer->topic(name));
    EXPECT_TRUE(found);
    return found ? *found : nullptr;
  }
  void send(client::ProducerTopic& to, const std::string& value, int partition) {
    client::AppendRequest request;
    request.record.value = base::as_bytes(value);
    request.partition = partition;
    std::function<void(Result<Delivery>)> callback = [this, value](Result<Delivery> result) {
      results.insert_or_assign(value, std::move(result));
      at[value] = simulator.now();
    };
    request.callback = &callback;
    std::optional<Error> refusal;
    ASSERT_EQ(producer->append(to, request, refusal), client::Appended::accepted);
  }
  bool wait_for(const std::string& value, base::Duration limit) {
    return simulator.run_until([&] { return results.contains(value); }, limit);
  }
  client::AdminCore& start_admin(ClientConfig made) {
    admin = std::make_unique<client::AdminCore>(client_runtime, *client_network, std::move(made));
    const auto started = run(simulator, admin->start());
    EXPECT_TRUE(started);
    return *admin;
  }

  Simulator simulator{1};
  SimNetwork network;
  SimRuntime client_runtime;
  std::unique_ptr<base::Network> client_network;
  FakeBroker::ClusterPtr cluster = std::make_shared<FakeBroker::Cluster>();
  std::vector<std::unique_ptr<Node>> nodes;
  std::map<int, std::unique_ptr<FakeBroker>> brokers;
  std::unique_ptr<client::ProducerCore> producer;
  std::unique_ptr<client::ConsumerCore> consumer;
  std::unique_ptr<client::AdminCore> admin;
  std::map<std::string, Result<Delivery>> results;
  std::map<std::string, base::TimePoint> at;
};

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

/// A consumer in the rack of broker 3; broker 1 leads.
class NearerReplicaTest : public SeveralBrokersTest {
 protected:
  void SetUp() override {
    add_topic("orders", {1});
    cluster->nearer = 3;
    start_producer(config<ProducerConfig>());
    auto made = config<ConsumerConfig>();
    made.rack = "c";
    consumer = std::make_unique<client::ConsumerCore>(client_runtime, *client_network, made);
    ASSERT_TRUE(run(simulator, consumer->start()));
    ASSERT_TRUE(run(simulator, consumer->assign({{{"orders", 0}, {Start::earliest}}})));
  }
  void write(const std::string& value) { send(*topic("orders"), value, 0); }
  std::string read() {
    std::optional<Result<Batch>> taken;
    simulator.run_until([&] { return (taken = consumer->take()).has_value(); }, seconds(5));
    return taken && *taken ? std::string(as_text(*(**taken)[0].value)) : "nothing";
  }
  std::int64_t position() { return consumer->positions().at({"orders", 0}); }
  int asked(int id) { return broker(id).fetch_requests; }
};

TEST_F(NearerReplicaTest, IsReadOnceTheLeaderHasNamedIt) {
  write("one");
  EXPECT_EQ(read(), "one");
  simulator.run_for(seconds(2));
  const int at_leader = asked(1);
  for (int i = 0; i < 20; ++i) {
    write(fmt::format("more {}", i));
    EXPECT_EQ(read(), fmt::format("more {}", i));
  }
  EXPECT_EQ(asked(1), at_leader);
  EXPECT_GE(asked(3), 20);
  EXPECT_EQ(position(), 21);
}

TEST_F(NearerReplicaTest, WhatItDoesNotHaveTheLeaderHas) {
  write("one");
  EXPECT_EQ(read(), "one");
  simulator.run_for(seconds(2));
  cluster->nearer_end = 0;  // it says that it does not have what comes next
  write("two");
  EXPECT_EQ(read(), "two");
  EXPECT_EQ(position(), 2);
  // For a while nobody else is asked; then it is tried again.
  const int before = asked(3);
  simulator.run_for(seconds(5));
  EXPECT_EQ(asked(3), before);
  cluster->nearer_end = 1000;
  simulator.run_for(seconds(7));
  EXPECT_GT(asked(3), before);
  write("three");
  EXPECT_EQ(read(), "three");
}

TEST_F(NearerReplicaTest, WithoutItTheLeaderIsRead) {
  write("one");
  EXPECT_EQ(read(), "one");
  simulator.run_for(seconds(2));
  ASSERT_GT(asked(3), 0);
  silence(3);
  write("two");
  EXPECT_EQ(read(), "two");
}

TEST_F(NearerReplicaTest, OfOneThatIsAwayFromTheStartNothingIsLost) {
  silence(3);
  for (const std::string value : {"one", "two", "three"}) {
    write(value);
    EXPECT_EQ(read(), value);
  }
}

TEST_F(NearerReplicaTest, AnotherLeaderChangesNothingForIt) {
  write("one");
  EXPECT_EQ(read(), "one");
  simulator.run_for(seconds(2));
  move_leader("orders", 0, 2);
  write("two");
  EXPECT_EQ(read(), "two");
  move_leader("orders", 0, 3);  // which is the one that is read
  write("three");
  EXPECT_EQ(read(), "three");
  move_leader("orders", 0, 1);
  write("four");
  EXPECT_EQ(read(), "four");
  EXPECT_EQ(position(), 4);
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

// Partitions that a topic gets while clients use it.
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
