// Leaders of partitions come and go with their brokers.
#include "base/mutants.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::StoreFault;
using protocol::WireError;

class ClusterLeaders : public mq::testing::Cluster {
 protected:
  mq::testing::FakeBroker& bystander() { return broker(controlling()->id == 1 ? 2 : 1); }
  std::vector<metadata::PartitionAssignment> led_by(int id) {
    std::vector<metadata::PartitionAssignment> led;
    for (const auto& partition : topic("orders")->partitions) {
      if (partition.replicas.front().value() == id) led.push_back(partition);
    }
    return led;
  }
  protocol::WireError pull_as(int id, std::int64_t epoch) {
    protocol::PullImageRequest request;
    request.broker = id;
    request.broker_epoch = epoch;
    return run(wait_for_controller().pull(request, in(std::chrono::seconds(1))))
        .envelope.status.error();
  }
};

// CTL-5
TEST_F(ClusterLeaders, ABrokerThatDiesLosesItsPartitionsAndTheirIsrStays) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  auto& dies = bystander();
  const auto before = led_by(dies.id);
  ASSERT_EQ(before.size(), 2u);
  dies.kill();
  ASSERT_TRUE(wait_until([&] {
    return led_by(dies.id)[0].leader == model::BrokerId() &&
           led_by(dies.id)[1].leader == model::BrokerId();
  }));
  for (const auto& partition : before) {
    const auto stored = state(partition.id);
    EXPECT_EQ(stored.leader_epoch.value(), partition.leader_epoch.value() + 1);
    ASSERT_EQ(stored.isr.size(), 1u);
    EXPECT_EQ(stored.isr[0].broker.value(), dies.id);
    EXPECT_EQ(stored.isr[0].epoch, model::BrokerEpoch(0));
  }
  const auto* info = wait_for_controller().image()->find_broker(model::BrokerId(dies.id));
  ASSERT_NE(info, nullptr);
  EXPECT_FALSE(info->alive);
  EXPECT_EQ(info->advertised.text(), "broker-" + std::to_string(dies.id) + ":9500");
}

// PAR-4
TEST_F(ClusterLeaders, ABrokerThatReturnsLeadsAgainInAHigherEpoch) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  const int id = bystander().id;
  auto last = led_by(id)[0].leader_epoch;
  for (int restarts = 1; restarts <= 3; ++restarts) {
    broker(id).kill();
    simulator_.run_for(std::chrono::seconds(10));
    ASSERT_EQ(add(id).start(), Error());
    ASSERT_TRUE(wait_until([&] { return led_by(id)[0].leader.value() == id; }));
    EXPECT_GT(led_by(id)[0].leader_epoch, last);
    last = led_by(id)[0].leader_epoch;
    EXPECT_EQ(state(led_by(id)[0].id).isr[0].epoch, model::BrokerEpoch(restarts));
    wait_until_settled();
  }
}

// Its session ended and it runs on: a new registration, and new leader epochs.
TEST_F(ClusterLeaders, ALostSessionMeansANewLeaderEpochWithoutARestart) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  auto& one = bystander();
  const auto before = led_by(one.id)[0].leader_epoch;
  metadata::expire_session(*state_, one.store->session());
  ASSERT_TRUE(wait_until([&] {
    return one.member.epoch() == model::BrokerEpoch(1) && settled() &&
           led_by(one.id)[0].leader.value() == one.id && led_by(one.id)[0].leader_epoch > before;
  }));
}

// The controller itself is a broker too.
TEST_F(ClusterLeaders, EveryBrokerMayBeLostInTurn) {
  start(3);
  ASSERT_TRUE(create("orders", 9).status.ok());
  for (int id = 1; id <= 3; ++id) {
    broker(id).kill();
    simulator_.run_for(std::chrono::seconds(3));
    ASSERT_EQ(add(id).start(), Error());
    wait_until_settled();
  }
}

TEST_F(ClusterLeaders, AllBrokersTogetherComeBack) {
  start(3);
  ASSERT_TRUE(create("orders", 9).status.ok());
  for (int id = 1; id <= 3; ++id) broker(id).kill();
  for (int id = 3; id >= 1; --id) ASSERT_EQ(add(id).start(), Error());
  ASSERT_TRUE(wait_until([&] {
    return settled() && std::ranges::all_of(topic("orders")->partitions, [](const auto& one) {
             return one.leader == one.replicas.front();
           });
  }));
  EXPECT_EQ(topic("orders")->visible().size(), 9u);
}

TEST_F(ClusterLeaders, ALogThatIsAheadOfTheMetadataIsAReport) {
  start(2);
  ASSERT_TRUE(create("orders", 4).status.ok());
  const int id = bystander().id;
  broker(id).stop();
  for (auto& [partition, last] : logs_[id].last_epoch) last = model::LeaderEpoch(50);
  ASSERT_EQ(add(id).start(), Error());
  wait_until_settled();
  for (const auto& partition : led_by(id)) EXPECT_EQ(partition.leader_epoch.value(), 51);
}

// One partition is no more than another: thousands take few writes.
TEST_F(ClusterLeaders, ManyReportsAreFewWrites) {
  start(1);
  ASSERT_TRUE(create("orders", 5000).status.ok());
  broker(1).stop();
  std::map<std::string, std::int32_t> before;
  int writes = 0;
  state_->on_applied = [&] { ++writes; };
  ASSERT_EQ(add(1).start(), Error());
  wait_until_settled();
  state_->on_applied = nullptr;
  for (const auto& partition : led_by(1)) EXPECT_EQ(partition.leader_epoch.value(), 2);
  EXPECT_LT(writes, 60);
}

TEST_F(ClusterLeaders, AnEpochThatIsNotTheRegisteredOneIsRefused) {
  start(2);
  EXPECT_EQ(pull_as(1, 0), WireError::ok);
  EXPECT_EQ(pull_as(1, 1), WireError::stale_broker_epoch);
  EXPECT_EQ(pull_as(1, -1), WireError::stale_broker_epoch);
  EXPECT_EQ(pull_as(9, 0), WireError::stale_broker_epoch);
  protocol::ReportReplicasRequest report;
  report.broker = 1;
  report.broker_epoch = 7;
  EXPECT_EQ(run(wait_for_controller().report(report, in(std::chrono::seconds(1))))
                .envelope.status.error(),
            WireError::stale_broker_epoch);
}

// The registration is newer than what the controller has heard of: it looks before it refuses.
TEST_F(ClusterLeaders, ANewRegistrationIsKnownBeforeItsWatchFires) {
  start(2);
  auto& one = bystander();
  auto& controller = wait_for_controller();
  metadata::expire_session(*state_, one.store->session());
  ASSERT_TRUE(wait_until([&] { return one.member.epoch() == model::BrokerEpoch(1); }));
  protocol::PullImageRequest request;
  request.broker = one.id;
  request.broker_epoch = 1;
  EXPECT_TRUE(run(controller.pull(request, in(std::chrono::seconds(1)))).envelope.status.ok());
}

TEST_F(ClusterLeaders, SteadyStateMakesNoWriteButHeartbeats) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  wait_until_settled();
  simulator_.run_for(std::chrono::seconds(5));
  const auto versions = [&] {
    std::map<std::string, std::int32_t> all;
    for (const auto& [path, node] : state_->nodes) {
      if (!path.starts_with(layout::kBrokersHeartbeat)) all[path] = node.version;
    }
    return all;
  };
  const auto before = versions();
  simulator_.run_for(std::chrono::minutes(10));
  EXPECT_EQ(versions(), before);
}

// With all of ZooKeeper away no session ends: nothing changes, and changes are refused by name.
TEST_F(ClusterLeaders, TenMinutesWithoutTheStoreChangeNothing) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  wait_until_settled();
  const auto before = topic("orders")->partitions;
  const auto version = wait_for_controller().image()->version();
  state_->fault = [](bool) { return StoreFault::unavailable; };
  simulator_.run_for(std::chrono::minutes(5));
  EXPECT_EQ(create("more", 1).status.error(), WireError::metadata_unavailable);
  EXPECT_EQ(remove("orders").status.error(), WireError::metadata_unavailable);
  simulator_.run_for(std::chrono::minutes(5));
  for (const auto& one : brokers_) {
    EXPECT_FALSE(one->member.has_lease(runtime_.now()));
    for (const auto& partition : before)
      EXPECT_EQ(one->leads(partition.id), partition.leader.value() == one->id);
  }
  state_->fault = nullptr;
  ASSERT_TRUE(wait_until([&] {
    return std::ranges::all_of(
        brokers_, [&](const auto& one) { return one->member.has_lease(runtime_.now()); });
  }));
  EXPECT_TRUE(create("more", 1).status.ok());
  EXPECT_EQ(wait_for_controller().image()->version() >> 32, version >> 32);
  for (const auto& partition : before)
    EXPECT_EQ(topic("orders")->find(partition.id.partition)->leader_epoch, partition.leader_epoch);
}

// It comes back without any of their sessions, as after a loss of its majority and a long pause.
TEST_F(ClusterLeaders, AStoreThatForgotAllSessionsFindsAllBrokersAgain) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  for (const auto& one : brokers_) metadata::cut_off(*state_, one->store->session());
  for (const auto& one : brokers_) metadata::expire_session(*state_, one->store->session());
  simulator_.run_for(std::chrono::minutes(10));
  for (const auto& one : brokers_) metadata::reconnect(*state_, one->store->session());
  ASSERT_TRUE(wait_until([&] {
    return std::ranges::all_of(
        brokers_, [](const auto& one) { return one->member.epoch() == model::BrokerEpoch(1); });
  }));
  wait_until_settled();
  EXPECT_EQ(topic("orders")->visible().size(), 6u);
  EXPECT_TRUE(create("more", 1).status.ok());
}

/// Whether any image was ahead of the store while brokers came and went and writes failed.
class ImagesAndStore : public ClusterLeaders {
 protected:
  bool an_image_was_ahead() {
    const auto ahead = std::make_shared<bool>(false);  // of the simulator too, which lives longer
    start(3);
    EXPECT_TRUE(create("orders", 6).status.ok());
    wait_until_settled();
    simulator_.on_step([this, ahead] {
      for (const auto& one : brokers_) {
        auto* const controller = one->candidate.controller();
        if (controller == nullptr || !controller->image()) continue;
        for (const auto& [name, topic] : controller->image()->topics()) {
          for (const auto& partition : topic->partitions) {
            const auto stored = state(partition.id);
            *ahead = *ahead || partition.leader_epoch > stored.leader_epoch ||
                     partition.version.value() >
                         state_->nodes.at(layout::partition_state(partition.id)).version;
          }
        }
      }
    });
    for (int round = 0; round < 3; ++round) {
      const int id = bystander().id;
      broker(id).stop();
      int writes = 0;
      state_->fault = [writes](bool write) mutable {
        return write && ++writes % 2 == 1 ? StoreFault::unavailable : StoreFault::none;
      };
      simulator_.run_for(std::chrono::seconds(3));
      state_->fault = nullptr;
      EXPECT_EQ(add(id).start(), Error());
      simulator_.run_for(std::chrono::seconds(5));
    }
    return *ahead;
  }
};

// CTL-2
TEST_F(ImagesAndStore, NoImageIsAheadOfTheStore) { EXPECT_FALSE(an_image_was_ahead()); }

TEST_F(ImagesAndStore, AnImageThatWasPublishedBeforeTheStoreConfirmedItIsCaught) {
  const base::EnabledMutant mutant("image_before_confirmed");
  EXPECT_TRUE(an_image_was_ahead());
}

}  // namespace
}  // namespace mq::controller
