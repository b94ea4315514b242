// Members, elections and the controller on a real ZooKeeper, with its sessions, its watches and its
// lost answers.
#include <gtest/gtest.h>

#include "controller/candidate.h"
#include "metadata/znode_layout.h"
#include "unit/metadata/run_loop.h"
#include "unit/metadata/zookeeper_world.h"

namespace mq::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ClusterOnZooKeeper : public ::testing::Test {
 protected:
  /// One broker without disks: it pulls images, and opens whatever it is given.
  struct Broker {
    Broker(std::unique_ptr<metadata::MetadataStore> its_store, base::Runtime& runtime, int id)
        : store(std::move(its_store)),
          member(member_config(id), *store, runtime),
          candidate(cluster_config(id), *store, member, runtime),
          tasks(runtime) {}
    static MemberConfig member_config(int id) {
      MemberConfig config;
      config.broker = model::BrokerId(id);
      config.incarnation = base::Uuid::from_random(static_cast<std::uint64_t>(id), 7);
      config.disks = {base::Uuid::from_random(static_cast<std::uint64_t>(id), 8)};
      config.advertised = {"broker-" + std::to_string(id), 9500};
      return config;
    }
    static ControllerConfig cluster_config(int id) {
      ControllerConfig config;
      config.broker = model::BrokerId(id);
      config.cluster_id = base::Uuid::from_random(77, 77);
      config.advertised = {"broker-" + std::to_string(id), 9500};
      return config;
    }
    std::unique_ptr<metadata::MetadataStore> store;
    Member member;
    Candidate candidate;
    bool stopping = false;
    base::TaskGroup tasks;
  };

  ~ClusterOnZooKeeper() override {
    world_.relay().hold(false);
    world_.relay().lose_answers(false);
    for (auto& broker : brokers_) stop(*broker);
  }
  void stop(Broker& broker) {
    if (std::exchange(broker.stopping, true)) return;
    broker.store->shorten_waits();
    loop_.run(broker.candidate.stop());
    loop_.run(broker.tasks.wait());
    loop_.run(broker.member.stop());
    loop_.run(broker.store->close());
  }
  Broker& start(int id, const metadata::ZooKeeperOptions& options) {
    std::string trouble;
    auto store = loop_.run(metadata::open_zookeeper_store(options, loop_.runtime(), trouble));
    if (!store) throw std::runtime_error(trouble);
    auto& broker =
        *brokers_.emplace_back(std::make_unique<Broker>(*std::move(store), loop_.runtime(), id));
    if (const auto started = loop_.run(broker.member.start()); !started)
      throw std::runtime_error(started.error().message());
    broker.candidate.start();
    broker.tasks.spawn("the broker", run_broker(broker, id));
    return broker;
  }
  /// Pulls and reports; every broker here has one and the same logs, which are all empty.
  asio::awaitable<void> run_broker(Broker& broker, int id) {
    std::uint64_t version = 0;
    model::BrokerEpoch epoch;
    while (!broker.stopping) {
      auto* const leader = controller();
      const bool pulled = leader != nullptr && broker.member.registered() &&
                          co_await pull_once(broker, id, *leader, version, epoch);
      if (!pulled) co_await loop_.runtime().sleep_for(milliseconds(20));
    }
  }
  asio::awaitable<bool> pull_once(Broker& broker, int id, Controller& leader,
                                  std::uint64_t& version, model::BrokerEpoch& epoch) {
    protocol::PullImageRequest request;
    request.broker = id;
    request.broker_epoch = broker.member.epoch().value();
    request.have_version = broker.member.epoch() == epoch ? version : 0;
    const auto asked_under = broker.member.epoch();
    const auto deadline = loop_.runtime().now() + milliseconds(200);
    const auto answer = co_await leader.pull(std::move(request), deadline);
    if (!answer.envelope.status.ok()) co_return false;
    version = answer.version;
    epoch = asked_under;
    protocol::ReportReplicasRequest report;
    report.broker = id;
    report.broker_epoch = asked_under.value();
    for (const auto& topic : answer.topics) {
      for (const auto& partition : topic.partitions) {
        auto& one = report.replicas.emplace_back();
        one.partition = {topic.id, partition.partition};
        one.intact_since = model::BrokerEpoch(0);
      }
    }
    for (const auto& topic : answer.deleting) report.deleted.push_back(topic.id);
    if (report.replicas.empty() && report.deleted.empty()) co_return true;
    // A few hundred at a time, as brokers do.
    const auto reported = co_await leader.report(std::move(report), deadline);
    co_return reported.envelope.status.ok();
  }
  Controller* controller() {
    for (const auto& broker : brokers_) {
      if (broker->candidate.controller() != nullptr) return broker->candidate.controller();
    }
    return nullptr;
  }
  Controller& wait_for_controller() {
    if (!loop_.eventually([this] { return controller() != nullptr; }))
      throw std::runtime_error("nobody is elected");
    return *controller();
  }
  protocol::TopicResult create(const std::string& name, std::int32_t partitions) {
    protocol::NewTopic topic;
    topic.name = name;
    topic.partitions = partitions;
    return loop_.run(wait_for_controller().create_topic(std::move(topic), false,
                                                        loop_.runtime().now() + seconds(15)));
  }

  mq::testing::RunLoop loop_;
  mq::testing::ZooKeeperWorld world_;
  std::vector<std::unique_ptr<Broker>> brokers_;
};

TEST_F(ClusterOnZooKeeper, OneIsElectedAndTheOtherTakesOverWhenItLeaves) {
  auto& first = start(1, world_.direct_options());
  auto& second = start(2, world_.direct_options());
  ASSERT_TRUE(loop_.eventually([&] {
    return first.candidate.leader() && first.candidate.leader() == second.candidate.leader();
  }));
  ASSERT_NE(first.candidate.controller() == nullptr, second.candidate.controller() == nullptr);
  ASSERT_TRUE(create("orders", 10).status.ok());
  auto& leaves = first.candidate.controller() != nullptr ? first : second;
  auto& stays = &leaves == &first ? second : first;
  const auto before = leaves.candidate.controller()->image();
  stop(leaves);
  ASSERT_TRUE(loop_.eventually([&] { return stays.candidate.controller() != nullptr; }));
  const auto after = stays.candidate.controller()->image();
  EXPECT_GT(after->version(), before->version());
  ASSERT_NE(after->find_topic("orders"), nullptr);
  EXPECT_EQ(after->find_topic("orders")->id, before->find_topic("orders")->id);
}

TEST_F(ClusterOnZooKeeper, ThousandsOfPartitionsAreMadeLedAgainAndDeleted) {
  auto& one = start(1, world_.direct_options());
  ASSERT_TRUE(create("many", 5000).status.ok());
  const auto lost = one.member.epoch();
  stop(one);
  auto& again = start(1, world_.direct_options());
  EXPECT_GT(again.member.epoch(), lost);
  wait_for_controller();
  const auto all_led = [&] {
    const auto image = controller() != nullptr ? controller()->image() : nullptr;
    if (!image || !image->find_topic("many")) return false;
    const auto& partitions = image->find_topic("many")->partitions;
    return std::ranges::all_of(partitions,
                               [](const auto& each) { return each.leader == model::BrokerId(1); });
  };
  ASSERT_TRUE(loop_.eventually(all_led));
  const auto deadline = loop_.runtime().now() + seconds(15);
  EXPECT_TRUE(loop_.run(controller()->delete_topic("many", deadline)).status.ok());
  ASSERT_TRUE(loop_.eventually([&] {
    const auto left = loop_.run(again.store->children(std::string(metadata::layout::kDeleting)));
    return left && left->empty();
  }));
  EXPECT_TRUE(loop_.run(again.store->children(std::string(metadata::layout::kState)))->empty());
}

// CTL-4: cut off until its session has ended, and back: another registration, without a restart.
TEST_F(ClusterOnZooKeeper, ASessionThatEndedIsFollowedByANewRegistrationAndElection) {
  auto& cut = start(1, world_.options());
  wait_for_controller();
  EXPECT_GT(cut.store->session_timeout(), base::Duration::zero());
  ASSERT_TRUE(loop_.eventually([&] { return cut.member.has_lease(loop_.runtime().now()); }));
  auto& other = start(2, world_.direct_options());
  world_.relay().hold(true);
  ASSERT_TRUE(loop_.eventually([&] { return other.candidate.controller() != nullptr; }));
  EXPECT_FALSE(cut.member.has_lease(loop_.runtime().now()));
  world_.relay().hold(false);
  ASSERT_TRUE(loop_.eventually([&] {
    return cut.member.registered() && cut.member.epoch() == model::BrokerEpoch(1) &&
           cut.candidate.leader() && cut.candidate.leader()->broker == model::BrokerId(2);
  }));
  EXPECT_EQ(cut.candidate.controller(), nullptr);
  ASSERT_TRUE(loop_.eventually([&] {
    const auto* info = controller()->image()->find_broker(model::BrokerId(1));
    return info != nullptr && info->alive && info->epoch == model::BrokerEpoch(1);
  }));
  EXPECT_TRUE(loop_.eventually([&] { return cut.member.has_lease(loop_.runtime().now()); }));
  EXPECT_TRUE(create("after", 4).status.ok());
}

// Its watches saw nothing of what happened while it was cut off, and its session lived on.
TEST_F(ClusterOnZooKeeper, WhatHappenedWhileTheConnectionWasGoneIsFoundOut) {
  auto& leads = start(1, world_.direct_options());
  wait_for_controller();
  auto& away = start(2, world_.options());
  auto& third = start(3, world_.direct_options());
  ASSERT_TRUE(loop_.eventually([&] { return away.candidate.leader().has_value(); }));
  world_.relay().refuse(true);
  world_.relay().cut();
  stop(leads);
  ASSERT_TRUE(loop_.eventually([&] { return third.candidate.controller() != nullptr; }));
  world_.relay().refuse(false);
  ASSERT_TRUE(loop_.eventually([&] {
    return away.candidate.leader() && away.candidate.leader()->broker == model::BrokerId(3);
  }));
}

// MET-1, on the wire: the multi took effect, and its answer is lost with the connection.
TEST_F(ClusterOnZooKeeper, ACreateWhoseAnswersAreLostIsResolved) {
  auto& one = start(1, world_.options());
  wait_for_controller();
  ASSERT_TRUE(create("before", 2).status.ok());
  world_.relay().lose_answers(true);
  loop_.runtime().start_timer(loop_.runtime().now() + milliseconds(300), [&] {
    world_.relay().lose_answers(false);
    world_.relay().cut();
  });
  const auto result = create("orders", 4);
  EXPECT_TRUE(result.status.ok()) << result.status.text;
  EXPECT_TRUE(loop_.run(one.store->get("/topics/orders")));
}

}  // namespace
}  // namespace mq::controller
