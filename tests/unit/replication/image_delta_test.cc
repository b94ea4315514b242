#include "replication/image_delta.h"

#include <gtest/gtest.h>

#include "scripted_controller.h"

namespace mq::replication {
namespace {

using testing::image_topic;
using testing::partition;
using testing::uuid;
using testing::version;

protocol::PullImageResponse snapshot(std::uint64_t at, std::vector<protocol::ImageTopic> topics) {
  protocol::PullImageResponse answer;
  answer.version = at;
  answer.cluster_id = uuid(100);
  answer.controller = 1;
  answer.brokers = {{1, 4, "one", 9500}, {2, 7, "two", 9500, true}};
  answer.topics = std::move(topics);
  return answer;
}

metadata::ImagePtr next_image(const metadata::ImagePtr& current,
                              const protocol::PullImageResponse& answer) {
  return replication::next_image(current, answer, defaults_of(answer.topic_defaults));
}

protocol::PullImageResponse delta(std::uint64_t base, std::uint64_t at,
                                  std::vector<protocol::ImageTopic> topics,
                                  std::vector<base::Uuid> removed = {}) {
  auto answer = snapshot(at, std::move(topics));
  answer.base_version = base;
  answer.removed = std::move(removed);
  return answer;
}

TEST(ImageDelta, ASnapshotIsTheWholeImage) {
  auto answer = snapshot(version(1, 3), {image_topic("orders", 1, {partition(0, 1, 5, 6)})});
  answer.topics[0].overrides = {{"retention.age", "1h"}};
  answer.topics[0].hidden_from = 0;
  answer.deleting = {{uuid(9), {2}}};
  const auto image = next_image(nullptr, answer);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->version(), version(1, 3));
  EXPECT_EQ(image->cluster_id(), uuid(100));
  EXPECT_EQ(image->controller(), model::BrokerId(1));
  ASSERT_EQ(image->brokers().size(), 2U);
  EXPECT_TRUE(image->brokers()[0].alive);
  EXPECT_FALSE(image->brokers()[1].alive);
  EXPECT_EQ(image->brokers()[1].epoch, model::BrokerEpoch(7));
  const auto topic = image->find_topic("orders");
  ASSERT_TRUE(topic);
  EXPECT_EQ(topic->settings.retention_age, std::chrono::hours(1));
  EXPECT_TRUE(topic->visible().empty());
  const auto* assignment = topic->find(0);
  ASSERT_TRUE(assignment);
  EXPECT_EQ(assignment->leader, model::BrokerId(1));
  EXPECT_EQ(assignment->leader_epoch, model::LeaderEpoch(5));
  EXPECT_EQ(assignment->version, model::PartitionVersion(6));
  ASSERT_EQ(image->deleting().size(), 1U);
  EXPECT_EQ(image->deleting()[0].brokers, std::vector{model::BrokerId(2)});
}

TEST(ImageDelta, AChangeAppliesToItsBaseOnly) {
  const auto orders = image_topic("orders", 1, {partition(0, 1, 5, 6)});
  const auto image = next_image(nullptr, snapshot(version(1, 3), {orders}));
  const auto paid = image_topic("paid", 2, {partition(0, 1, 1, 1)});
  const auto next = next_image(image, delta(version(1, 3), version(1, 4), {paid}, {uuid(1)}));
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->find_topic("orders"));
  EXPECT_TRUE(next->find_topic("paid"));
  EXPECT_FALSE(next_image(image, delta(version(1, 2), version(1, 4), {paid})));
  EXPECT_FALSE(next_image(nullptr, delta(version(1, 3), version(1, 4), {paid})));
  // Another controller's change builds on an image that is not this one.
  EXPECT_FALSE(next_image(image, delta(version(1, 3), version(2, 1), {paid})));
}

TEST(ImageDelta, ATopicUnderItsOldNameIsAnotherTopic) {
  const auto old = image_topic("orders", 1, {partition(0, 1, 5, 6)});
  const auto image = next_image(nullptr, snapshot(version(1, 3), {old}));
  const auto made_anew = image_topic("orders", 2, {partition(0, 1, 0, 0)});
  const auto next = next_image(image, delta(version(1, 3), version(1, 4), {made_anew}, {uuid(1)}));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->find_topic("orders")->id, uuid(2));
  EXPECT_FALSE(next->find_topic(uuid(1)));
  EXPECT_EQ(next->find_topic("orders")->find(0)->leader_epoch, model::LeaderEpoch(0));
}

// C2: a partition goes forward only, and so does the controller's epoch.
TEST(ImageDelta, ATopicWhoseNodeIsDamagedStaysAsItWas) {
  const auto orders = image_topic("orders", 1, {partition(0, 1, 5, 6)});
  const auto before =
      next_image(nullptr, snapshot(version(1, 3), {orders, image_topic("other", 2, {})}));
  auto answer = snapshot(version(2, 1), {});
  answer.damage = {{"/topics/orders", "orders", "it does not parse"}, {"/topics/%", "", "stray"}};
  auto image = next_image(before, answer);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->damage().size(), 2U);
  EXPECT_EQ(image->find_topic("other"), nullptr);
  ASSERT_TRUE(image->find_topic("orders"));
  EXPECT_EQ(image->find_topic("orders")->find(0)->leader, model::BrokerId(1));
  EXPECT_EQ(image->lost_topic(), nullptr);
  // A controller that finds out while it leads says that the topic is gone.
  auto change = delta(version(1, 3), version(1, 4), {}, {uuid(1)});
  change.damage = answer.damage;
  EXPECT_TRUE(next_image(before, change)->find_topic("orders"));
  // A broker that never knew it has nothing to keep.
  image = next_image(nullptr, answer);
  ASSERT_NE(image->lost_topic(), nullptr);
  EXPECT_EQ(image->lost_topic()->path, "/topics/orders");
  image = next_image(image, snapshot(version(3, 1), {orders}));
  EXPECT_EQ(image->lost_topic(), nullptr);
}

TEST(ImageDelta, NothingGoesBack) {
  const auto image = next_image(
      nullptr, snapshot(version(3, 1), {image_topic("orders", 1, {partition(0, 1, 5, 6)})}));
  EXPECT_FALSE(next_image(image, snapshot(version(2, 900), {})));
  EXPECT_FALSE(next_image(image, snapshot(version(3, 0), {})));
  struct Case {
    std::int32_t leader_epoch;
    std::int32_t partition_version;
    bool taken;
  };
  for (const auto& [epoch, pv, taken] : {Case{4, 9, false}, Case{5, 5, false}, Case{5, 6, true},
                                         Case{5, 7, true}, Case{6, 0, true}}) {
    const auto topic = image_topic("orders", 1, {partition(0, 2, epoch, pv)});
    const auto next = next_image(image, snapshot(version(4, 1), {topic}));
    ASSERT_TRUE(next);
    EXPECT_EQ(next->find_topic("orders")->find(0)->leader, model::BrokerId(taken ? 2 : 1))
        << epoch << " " << pv;
  }
}

TEST(ImageDelta, WhatATopicDoesNotSayIsTheControllersDefault) {
  auto own = image_topic("own", 1, {partition(0, 1, 5, 6)});
  own.overrides = {{"durability", "disk"}};
  const auto plain = image_topic("plain", 2, {partition(0, 1, 5, 6)});
  auto answer = snapshot(version(1, 3), {own, plain});
  answer.topic_defaults = {{"durability", "memory"}, {"of.the.future", "x"}};
  auto image = next_image(nullptr, answer);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->find_topic("own")->settings.durability, model::Durability::disk);
  EXPECT_EQ(image->find_topic("plain")->settings.durability, model::Durability::memory);
  auto change = delta(version(1, 3), version(1, 4), {image_topic("later", 3, {})});
  change.topic_defaults = answer.topic_defaults;
  image = next_image(image, change);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->find_topic("later")->settings.durability, model::Durability::memory);
  // The next controller's are in force for all.
  image = next_image(image, snapshot(version(2, 1), {own, plain}));
  ASSERT_TRUE(image);
  EXPECT_EQ(image->find_topic("plain")->settings.durability, model::Durability::disk);
}

TEST(ImageDelta, AnUnknownSettingLeavesTheOthersInForce) {
  auto topic = image_topic("orders", 1, {partition(0, 1, 5, 6)});
  topic.overrides = {{"of.the.future", "x"}, {"retention.age", "2h"}};
  const auto image = next_image(nullptr, snapshot(version(1, 1), {topic}));
  ASSERT_TRUE(image);
  EXPECT_EQ(image->find_topic("orders")->settings.retention_age, std::chrono::hours(2));
  EXPECT_EQ(image->find_topic("orders")->overrides.size(), 2U);
}

}  // namespace
}  // namespace mq::replication
