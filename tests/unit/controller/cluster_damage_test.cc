// A damaged node of the metadata takes along what belongs to it, and nothing else.
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::Node;
using protocol::WireError;

class ClusterDamage : public mq::testing::Cluster {
 protected:
  ClusterDamage() {
    start(2);
    EXPECT_TRUE(create("billing", 3).status.ok());
    EXPECT_TRUE(create("orders", 4).status.ok());
    wait_until_settled();
    orders_ = topic("orders")->id;
  }
  void elect_anew() {
    metadata::expire_session(*state_, controlling()->store->session());
    ASSERT_TRUE(wait_until([this] { return controlling() == nullptr; }));
    wait_for_controller();
    ASSERT_TRUE(wait_until([this] { return leads_all_of("billing"); }));
  }
  bool leads_all_of(const std::string& name) {
    const auto* const leader = controlling();
    if (leader == nullptr) return false;
    const auto found = leader->candidate.controller()->image()->find_topic(name);
    return found && std::ranges::all_of(found->partitions, [this](const auto& one) {
             return one.leader != model::BrokerId() && broker(one.leader.value()).leads(one.id);
           });
  }
  const std::vector<metadata::DamagedNode>& damage() {
    return wait_for_controller().image()->damage();
  }
  protocol::TopicResult add(const std::string& name, std::int32_t total) {
    return run(wait_for_controller().add_partitions(name, total, in(std::chrono::seconds(20))));
  }
  protocol::TopicResult alter(const std::string& name) {
    protocol::AlterTopic change;
    change.name = name;
    change.set["retention.age"] = "3d";
    return run(wait_for_controller().alter_topic(change, in(std::chrono::seconds(20))));
  }
  std::string state_path(std::int32_t partition) const {
    return layout::partition_state({orders_, partition});
  }
  bool whole_again() {
    return controlling() != nullptr && damage().empty() && topic("orders") &&
           leads_all_of("orders") && settled();
  }

  base::Uuid orders_;
};

TEST_F(ClusterDamage, OfATopicNodeTakesThatTopicAlone) {
  const auto value = std::exchange(state_->nodes.at("/topics/orders").value, "\xff\xff");
  const auto states = paths("/state/");
  elect_anew();
  ASSERT_EQ(damage().size(), 1U);
  EXPECT_EQ(damage()[0].topic, "orders");
  EXPECT_NE(damage()[0].text.find("/topics/orders"), std::string::npos) << damage()[0].text;
  EXPECT_EQ(topic("orders"), nullptr);
  // Nothing may be made or removed under its name, and the error says why.
  for (const auto& refused : {create("orders", 1), remove("orders"), add("orders", 8)}) {
    EXPECT_EQ(refused.status.error(), WireError::metadata_unavailable);
    EXPECT_EQ(refused.status.text, damage()[0].text);
  }
  EXPECT_TRUE(create("more", 2).status.ok());
  simulator_.run_for(std::chrono::minutes(3));
  for (const auto& path : states) EXPECT_TRUE(state_->nodes.contains(path)) << path;
  state_->nodes.at("/topics/orders").value = value;
  EXPECT_TRUE(wait_until([this] { return whole_again(); }, std::chrono::seconds(10)));
  EXPECT_EQ(topic("orders")->id, orders_);
}

TEST_F(ClusterDamage, OfAStateNodeTakesThatPartitionAlone) {
  const auto node = state_->nodes.extract(state_path(2)).mapped();
  elect_anew();
  ASSERT_EQ(damage().size(), 1U);
  EXPECT_EQ(damage()[0].path, state_path(2));
  EXPECT_NE(damage()[0].text.find("orders-2"), std::string::npos) << damage()[0].text;
  ASSERT_TRUE(wait_until([this] {
    const auto found = topic("orders");
    return found && found->partitions.size() == 4 && found->find(2)->leader == model::BrokerId() &&
           std::ranges::count(found->partitions, model::BrokerId(),
                              &metadata::PartitionAssignment::leader) == 1;
  }));
  EXPECT_EQ(topic("orders")->find(2)->replicas.size(), 1U);
  EXPECT_TRUE(alter("orders").status.ok());
  EXPECT_EQ(add("orders", 6).status.text, damage()[0].text);
  state_->nodes[state_path(2)] = node;
  EXPECT_TRUE(wait_until([this] { return whole_again(); }, std::chrono::seconds(10)));
  EXPECT_EQ(topic("orders")->partitions.size(), 4U);
  EXPECT_EQ(topic("orders")->overrides.size(), 1U);
  EXPECT_TRUE(add("orders", 6).status.ok());
}

TEST_F(ClusterDamage, OfAStateNodeGoesWithTheTopic) {
  state_->nodes.erase(state_path(0));
  state_->nodes.at(state_path(3)).value = "nonsense";
  elect_anew();
  ASSERT_EQ(damage().size(), 2U);
  EXPECT_TRUE(remove("orders").status.ok());
  EXPECT_TRUE(damage().empty());
  EXPECT_TRUE(wait_until([this] {
    return paths("/deleting/").empty() && paths(layout::topic_state(orders_)).empty();
  }));
  EXPECT_TRUE(create("orders", 2).status.ok());
}

TEST_F(ClusterDamage, StrayNodesAreNamedAndInNobodysWay) {
  const auto states = paths("/state/");
  const auto nodes = state_->nodes;
  for (const char* path :
       {"/topics/st ray", "/deleting/foo", "/state/bar", "/brokers/live/abc", "/brokers/epoch/-7"})
    state_->nodes[path] = Node{"x", 0, 0};
  elect_anew();
  ASSERT_EQ(damage().size(), 2U);
  EXPECT_EQ(damage()[0].path, "/topics/st ray");
  EXPECT_TRUE(wait_until([this] { return whole_again() || leads_all_of("orders"); }));
  EXPECT_TRUE(create("more", 2).status.ok());
  EXPECT_TRUE(remove("more").status.ok());
  EXPECT_TRUE(wait_until([&] { return paths("/deleting/").size() == 1; }));
  state_->nodes.erase("/topics/st ray");
  state_->nodes.erase("/deleting/foo");
  EXPECT_TRUE(wait_until([this] { return whole_again(); }, std::chrono::seconds(10)));
}

// Until it is known which topics were being deleted, no state node is taken for a leftover.
TEST_F(ClusterDamage, OfADeletionKeepsItsStateNodes) {
  for (auto& [id, logs] : logs_) logs.deletes = false;
  EXPECT_TRUE(remove("orders").status.ok());
  ASSERT_EQ(paths("/deleting/").size(), 1U);
  const auto path = layout::deleting(orders_);
  const auto value = std::exchange(state_->nodes.at(path).value, "nonsense");
  const auto states = paths(layout::topic_state(orders_));
  ASSERT_EQ(states.size(), 5U);
  for (auto& [id, logs] : logs_) logs.deletes = true;
  elect_anew();
  ASSERT_EQ(damage().size(), 1U);
  simulator_.run_for(std::chrono::minutes(3));
  EXPECT_EQ(paths(layout::topic_state(orders_)), states);
  state_->nodes.at(path).value = value;
  EXPECT_TRUE(wait_until([&] { return paths("/deleting/").empty(); }, std::chrono::seconds(20)));
  EXPECT_TRUE(paths(layout::topic_state(orders_)).empty());
}

}  // namespace
}  // namespace mq::controller
