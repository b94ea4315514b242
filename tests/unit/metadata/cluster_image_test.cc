#include "metadata/cluster_image.h"

#include <gtest/gtest.h>

namespace mq::metadata {
namespace {

TopicPtr topic(const std::string& name, std::uint64_t id, int partitions) {
  TopicInfo info;
  info.name = name;
  info.id = base::Uuid::from_random(id, id);
  for (int p = 0; p < partitions; ++p) {
    PartitionAssignment one;
    one.id = {info.id, p * 2};
    info.partitions.push_back(one);
  }
  return std::make_shared<const TopicInfo>(std::move(info));
}

ClusterImage empty_image() {
  return ClusterImage(base::Uuid::from_random(1, 1), model::BrokerId(1),
                      {{model::BrokerId(1), model::BrokerEpoch(4), {"localhost", 9500}}}, {}, 1);
}

TEST(ClusterImage, ChangesMakeNewImagesAndLeaveTheOldOnes) {
  const auto empty = empty_image();
  const auto orders = topic("orders", 7, 2);
  const auto one = empty.with_topic(orders, 2);
  const auto none = one.without_topic("orders", 3);
  EXPECT_FALSE(empty.find_topic("orders"));
  EXPECT_EQ(one.find_topic("orders"), orders);
  EXPECT_EQ(one.find_topic(orders->id), orders);
  EXPECT_EQ(one.version(), 2u);
  EXPECT_EQ(one.partitions(), 2u);
  EXPECT_FALSE(none.find_topic("orders"));
  EXPECT_FALSE(none.find_topic(orders->id));
  EXPECT_EQ(none.version(), 3u);
}

TEST(ClusterImage, PartitionsAreFoundByNumberNotByPlace) {
  const auto orders = topic("orders", 7, 3);
  const auto image = empty_image().with_topic(orders, 2);
  ASSERT_TRUE(image.find_partition({orders->id, 4}));
  EXPECT_EQ(image.find_partition({orders->id, 4})->id.partition, 4);
  EXPECT_FALSE(image.find_partition({orders->id, 1}));
  EXPECT_FALSE(image.find_partition({orders->id, 6}));
  EXPECT_FALSE(image.find_partition({base::Uuid::from_random(9, 9), 0}));
}

// PAR-6: a topic made again under an old name is another topic.
TEST(ClusterImage, TopicOfTheSameNameReplacesTheOldId) {
  const auto first = topic("orders", 7, 1);
  const auto second = topic("orders", 8, 1);
  const auto image = empty_image().with_topic(first, 2).with_topic(second, 3);
  EXPECT_EQ(image.topics().size(), 1u);
  EXPECT_FALSE(image.find_topic(first->id));
  EXPECT_EQ(image.find_topic("orders"), second);
}

TEST(ClusterImage, AChangeIsMadeInOneStep) {
  const auto before =
      empty_image().with_topic(topic("orders", 7, 2), 2).with_topic(topic("billing", 8, 1), 3);
  ImageChange change;
  change.removed = {before.find_topic("orders")->id};
  change.topics = {topic("orders", 9, 1)};
  change.brokers = std::vector<BrokerInfo>{};
  change.deleting = std::vector{DeletingTopic{change.removed[0], {model::BrokerId(1)}}};
  const auto after = before.with(change, 4);
  EXPECT_EQ(after.version(), 4u);
  EXPECT_EQ(after.topics().size(), 2u);
  EXPECT_EQ(after.find_topic("orders"), change.topics[0]);
  EXPECT_FALSE(after.find_topic(change.removed[0]));
  EXPECT_TRUE(after.brokers().empty());
  EXPECT_EQ(after.deleting(), *change.deleting);
  EXPECT_EQ(after.partitions(), 2u);
}

TEST(ClusterImage, PartitionsThatAreBeingMadeAreNotVisible) {
  TopicInfo growing = *topic("orders", 7, 3);  // partitions 0, 2, 4
  EXPECT_EQ(growing.visible().size(), 3u);
  growing.hidden_from = 3;
  ASSERT_EQ(growing.visible().size(), 2u);
  EXPECT_EQ(growing.visible().back().id.partition, 2);
  growing.hidden_from = 0;
  EXPECT_TRUE(growing.visible().empty());
}

TEST(ClusterImage, NearestTopicNameHelpsWithTypingErrors) {
  const auto image =
      empty_image().with_topic(topic("orders", 7, 1), 2).with_topic(topic("billing", 8, 1), 3);
  EXPECT_EQ(image.nearest_topic_name("ordres"), "orders");
  EXPECT_FALSE(image.nearest_topic_name("zzzzzzzz"));
}

TEST(ClusterImage, BrokersAreFoundById) {
  const auto image = empty_image();
  ASSERT_TRUE(image.find_broker(model::BrokerId(1)));
  EXPECT_EQ(image.find_broker(model::BrokerId(1))->advertised.text(), "localhost:9500");
  EXPECT_FALSE(image.find_broker(model::BrokerId(2)));
}

}  // namespace
}  // namespace mq::metadata
