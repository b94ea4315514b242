#pragma once

#include <fmt/format.h>

#include "client/core/admin_core.h"
#include "producer_fixture.h"

namespace mq::testing {

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
    simulator.run_for(std::chrono::seconds(1));
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

}  // namespace mq::testing
