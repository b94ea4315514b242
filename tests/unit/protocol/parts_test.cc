#include "protocol/parts.h"

#include <gtest/gtest.h>

#include "protocol/frame.h"

namespace mq::protocol {
namespace {

PartitionMetadata partition(std::int32_t number) {
  return {number, 1, 2'000'000'000, 2'000'000'000, {1, 2, 3}, {1, 2, 3}};
}

TopicMetadata topic(const std::string& name, std::int32_t partitions) {
  TopicMetadata topic;
  topic.name = name;
  topic.id = base::Uuid::from_random(name.size(), static_cast<std::uint64_t>(partitions) + 1);
  topic.batch_bytes_max = 1 << 20;
  for (std::int32_t i = 0; i < partitions; ++i) topic.partitions.push_back(partition(i));
  return topic;
}

MetadataResponse metadata(std::vector<TopicMetadata> topics) {
  MetadataResponse response;
  response.envelope.metadata_version = 7;
  response.cluster_id = base::Uuid::from_random(1, 2);
  response.controller = 1;
  response.brokers = {{1, "broker-1", 9500}, {2, "broker-2", 9500}};
  response.topics = std::move(topics);
  return response;
}

template <class Response>
Response joined(const std::vector<std::string>& parts,
                base::Result<Response> (*decode)(base::Bytes)) {
  auto whole = decode(base::as_bytes(parts.front()));
  EXPECT_TRUE(whole);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    auto part = decode(base::as_bytes(parts[i]));
    EXPECT_TRUE(part);
    join(*whole, *std::move(part));
  }
  for (const auto& part : parts) EXPECT_LE(part.size(), kHeaderBytesMax);
  return *std::move(whole);
}

TEST(Parts, AnAnswerThatFitsIsOneFrameAsItAlwaysWas) {
  const auto response = metadata({topic("orders", 10), topic("paid", 1)});
  const auto parts = encode_in_parts(response);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0], encode(response));
}

TEST(Parts, AnAnswerWithoutTopicsIsOneFrame) {
  const auto parts = encode_in_parts(metadata({}));
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(joined(parts, &decode_metadata_response), metadata({}));
}

TEST(Parts, ATopicOfVeryManyPartitionsGoesOnInTheNextFrame) {
  const auto response = metadata({topic("small", 1), topic("large", 100'000), topic("last", 3)});
  const auto parts = encode_in_parts(response);
  EXPECT_GT(parts.size(), 10U);
  EXPECT_EQ(joined(parts, &decode_metadata_response), response);
}

TEST(Parts, VeryManyTopicsAreSpread) {
  std::vector<TopicMetadata> topics;
  for (int i = 0; i < 40'000; ++i) topics.push_back(topic("topic-" + std::to_string(i), i % 3));
  const auto response = metadata(std::move(topics));
  const auto parts = encode_in_parts(response);
  EXPECT_GT(parts.size(), 3U);
  EXPECT_EQ(joined(parts, &decode_metadata_response), response);
}

TEST(Parts, ATopicAskedForTwiceIsNotTakenForItsOwnRest) {
  std::vector<TopicMetadata> topics(300, topic("again", 100));
  const auto response = metadata(std::move(topics));
  const auto parts = encode_in_parts(response);
  EXPECT_GT(parts.size(), 1U);
  EXPECT_EQ(joined(parts, &decode_metadata_response), response);
}

TEST(Parts, LongTextsMakeMoreFrames) {
  DescribeTopicsResponse response;
  TopicDescription topic;
  topic.name = "orders";
  topic.id = base::Uuid::from_random(1, 2);
  topic.settings = {{"durability", "disk", "topic"}};
  for (std::int32_t i = 0; i < 200; ++i) {
    PartitionDescription partition;
    partition.partition = i;
    partition.note = std::string(20'000, 'x');
    topic.partitions.push_back(std::move(partition));
  }
  response.topics.push_back(topic);
  TopicDescription unknown;
  unknown.name = "ordres";
  unknown.status = Status::of(WireError::unknown_topic, std::string(60'000, 'y'), 1);
  response.topics.push_back(unknown);
  const auto parts = encode_in_parts(response);
  EXPECT_GT(parts.size(), 5U);
  EXPECT_EQ(joined(parts, &decode_describe_topics_response), response);
}

TEST(Parts, AListOfTopicsIsSpread) {
  ListTopicsResponse response;
  for (int i = 0; i < 20'000; ++i) {
    TopicSummary summary;
    summary.name = "topic-" + std::to_string(i);
    summary.id = base::Uuid::from_random(1, static_cast<std::uint64_t>(i) + 1);
    response.topics.push_back(summary);
  }
  const auto parts = encode_in_parts(response);
  EXPECT_GT(parts.size(), 2U);
  EXPECT_EQ(joined(parts, &decode_list_topics_response), response);
}

ImagePartition image_partition(std::int32_t number) {
  const model::IsrMember one{model::BrokerId(1), model::BrokerEpoch(2'000'000'000'000)};
  const model::IsrMember two{model::BrokerId(2), model::BrokerEpoch(2'000'000'000'000)};
  return {number, 1, 2'000'000'000, 2'000'000'000, {1, 2, 3}, {one, two}, {two}, 2};
}

ImageTopic image_topic(std::size_t number, std::int32_t partitions) {
  ImageTopic topic;
  topic.name = "topic-" + std::to_string(number);
  topic.id = base::Uuid::from_random(number, 1);
  topic.overrides = {{"retention.age", "14d"}};
  for (std::int32_t i = 0; i < partitions; ++i) topic.partitions.push_back(image_partition(i));
  return topic;
}

TEST(Parts, AnImageIsSpreadWithEachOfItsLists) {
  PullImageResponse response;
  response.version = 12;
  response.base_version = 7;
  response.cluster_id = base::Uuid::from_random(1, 2);
  response.controller = 1;
  response.brokers = {{1, 4, "broker-1", 9500}, {2, 9, "broker-2", 9500}};
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    response.removed.push_back(base::Uuid::from_random(i, 2));
    response.deleting.push_back({base::Uuid::from_random(i, 3), {1, 2}});
    response.damage.push_back({"/topics/t" + std::to_string(i), "t", "it does not parse"});
  }
  response.topics = {image_topic(1, 3), image_topic(2, 30'000), image_topic(3, 0)};
  const auto parts = encode_in_parts(response);
  EXPECT_GT(parts.size(), 5U);
  EXPECT_EQ(joined(parts, &decode_pull_image_response), response);
}

}  // namespace
}  // namespace mq::protocol
