// MET-4: of all processes that reach one store, one session changes topics and partitions.
#include "controller/leadership.h"

#include <gtest/gtest.h>

#include "controller/error.h"
#include "metadata/znode_layout.h"
#include "unit/controller/controller_fixture.h"

namespace mq::controller {
namespace {

using metadata::MetadataErrc;

class Leadership : public ::testing::Test {
 protected:
  /// One broker on the shared store.
  struct Broker {
    Broker(Leadership& world, int id)
        : store(metadata::open_memory_store(world.state_, world.runtime_, options())),
          replicas(disk, world.runtime_),
          controller(config(id), *store, replicas, world.runtime_) {}
    static metadata::MemoryStoreOptions options() {
      metadata::MemoryStoreOptions options;
      options.single_process = false;
      return options;
    }
    static ControllerConfig config(int id) {
      ControllerConfig config;
      config.broker = model::BrokerId(id);
      config.cluster_id = base::Uuid::from_random(7, 7);
      config.incarnation = base::Uuid::from_random(100 + static_cast<std::uint64_t>(id), 1);
      config.disks = {base::Uuid::from_random(5, 5)};
      config.advertised = {"broker-" + std::to_string(id), 9500};
      config.shared_store = true;
      return config;
    }
    mq::testing::FakeDisk disk;
    std::unique_ptr<metadata::MetadataStore> store;
    mq::testing::FakeReplicas replicas;
    Controller controller;
  };

  ~Leadership() override {
    for (auto& broker : brokers_) run(broker->controller.stop());
  }
  Broker& make(int id) { return *brokers_.emplace_back(std::make_unique<Broker>(*this, id)); }
  Error start(Broker& broker) {
    if (const auto started = run(broker.controller.start()); !started) return started.error();
    return run(broker.controller.finish_half_done()).error();
  }
  protocol::WireError create(Broker& broker, const std::string& name) {
    protocol::NewTopic topic;
    topic.name = name;
    const auto deadline = runtime_.now() + std::chrono::seconds(20);
    return run(broker.controller.create_topic(topic, false, deadline)).status.error();
  }
  bool has(std::string_view path) const { return state_->nodes.contains(std::string(path)); }
  void wait(std::chrono::seconds time) { run(runtime_.sleep_for(time)); }
  template <class T>
  T run(asio::awaitable<T> task) {
    return mq::testing::run(simulator_, std::move(task));
  }

  mq::testing::Simulator simulator_{3};
  mq::testing::SimRuntime runtime_{simulator_};
  std::shared_ptr<metadata::MemoryStoreState> state_ =
      std::make_shared<metadata::MemoryStoreState>();
  std::vector<std::unique_ptr<Broker>> brokers_;
};

TEST_F(Leadership, SecondBrokerIsRefusedAndChangesNothing) {
  auto& first = make(1);
  ASSERT_EQ(start(first), Error());
  ASSERT_EQ(create(first, "orders"), protocol::WireError::ok);
  auto& second = make(2);
  EXPECT_EQ(start(second), make_error_code(ControllerErrc::another_controller));
  EXPECT_FALSE(has(metadata::layout::broker_live(model::BrokerId(2))));
  EXPECT_FALSE(has(metadata::layout::broker_epoch(model::BrokerId(2))));
  EXPECT_EQ(create(first, "more"), protocol::WireError::ok);
}

TEST_F(Leadership, RestartWaitsForTheSessionOfTheProcessBefore) {
  auto& first = make(1);
  ASSERT_EQ(start(first), Error());
  const auto session = first.store->session();
  auto& again = make(1);
  simulator_.start_timer(runtime_.now() + std::chrono::seconds(6),
                         [&] { metadata::expire_session(*state_, session); });
  EXPECT_EQ(start(again), Error());
  EXPECT_EQ(again.controller.image()->find_broker(model::BrokerId(1))->epoch,
            model::BrokerEpoch(1));
}

TEST_F(Leadership, LostSessionIsTakenUpAgainUnderTheSameEpoch) {
  auto& broker = make(1);
  ASSERT_EQ(start(broker), Error());
  state_->fault = [](bool) { return metadata::StoreFault::unavailable; };
  metadata::expire_session(*state_, broker.store->session());
  wait(std::chrono::seconds(5));
  EXPECT_EQ(create(broker, "refused"), protocol::WireError::metadata_unavailable);
  EXPECT_FALSE(has(metadata::layout::kControllerLeader));
  state_->fault = nullptr;
  wait(std::chrono::seconds(3));
  EXPECT_TRUE(has(metadata::layout::kControllerLeader));
  EXPECT_TRUE(has(metadata::layout::broker_live(model::BrokerId(1))));
  EXPECT_EQ(state_->nodes.at(metadata::layout::broker_epoch(model::BrokerId(1))).version, 0);
  EXPECT_EQ(create(broker, "taken"), protocol::WireError::ok);
}

TEST_F(Leadership, BrokerThatComesBackBehindAnotherChangesNothing) {
  auto& broker = make(1);
  ASSERT_EQ(start(broker), Error());
  metadata::expire_session(*state_, broker.store->session());
  // Another process was quicker.
  constexpr std::uint64_t kOther = 4711;
  state_->sessions.insert(kOther);
  state_->nodes[std::string(metadata::layout::kControllerLeader)] = metadata::Node{"", 0, kOther};
  wait(std::chrono::seconds(10));
  EXPECT_EQ(create(broker, "refused"), protocol::WireError::metadata_unavailable);
  EXPECT_FALSE(has("/topics/refused"));
  // It goes away again.
  metadata::expire_session(*state_, kOther);
  wait(std::chrono::seconds(5));
  EXPECT_EQ(create(broker, "taken"), protocol::WireError::ok);
}

TEST_F(Leadership, AnotherProcessUnderTheSameIdFencesTheFirst) {
  auto& broker = make(1);
  ASSERT_EQ(start(broker), Error());
  metadata::expire_session(*state_, broker.store->session());
  // It registered and left: the place is free, but the epoch is not the first one's any more.
  ++state_->nodes.at(metadata::layout::broker_epoch(model::BrokerId(1))).version;
  wait(std::chrono::seconds(10));
  EXPECT_EQ(create(broker, "refused"), protocol::WireError::metadata_unavailable);
  EXPECT_FALSE(has("/topics/refused"));
  EXPECT_FALSE(has(metadata::layout::broker_live(model::BrokerId(1))));
}

// New producers are let in while the store is away.
TEST_F(Leadership, ProducerIdsAreKeptInStock) {
  auto& broker = make(1);
  ASSERT_EQ(start(broker), Error());
  wait(std::chrono::seconds(1));
  state_->fault = [](bool) { return metadata::StoreFault::unavailable; };
  std::set<std::int64_t> ids;
  for (int i = 0; i < 1000; ++i) {
    const auto id = run(broker.controller.next_producer_id());
    ASSERT_TRUE(id) << i;
    EXPECT_TRUE(ids.insert(*id).second);
  }
}

}  // namespace
}  // namespace mq::controller
