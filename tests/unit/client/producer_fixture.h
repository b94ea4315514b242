#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/core/consumer_core.h"
#include "client/core/producer_core.h"
#include "fake_broker.h"
#include "support/run.h"
#include "support/sim_network.h"
#include "support/sim_runtime.h"

namespace mq::testing {

/// A simulated world with one fake broker and one client node.
class ClientWorld : public ::testing::Test {
 protected:
  explicit ClientWorld(std::uint64_t seed = 1)
      : simulator(seed),
        network(simulator),
        broker_runtime(simulator),
        client_runtime(simulator),
        broker_network(network.join("broker", broker_runtime)),
        client_network(network.join("client", client_runtime)) {
    start_broker();
  }
  ~ClientWorld() override {
    if (broker) run(simulator, broker->stop());
    simulator.run_for(std::chrono::seconds(1));
  }

  void start_broker(const base::Endpoint& advertised = {"broker", 9500}) {
    broker = std::make_unique<FakeBroker>(broker_runtime, *broker_network,
                                          base::Endpoint{"broker", 9500}, advertised);
  }

  template <class Config>
  Config config() {
    Config made;
    made.bootstrap = {"broker:9500"};
    made.log = [this](LogLevel, std::string_view line) { log.emplace_back(line); };
    return made;
  }

  Simulator simulator;
  SimNetwork network;
  SimRuntime broker_runtime;
  SimRuntime client_runtime;
  std::unique_ptr<base::Network> broker_network;
  std::unique_ptr<base::Network> client_network;
  std::unique_ptr<FakeBroker> broker;
  std::vector<std::string> log;
};

/// One producer in that world; remembers the result of every record by its value.
class ProducerWorld : public ClientWorld {
 protected:
  explicit ProducerWorld(std::uint64_t seed = 1) : ClientWorld(seed) {}
  ~ProducerWorld() override { stop(); }

  ProducerConfig producer_config() {
    auto made = config<ProducerConfig>();
    made.compression = Compression::none;
    made.enable_idempotence = idempotent;
    return made;
  }
  void start(ProducerConfig made) {
    core = std::make_unique<client::ProducerCore>(client_runtime, *client_network, std::move(made));
    auto started = run(simulator, core->start());
    ASSERT_TRUE(started) << to_string(started.error());
  }
  client::ProducerTopicPtr topic(const std::string& name) {
    auto found = run(simulator, core->topic(name));
    EXPECT_TRUE(found);
    return found ? *found : nullptr;
  }
  /// The refusal, if there is one at once.
  client::Appended send(client::ProducerTopic& to, const std::string& value, int partition = 0) {
    client::AppendRequest request;
    request.record.value = base::as_bytes(value);
    request.partition = partition;
    std::function<void(Result<Delivery>)> callback = [this, value,
                                                      partition](Result<Delivery> result) {
      order[partition].push_back(value);
      results[value].push_back(std::move(result));
    };
    request.callback = &callback;
    return core->append(to, request, refusal);
  }
  bool wait_for_results(base::Duration limit = std::chrono::minutes(5)) {
    return simulator.run_until([&] { return core->accumulator().pending_records() == 0; }, limit);
  }
  void stop() {
    if (!core) return;
    run(simulator, core->stop());
    core.reset();
  }

  bool idempotent = false;
  std::unique_ptr<client::ProducerCore> core;
  std::map<std::string, std::vector<Result<Delivery>>> results;
  std::map<int, std::vector<std::string>> order;  ///< in which results came, per partition
  std::optional<Error> refusal;
};

}  // namespace mq::testing
