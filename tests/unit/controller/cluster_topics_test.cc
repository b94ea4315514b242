// Topics over several brokers: made, altered, deleted, and each answer true for all of them.
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using protocol::WireError;

class ClusterTopics : public mq::testing::Cluster {
 protected:
  protocol::TopicResult add_partitions(const std::string& name, std::int32_t total,
                                       base::Duration patience = std::chrono::seconds(100)) {
    return run(wait_for_controller().add_partitions(name, total, in(patience)));
  }
  protocol::TopicResult alter(protocol::AlterTopic change) {
    return run(wait_for_controller().alter_topic(std::move(change), in(std::chrono::seconds(100))));
  }
  /// Another broker than the controller's.
  mq::testing::FakeBroker& bystander() { return broker(controlling()->id == 1 ? 2 : 1); }
  void expect_nothing_left() {
    EXPECT_TRUE(paths("/topics/").empty());
    EXPECT_TRUE(paths("/state/").empty());
    EXPECT_TRUE(paths("/deleting/").empty());
    for (const auto& [id, logs] : logs_) EXPECT_TRUE(logs.last_epoch.empty()) << id;
  }
};

TEST_F(ClusterTopics, ACreatedTopicIsSpreadAndServedEverywhereWhenItIsAnswered) {
  start(3);
  const auto result = create("orders", 9);
  ASSERT_EQ(result.status.error(), WireError::ok) << result.status.text;
  EXPECT_EQ(result.partitions, 9);
  std::map<std::int32_t, int> led;
  for (const auto& partition : topic("orders")->partitions) {
    ++led[partition.leader.value()];
    EXPECT_EQ(partition.leader_epoch, model::LeaderEpoch(0));
    EXPECT_TRUE(logs_[partition.leader.value()].last_epoch.contains(partition.id));
  }
  EXPECT_EQ(led, (std::map<std::int32_t, int>{{1, 3}, {2, 3}, {3, 3}}));
  EXPECT_EQ(topic("orders")->visible().size(), 9u);
  wait_until_settled();
}

TEST_F(ClusterTopics, ASmallTopicIsOneWrite) {
  start(3);
  std::vector<std::string> versions;
  options_.session_timeout = {};
  simulator_.run_for(std::chrono::seconds(1));
  int writes = 0;
  state_->on_applied = [&] {
    // Heartbeats go on.
    if (state_->nodes.contains("/topics/orders")) return;
    ++writes;
  };
  const auto before = paths("/").size();
  ASSERT_TRUE(create("orders", 20).status.ok());
  EXPECT_EQ(paths("/").size(), before + 22);
  EXPECT_EQ(state_->nodes.at("/topics/orders").version, 0);
  for (const auto& partition : topic("orders")->partitions)
    EXPECT_EQ(state_->nodes.at(layout::partition_state(partition.id)).version, 0);
  state_->on_applied = nullptr;
}

TEST_F(ClusterTopics, TenThousandPartitionsAreMadeAndDeleted) {
  start(3);
  ASSERT_TRUE(create("many", 10'000).status.ok());
  EXPECT_EQ(topic("many")->partitions.size(), 10'000u);
  wait_until_settled();
  ASSERT_TRUE(remove("many").status.ok());
  ASSERT_TRUE(wait_until([&] { return paths("/deleting/").empty(); }));
  expect_nothing_left();
}

// The caller is told when the topic can be used, and clients are not shown it before.
TEST_F(ClusterTopics, CreateWaitsForEveryLivingBrokerAndShowsNothingBefore) {
  start(3);
  bystander().reporting = false;
  const auto late = create("orders", 6, std::chrono::seconds(5));
  EXPECT_EQ(late.status.error(), WireError::timed_out);
  ASSERT_NE(topic("orders"), nullptr);
  EXPECT_TRUE(topic("orders")->visible().empty());
  bystander().reporting = true;
  ASSERT_TRUE(wait_until([&] { return topic("orders")->visible().size() == 6; }));
  EXPECT_EQ(create("orders", 6).status.error(), WireError::topic_exists);
}

// What is being made may be taken back: who asks for the same waits for what becomes of it.
TEST_F(ClusterTopics, ACreateOfATopicThatIsBeingMadeWaitsForItsOutcome) {
  start(3);
  bystander().reporting = false;
  EXPECT_EQ(create("orders", 6, std::chrono::seconds(5)).status.error(), WireError::timed_out);
  EXPECT_EQ(create("orders", 6, std::chrono::seconds(5)).status.error(), WireError::timed_out);
  EXPECT_EQ(remove("other", std::chrono::seconds(5)).status.error(), WireError::unknown_topic);
  simulator_.start_timer(in(std::chrono::seconds(1)), [&] { bystander().reporting = true; });
  EXPECT_EQ(create("orders", 6).status.error(), WireError::topic_exists);
  EXPECT_EQ(topic("orders")->visible().size(), 6u);
}

TEST_F(ClusterTopics, ABrokerThatDiesMeanwhileHoldsNoCreateUp) {
  start(3);
  auto& dies = bystander();
  dies.reporting = false;
  simulator_.start_timer(in(std::chrono::seconds(1)), [&] { dies.kill(); });
  const auto result = create("orders", 6);
  EXPECT_TRUE(result.status.ok()) << result.status.text;
  // Its partitions wait for it, and the others are led.
  int leaderless = 0;
  ASSERT_TRUE(wait_until([&] {
    leaderless = 0;
    for (const auto& partition : topic("orders")->partitions)
      leaderless += partition.leader == model::BrokerId() ? 1 : 0;
    return leaderless == 2;
  })) << leaderless;
}

TEST_F(ClusterTopics, ATopicThatOneBrokerCannotOpenIsTakenBack) {
  start(3);
  logs_[bystander().id].refuses =
      protocol::Status::of(WireError::storage_full, "no space", bystander().id);
  const auto result = create("orders", 6);
  EXPECT_EQ(result.status.error(), WireError::storage_full);
  EXPECT_EQ(result.status.text, "no space");
  EXPECT_EQ(result.status.broker, bystander().id);
  ASSERT_TRUE(wait_until([&] { return paths("/deleting/").empty(); }));
  expect_nothing_left();
  logs_[bystander().id].refuses.reset();
  EXPECT_TRUE(create("orders", 6).status.ok());
}

TEST_F(ClusterTopics, ADeletedTopicIsServedByNobodyWhenItIsAnswered) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  const auto partitions = topic("orders")->partitions;
  ASSERT_TRUE(remove("orders").status.ok());
  for (const auto& partition : partitions) {
    for (const auto& one : brokers_) EXPECT_FALSE(one->leads(partition.id));
  }
  EXPECT_EQ(remove("orders").status.error(), WireError::unknown_topic);
  ASSERT_TRUE(wait_until([&] { return paths("/deleting/").empty(); }));
  expect_nothing_left();
}

TEST_F(ClusterTopics, DeleteWaitsForABrokerThatHangs) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  bystander().pulling = false;
  simulator_.run_for(std::chrono::seconds(5));
  EXPECT_EQ(remove("orders", std::chrono::seconds(5)).status.error(), WireError::timed_out);
  EXPECT_TRUE(paths("/topics/").empty());
  bystander().pulling = true;
  ASSERT_TRUE(wait_until([&] { return paths("/deleting/").empty(); }));
}

// A broker that is away deletes its files when it is back, also under another controller.
TEST_F(ClusterTopics, FilesOnABrokerThatIsAwayGoWhenItReturns) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  auto& away = bystander();
  const int id = away.id;
  away.stop();
  ASSERT_TRUE(remove("orders").status.ok());
  simulator_.run_for(std::chrono::seconds(100));
  EXPECT_EQ(paths("/deleting/").size(), 1u);
  EXPECT_FALSE(logs_[id].last_epoch.empty());
  const int first = controlling()->id;
  controlling()->stop();
  wait_for_controller();
  ASSERT_EQ(add(id).start(), Error());
  ASSERT_TRUE(wait_until([&] { return logs_[id].last_epoch.empty(); }));
  // The new controller has not heard of the former one's files.
  simulator_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(paths("/deleting/").size(), 1u);
  ASSERT_EQ(add(first).start(), Error());
  ASSERT_TRUE(wait_until([&] { return paths("/deleting/").empty(); }));
  expect_nothing_left();
}

// PAR-6
TEST_F(ClusterTopics, ATopicMadeAgainHasANewUuidAndNothingOfTheOld) {
  start(3);
  ASSERT_TRUE(create("orders", 3).status.ok());
  const auto old = topic("orders")->id;
  for (auto& [id, logs] : logs_) logs.deletes = false;
  ASSERT_TRUE(remove("orders").status.ok());
  ASSERT_TRUE(create("orders", 3).status.ok());
  EXPECT_NE(topic("orders")->id, old);
  wait_until_settled();
  EXPECT_EQ(wait_for_controller().image()->deleting().size(), 1u);
  EXPECT_EQ(wait_for_controller().image()->deleting()[0].id, old);
}

TEST_F(ClusterTopics, RefusalsComeBeforeAnythingIsWritten) {
  start(1);
  protocol::NewTopic topic;
  topic.name = "orders";
  topic.partitions = 3;
  const auto refused = [&](auto change) {
    auto bad = topic;
    change(bad);
    return run(wait_for_controller().create_topic(bad, false, in(std::chrono::seconds(9))))
        .status.error();
  };
  EXPECT_EQ(refused([](auto& bad) { bad.name = "../x"; }), WireError::invalid_topic_name);
  EXPECT_EQ(refused([](auto& bad) { bad.partitions = 0; }), WireError::invalid_partitions);
  EXPECT_EQ(refused([](auto& bad) { bad.partitions = 10'001; }), WireError::invalid_partitions);
  EXPECT_EQ(refused([](auto& bad) { bad.replicas = 3; }), WireError::invalid_replicas);
  EXPECT_EQ(refused([](auto& bad) { bad.min_isr = 2; }), WireError::invalid_replicas);
  EXPECT_EQ(refused([](auto& bad) { bad.settings["x"] = "y"; }), WireError::invalid_config);
  EXPECT_EQ(run(wait_for_controller().create_topic(topic, true, in(std::chrono::seconds(9))))
                .status.error(),
            WireError::ok);
  EXPECT_TRUE(paths("/topics/").empty());
  EXPECT_TRUE(paths("/state/").empty());
}

TEST_F(ClusterTopics, NoBrokerGetsMorePartitionsThanItHoldsOpen) {
  partitions_max_ = 10;
  start(2);
  EXPECT_TRUE(create("a", 18).status.ok());
  const auto refused = create("b", 4);
  EXPECT_EQ(refused.status.error(), WireError::invalid_request);
  EXPECT_NE(refused.status.text.find("10"), std::string::npos) << refused.status.text;
  EXPECT_TRUE(create("b", 2).status.ok());
}

TEST_F(ClusterTopics, AlteredSettingsAreInTheImageOfEveryBrokerWhenAnswered) {
  start(3);
  ASSERT_TRUE(create("orders", 3).status.ok());
  protocol::AlterTopic change;
  change.name = "orders";
  change.set = {{"retention.age", "3d"}, {"durability", "memory"}};
  ASSERT_TRUE(alter(change).status.ok());
  const auto version = wait_for_controller().image()->version();
  for (const auto& one : brokers_) EXPECT_GE(one->version, version);
  EXPECT_EQ(topic("orders")->overrides, change.set);
  EXPECT_EQ(topic("orders")->settings.durability, model::Durability::memory);
  protocol::AlterTopic back;
  back.name = "orders";
  back.unset = {"durability"};
  ASSERT_TRUE(alter(back).status.ok());
  EXPECT_EQ(topic("orders")->overrides.size(), 1u);
  // Another controller reads it so.
  controlling()->stop();
  EXPECT_EQ(topic("orders")->overrides.at("retention.age"), "3d");
}

TEST_F(ClusterTopics, ABadSettingAltersNothing) {
  start(1);
  ASSERT_TRUE(create("orders", 3).status.ok());
  const auto version = state_->nodes.at("/topics/orders").version;
  protocol::AlterTopic change;
  change.name = "orders";
  change.set = {{"retention.age", "soon"}};
  EXPECT_EQ(alter(change).status.error(), WireError::invalid_config);
  change.set = {};
  change.unset = {"no.such"};
  EXPECT_EQ(alter(change).status.error(), WireError::invalid_config);
  change.unset = {};
  EXPECT_EQ(alter(change).status.error(), WireError::ok);
  change.name = "ordres";
  EXPECT_EQ(alter(change).status.error(), WireError::unknown_topic);
  EXPECT_EQ(state_->nodes.at("/topics/orders").version, version);
}

TEST_F(ClusterTopics, AddedPartitionsAreSpreadAndServed) {
  start(3);
  ASSERT_TRUE(create("orders", 3).status.ok());
  const auto before = topic("orders")->partitions;
  const auto result = add_partitions("orders", 9);
  ASSERT_TRUE(result.status.ok()) << result.status.text;
  EXPECT_EQ(result.partitions, 9);
  const auto after = topic("orders");
  ASSERT_EQ(after->visible().size(), 9u);
  std::map<std::int32_t, int> led;
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(after->partitions[i].id.partition, static_cast<std::int32_t>(i));
    ++led[after->partitions[i].leader.value()];
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(after->partitions[i].leader, before[i].leader);
  EXPECT_EQ(led, (std::map<std::int32_t, int>{{1, 3}, {2, 3}, {3, 3}}));
  wait_until_settled();
  // Repeating it changes nothing.
  const auto version = state_->nodes.at("/topics/orders").version;
  EXPECT_TRUE(add_partitions("orders", 9).status.ok());
  EXPECT_EQ(state_->nodes.at("/topics/orders").version, version);
  EXPECT_EQ(add_partitions("orders", 8).status.error(), WireError::invalid_partitions);
  EXPECT_EQ(add_partitions("orders", 10'001).status.error(), WireError::invalid_partitions);
  EXPECT_EQ(add_partitions("ordres", 9).status.error(), WireError::unknown_topic);
}

TEST_F(ClusterTopics, PartitionsThatCannotBeOpenedAreTakenBackAndTheirNumbersNotUsedAgain) {
  start(3);
  ASSERT_TRUE(create("orders", 3).status.ok());
  logs_[bystander().id].refuses =
      protocol::Status::of(WireError::storage_full, "no space", bystander().id);
  EXPECT_EQ(add_partitions("orders", 9).status.error(), WireError::storage_full);
  EXPECT_EQ(topic("orders")->partitions.size(), 3u);
  logs_[bystander().id].refuses.reset();
  ASSERT_TRUE(add_partitions("orders", 6).status.ok());
  ASSERT_EQ(topic("orders")->partitions.size(), 6u);
  EXPECT_EQ(topic("orders")->partitions[3].id.partition, 9);
  wait_until_settled();
  EXPECT_EQ(paths("/state/").size(), 7u) << "nothing is left of the first try";
}

// The broker of the first new partition is lost while the others are still being written, so that
// nobody waits for it any more when another broker refuses.
TEST_F(ClusterTopics, PartitionsAreTakenBackFromTheFirstNewOneOnWhoeverIsLost) {
  start(3);
  wait_for_controller();
  for (int round = 0; round < 6; ++round) {
    const auto name = "t" + std::to_string(round);
    ASSERT_TRUE(create(name, 3).status.ok());
    const auto first_new = layout::partition_state({topic(name)->id, 3});
    int lost = 0;
    state_->on_applied = [&] {
      const auto node = state_->nodes.find(first_new);
      if (lost != 0 || node == state_->nodes.end()) return;
      lost = metadata::decode_partition_state(node->second.value)->leader.value();
      if (lost == controlling()->id) return;
      for (auto& [id, logs] : logs_) {
        if (id == lost || id == controlling()->id) continue;
        logs.refuses = protocol::Status::of(WireError::storage_full, "no space", id);
      }
      broker(lost).kill();
      metadata::expire_session(*state_, broker(lost).store->session());
    };
    const auto result = add_partitions(name, 10'000);
    state_->on_applied = nullptr;
    for (auto& [id, logs] : logs_) logs.refuses.reset();
    if (lost == controlling()->id) continue;
    EXPECT_EQ(result.status.error(), WireError::storage_full);
    EXPECT_EQ(topic(name)->partitions.size(), 3u) << name;
    EXPECT_EQ(add(lost).start(), base::Error());
    wait_until_settled();
  }
}

TEST_F(ClusterTopics, ManyTopicsAtOnceAreMadeInTheOrderAsked) {
  start(3);
  auto& controller = wait_for_controller();
  std::vector<std::shared_ptr<mq::testing::RunOutcome<protocol::TopicResult>>> outcomes;
  for (int i = 0; i < 50; ++i) {
    protocol::NewTopic topic;
    topic.name = "t" + std::to_string(i % 40);
    topic.partitions = 2;
    outcomes.push_back(mq::testing::start_for_outcome(
        simulator_.executor(),
        controller.create_topic(std::move(topic), false, in(std::chrono::seconds(50))), [] {}));
  }
  ASSERT_TRUE(wait_until([&] {
    return std::ranges::all_of(outcomes, [](const auto& one) { return one->value.has_value(); });
  }));
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(outcomes[static_cast<std::size_t>(i)]->value->status.error(),
              i < 40 ? WireError::ok : WireError::topic_exists);
}

// What an earlier controller had begun to add when it was broken off.
TEST_F(ClusterTopics, StateNodesOfNoPartitionAreSweptByTheNextController) {
  start(2);
  std::vector<base::Uuid> ids;
  for (int i = 0; i < 120; ++i) {
    const auto made = create(fmt::format("t{}", i), 2);
    ASSERT_TRUE(made.status.ok());
    ids.push_back(made.id);
  }
  const auto before = paths("/state/");
  for (const auto& id : ids)
    state_->nodes[layout::partition_state({id, 7})] =
        state_->nodes.at(layout::partition_state({id, 1}));
  metadata::expire_session(*state_, controlling()->store->session());
  ASSERT_TRUE(wait_until([&] { return paths("/state/") == before; }));
  wait_until_settled();
}

}  // namespace
}  // namespace mq::controller
