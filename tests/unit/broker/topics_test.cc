#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_client.h"
#include "protocol/describe_broker.h"

namespace mq::broker {
namespace {

using model::Offset;
using model::PartitionId;
using protocol::ApiKey;
using protocol::WireError;
using testing::BrokerWorld;
using ::testing::HasSubstr;
using testing::make_batch;
using testing::produce;

struct TopicsTest : ::testing::TestWithParam<std::size_t> {
  BrokerWorld world{1, GetParam()};
  void SetUp() override { ASSERT_TRUE(world.start()) << world.broker->refusal().text; }
  testing::RawClient client() {
    auto made = world.connect();
    made.hello();
    return made;
  }
};

TEST_P(TopicsTest, RefusalsDoNotTakeTheOthersWithThem) {
  auto admin = client();
  protocol::CreateTopicsRequest request;
  request.topics.resize(3);
  request.topics[0].name = "good";
  request.topics[1].name = "bad/name";
  request.topics[2].name = "odd";
  request.topics[2].settings["retention.agee"] = "1d";
  const auto answer = admin.call(ApiKey::create_topics, protocol::encode(request));
  const auto response = protocol::decode_create_topics_response(answer.header_bytes());
  ASSERT_TRUE(response);
  ASSERT_EQ(response->results.size(), 3U);
  EXPECT_TRUE(response->results[0].status.ok());
  EXPECT_EQ(response->results[1].status.error(), WireError::invalid_topic_name);
  EXPECT_EQ(response->results[2].status.error(), WireError::invalid_config);
}

TEST_P(TopicsTest, ListAndDescribeCountWhatIsThere) {
  const auto topic = world.create_topic("orders", 4);
  auto one = client();
  produce(one, {{{topic, 0}, 0, make_batch(3)}, {{topic, 3}, 0, make_batch(2)}});

  auto answer = one.call(ApiKey::list_topics, protocol::encode(protocol::ListTopicsRequest{}));
  const auto list = protocol::decode_list_topics_response(answer.header_bytes());
  ASSERT_TRUE(list);
  ASSERT_EQ(list->topics.size(), 1U);
  EXPECT_EQ(list->topics[0].partitions, 4);
  EXPECT_EQ(list->topics[0].records, 5U);
  EXPECT_EQ(list->topics[0].partitions_not_serving, 0);

  protocol::DescribeTopicsRequest request;
  request.names = {"orders", "order"};
  answer = one.call(ApiKey::describe_topics, protocol::encode(request));
  const auto described = protocol::decode_describe_topics_response(answer.header_bytes());
  ASSERT_TRUE(described);
  ASSERT_EQ(described->topics.size(), 2U);
  EXPECT_EQ(described->topics[0].partitions[3].high_watermark, 2);
  EXPECT_EQ(described->topics[0].partitions[3].note, "");
  EXPECT_EQ(described->topics[1].status.error(), WireError::unknown_topic);
  EXPECT_THAT(described->topics[1].status.text, HasSubstr("orders"));
  for (const auto& setting : described->topics[0].settings) {
    if (setting.name == "durability") {
      EXPECT_EQ(setting.value, "memory");
      EXPECT_EQ(setting.origin, "topic");
    }
    if (setting.name == "retention.age") {
      EXPECT_EQ(setting.origin, "built-in");
    }
  }
}

TEST_P(TopicsTest, TheBrokerDescribesItself) {
  world.create_topic("orders", 4);
  auto one = client();
  const auto answer =
      one.call(ApiKey::describe_broker, protocol::encode(protocol::DescribeBrokerRequest{}));
  const auto described = protocol::decode_describe_broker_response(answer.header_bytes());
  ASSERT_TRUE(described);
  EXPECT_EQ(described->broker_id, 1);
  EXPECT_EQ(described->workers, GetParam());
  EXPECT_EQ(described->partitions, 4U);
  EXPECT_EQ(described->partitions_not_serving, 0U);
  ASSERT_EQ(described->disks.size(), 1U);
  EXPECT_EQ(described->disks[0].state, "ok");
  EXPECT_EQ(described->disks[0].path, "/data");
  EXPECT_GT(described->counters.at("requests_total"), 0);
}

// PAR-6
TEST_P(TopicsTest, ATopicMadeAgainInheritsNothing) {
  const auto old_topic = world.create_topic("orders");
  auto one = client();
  produce(one, {{{old_topic, 0}, 0, make_batch(3)}});
  protocol::DeleteTopicsRequest request;
  request.names = {"orders"};
  const auto deleted = one.call(ApiKey::delete_topics, protocol::encode(request));
  const auto results = protocol::decode_delete_topics_response(deleted.header_bytes());
  ASSERT_TRUE(results);
  EXPECT_TRUE(results->results[0].status.ok());
  const auto new_topic = world.create_topic("orders");
  EXPECT_NE(new_topic, old_topic);
  EXPECT_EQ(produce(one, {{{old_topic, 0}, 1}})[0].status.error(), WireError::unknown_topic_id);
  EXPECT_EQ(produce(one, {{{new_topic, 0}, 0}})[0].base_offset, Offset(0));
}

TEST_P(TopicsTest, ListOffsetsTellsBothEnds) {
  const auto topic = world.create_topic("orders", 2);
  auto one = client();
  produce(one, {{{topic, 1}, 0, make_batch(7)}});
  protocol::ListOffsetsRequest request;
  request.entries = {{{topic, 1}, protocol::OffsetPoint::earliest},
                     {{topic, 1}, protocol::OffsetPoint::latest},
                     {{topic, 0}, protocol::OffsetPoint::latest},
                     {{topic, 2}, protocol::OffsetPoint::latest}};
  const auto answer = one.call(ApiKey::list_offsets, protocol::encode(request));
  const auto response = protocol::decode_list_offsets_response(answer.header_bytes());
  ASSERT_TRUE(response);
  ASSERT_EQ(response->results.size(), 4U);
  EXPECT_EQ(response->results[0].offset, Offset(0));
  EXPECT_EQ(response->results[1].offset, Offset(7));
  EXPECT_EQ(response->results[2].offset, Offset(0));
  EXPECT_EQ(response->results[3].status.error(), WireError::unknown_partition);
}

TEST_P(TopicsTest, AnAnswerThatNobodyCouldReadIsRefused) {
  world.create_topic("orders", 10);
  auto one = client();
  protocol::DescribeTopicsRequest request;
  request.names.assign(5000, "orders");
  const auto answer = one.call(ApiKey::describe_topics, protocol::encode(request));
  EXPECT_EQ(answer.status().error(), WireError::invalid_request);
  EXPECT_THAT(answer.status().text, HasSubstr("1048576 are possible"));
}

INSTANTIATE_TEST_SUITE_P(Workers, TopicsTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace mq::broker
