#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_client.h"
#include "protocol/add_partitions.h"
#include "protocol/alter_topics.h"
#include "protocol/describe_broker.h"
#include "protocol/parts.h"
#include "protocol/trim_partitions.h"
#include "started_broker.h"

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

using TopicsTest = testing::StartedBroker;

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

TEST(TopicDefaults, SettingsOfBrokerTomlAreInForceAndNamedAsSuch) {
  BrokerWorld world;
  world.config.topic_defaults.segment_bytes = std::uint64_t{64} << 20;
  ASSERT_TRUE(world.start()) << world.broker->refusal().text;
  world.create_topic("orders", 1, "memory");
  auto client = world.connect();
  client.hello();
  protocol::DescribeTopicsRequest request;
  request.names = {"orders"};
  const auto answer = client.call(ApiKey::describe_topics, protocol::encode(request));
  const auto described = protocol::decode_describe_topics_response(answer.header_bytes());
  ASSERT_TRUE(described);
  ASSERT_EQ(described->topics.size(), 1U);
  std::map<std::string, std::pair<std::string, std::string>> settings;
  for (const auto& setting : described->topics[0].settings)
    settings[setting.name] = {setting.value, setting.origin};
  EXPECT_EQ(settings["durability"], std::pair(std::string("memory"), std::string("topic")));
  EXPECT_EQ(settings["segment.bytes"], std::pair(std::string("64MiB"), std::string("broker.toml")));
  EXPECT_EQ(settings["min_isr"], std::pair(std::string("1"), std::string("built-in")));
  EXPECT_EQ(settings["segment.age"], std::pair(std::string("1w"), std::string("built-in")));
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

TEST_P(TopicsTest, ListOffsetsFindsTimesBelowTheHighWatermark) {
  const auto topic = world.create_topic("orders", 2);
  auto one = client();
  const auto first_ms = world.runtimes[0]->wall_clock_ms();
  produce(one, {{{topic, 1}, 0, make_batch(7)}});
  world.run_for(std::chrono::seconds(10));
  produce(one, {{{topic, 1}, 1, make_batch(3)}});
  protocol::ListOffsetsRequest request;
  const auto at = protocol::OffsetPoint::at_time;
  request.entries = {{{topic, 1}, at, 0},
                     {{topic, 1}, at, first_ms + 5'000},
                     {{topic, 1}, at, first_ms + 60'000},
                     {{topic, 0}, at, 0},
                     {{topic, 2}, at, 0}};
  const auto answer = one.call(ApiKey::list_offsets, protocol::encode(request));
  const auto response = protocol::decode_list_offsets_response(answer.header_bytes());
  ASSERT_TRUE(response);
  ASSERT_EQ(response->results.size(), 5U);
  EXPECT_EQ(response->results[0].offset, Offset(0));
  EXPECT_GE(response->results[0].append_time_ms, first_ms);
  EXPECT_EQ(response->results[1].offset, Offset(7));
  EXPECT_GE(response->results[1].append_time_ms, first_ms + 10'000);
  EXPECT_EQ(response->results[2].offset, Offset(10));
  EXPECT_EQ(response->results[2].append_time_ms, -1);
  EXPECT_EQ(response->results[3].offset, Offset(0));
  EXPECT_EQ(response->results[4].status.error(), WireError::unknown_partition);
}

TEST_P(TopicsTest, TrimRaisesTheLogStartAndNeverPassesTheHighWatermark) {
  const auto topic = world.create_topic("orders", 3);
  auto one = client();
  produce(one, {{{topic, 0}, 0, make_batch(7)}, {{topic, 1}, 0, make_batch(7)}});
  protocol::TrimPartitionsRequest request;
  request.entries = {{{topic, 0}, Offset(4)},
                     {{topic, 1}, Offset(8)},
                     {{topic, 2}, Offset(0)},
                     {{topic, 3}, Offset(0)}};
  const auto trim = [&] {
    const auto answer = one.call(ApiKey::trim_partitions, protocol::encode(request));
    auto response = protocol::decode_trim_partitions_response(answer.header_bytes());
    EXPECT_TRUE(response && response->results.size() == 4);
    return *std::move(response);
  };
  const auto first = trim();
  EXPECT_EQ(first.results[0].log_start_offset, Offset(4));
  EXPECT_EQ(first.results[1].status.error(), WireError::offset_out_of_range);
  EXPECT_THAT(first.results[1].status.text, HasSubstr("above the high watermark 7"));
  EXPECT_EQ(first.results[2].log_start_offset, Offset(0));
  EXPECT_EQ(first.results[3].status.error(), WireError::unknown_partition);
  // What is there already stays as it is.
  request.entries[0].to = Offset(2);
  EXPECT_EQ(trim().results[0].log_start_offset, Offset(4));
  protocol::ListOffsetsRequest ask;
  ask.entries = {{{topic, 0}, protocol::OffsetPoint::earliest},
                 {{topic, 1}, protocol::OffsetPoint::earliest}};
  const auto answer = one.call(ApiKey::list_offsets, protocol::encode(ask));
  const auto ends = protocol::decode_list_offsets_response(answer.header_bytes());
  ASSERT_TRUE(ends);
  EXPECT_EQ(ends->results[0].offset, Offset(4));
  EXPECT_EQ(ends->results[1].offset, Offset(0));
}

TEST_P(TopicsTest, AlteredSettingsAreInTheImageThatTheAnswerNames) {
  world.create_topic("orders", 1);
  auto one = client();
  protocol::AlterTopicsRequest request;
  request.topics.resize(3);
  request.topics[0].name = "orders";
  request.topics[0].set["retention.age"] = "3d";
  request.topics[0].unset = {"durability"};
  request.topics[1].name = "nowhere";
  request.topics[2].name = "orders";
  request.topics[2].set["retention.agee"] = "3d";
  const auto answer = one.call(ApiKey::alter_topics, protocol::encode(request));
  const auto altered = protocol::decode_alter_topics_response(answer.header_bytes());
  ASSERT_TRUE(altered && altered->results.size() == 3U);
  EXPECT_TRUE(altered->results[0].status.ok()) << altered->results[0].status.text;
  EXPECT_EQ(altered->results[1].status.error(), WireError::unknown_topic);
  EXPECT_EQ(altered->results[2].status.error(), WireError::invalid_config);

  protocol::MetadataRequest wait;
  wait.envelope.deadline_ms = 5000;
  wait.newer_than = altered->envelope.metadata_version - 1;
  const auto newer = one.call(ApiKey::metadata, protocol::encode(wait));
  EXPECT_GE(protocol::decode_metadata_response(newer.header_bytes())->envelope.metadata_version,
            altered->envelope.metadata_version);
  protocol::DescribeTopicsRequest ask;
  ask.names = {"orders"};
  const auto described = protocol::decode_describe_topics_response(
      one.call(ApiKey::describe_topics, protocol::encode(ask)).header_bytes());
  ASSERT_TRUE(described);
  for (const auto& setting : described->topics[0].settings) {
    if (setting.name == "retention.age") {
      EXPECT_EQ(setting.value, "3d");
      EXPECT_EQ(setting.origin, "topic");
    }
    if (setting.name == "durability") {
      EXPECT_NE(setting.origin, "topic");
    }
  }
}

TEST_P(TopicsTest, AddedPartitionsAreServedWhenThatIsAnswered) {
  const auto topic = world.create_topic("orders", 2);
  auto one = client();
  protocol::AddPartitionsRequest request;
  request.topics = {{"orders", 5}, {"nowhere", 2}};
  const auto add = [&] {
    const auto answer = one.call(ApiKey::add_partitions, protocol::encode(request));
    auto response = protocol::decode_add_partitions_response(answer.header_bytes());
    EXPECT_TRUE(response && response->results.size() == 2U);
    return *std::move(response);
  };
  const auto added = add();
  EXPECT_TRUE(added.results[0].status.ok()) << added.results[0].status.text;
  EXPECT_EQ(added.results[0].partitions, 5);
  EXPECT_EQ(added.results[1].status.error(), WireError::unknown_topic);
  protocol::MetadataRequest wait;
  wait.envelope.deadline_ms = 5000;
  wait.topics = {"orders"};
  wait.newer_than = added.envelope.metadata_version - 1;
  const auto newer = protocol::decode_metadata_response(
      one.call(ApiKey::metadata, protocol::encode(wait)).header_bytes());
  ASSERT_TRUE(newer && newer->topics[0].partitions.size() == 5U);
  produce(one, {{{topic, 4}, 0, make_batch(3)}});
  EXPECT_EQ(add().results[0].partitions, 5) << "a repeat adds nothing";
  request.topics[0].total = 3;
  EXPECT_EQ(add().results[0].status.error(), WireError::invalid_partitions);
}

TEST_P(TopicsTest, AnAnswerThatOneFrameDoesNotHoldComesInSeveral) {
  world.create_topic("orders", 10);
  auto one = client();
  protocol::DescribeTopicsRequest request;
  request.names.assign(5000, "orders");
  const auto correlation = one.send(ApiKey::describe_topics, protocol::encode(request));
  protocol::DescribeTopicsResponse whole;
  int frames = 0;
  bool more = true;
  while (more) {
    const auto answer = one.receive();
    ASSERT_TRUE(answer);
    ++frames;
    EXPECT_EQ(answer->head.correlation_id, correlation);
    EXPECT_LE(answer->header.size(), protocol::kHeaderBytesMax);
    auto part = protocol::decode_describe_topics_response(answer->header_bytes());
    ASSERT_TRUE(part);
    EXPECT_TRUE(part->envelope.status.ok());
    protocol::join(whole, *std::move(part));
    more = (answer->head.flags & protocol::kFrameMoreFollows) != 0;
  }
  EXPECT_GT(frames, 3);
  ASSERT_EQ(whole.topics.size(), 5000U);
  for (const auto& topic : whole.topics) EXPECT_EQ(topic.partitions.size(), 10U);
  for (const auto& worker : world.broker->core().workers)
    EXPECT_EQ(worker->answer_budget().used(), 0U);
}

TEST_P(TopicsTest, APeerThatLeavesALongAnswerUnreadGivesItsMemoryBack) {
  world.limits.write_timeout = std::chrono::seconds(5);
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());
  world.create_topic("orders", 10);
  auto one = client();
  protocol::DescribeTopicsRequest request;
  request.names.assign(16'000, "orders");
  one.send(ApiKey::describe_topics, protocol::encode(request));
  world.run_for(std::chrono::seconds(1));
  std::size_t used = 0;
  for (const auto& worker : world.broker->core().workers) used += worker->answer_budget().used();
  EXPECT_GT(used, 0U);
  one.close();
  world.run_for(std::chrono::seconds(60));
  for (const auto& worker : world.broker->core().workers)
    EXPECT_EQ(worker->answer_budget().used(), 0U);
}

protocol::TopicResult create(testing::RawClient& admin, const std::string& name,
                             std::int32_t partitions, std::uint32_t deadline_ms) {
  protocol::CreateTopicsRequest request;
  request.envelope.deadline_ms = deadline_ms;
  request.topics.resize(1);
  request.topics[0].name = name;
  request.topics[0].partitions = partitions;
  const auto answer = admin.call(ApiKey::create_topics, protocol::encode(request));
  return protocol::decode_create_topics_response(answer.header_bytes())->results.at(0);
}

protocol::TopicResult remove(testing::RawClient& admin, const std::string& name,
                             std::uint32_t deadline_ms) {
  protocol::DeleteTopicsRequest request;
  request.envelope.deadline_ms = deadline_ms;
  request.names = {name};
  const auto answer = admin.call(ApiKey::delete_topics, protocol::encode(request));
  return protocol::decode_delete_topics_response(answer.header_bytes())->results.at(0);
}

// MET-2
TEST_P(TopicsTest, ChangesThatTakeTooLongSaySoInTimeAndMayBeRepeated) {
  world.disk_times.work_min = world.disk_times.work_max = std::chrono::milliseconds(1200);
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());
  auto admin = client();
  auto began = world.simulator.now();
  const auto late = create(admin, "orders", 1500, 1000);
  EXPECT_EQ(late.status.error(), WireError::timed_out);
  EXPECT_TRUE(late.status.advice.maybe_applied);
  EXPECT_LT(world.simulator.now() - began, std::chrono::milliseconds(1000));
  // The same again finds it there, and whole.
  EXPECT_EQ(create(admin, "orders", 1500, 20'000).status.error(), WireError::topic_exists);
  const auto topic = world.broker->core().image()->find_topic("orders");
  ASSERT_TRUE(topic);
  ASSERT_EQ(topic->partitions.size(), 1500U);
  for (const auto& assignment : topic->partitions) {
    const auto& worker = world.broker->core().worker_of(assignment.id);
    EXPECT_TRUE(const_cast<Worker&>(worker).partitions().find(assignment.id));
  }

  // Gone means that it serves no one; its many files follow.
  began = world.simulator.now();
  EXPECT_TRUE(remove(admin, "orders", 1000).status.ok());
  EXPECT_LT(world.simulator.now() - began, std::chrono::milliseconds(1000));
  EXPECT_EQ(remove(admin, "orders", 1000).status.error(), WireError::unknown_topic);
  EXPECT_FALSE(world.broker->core().image()->deleting().empty());
  EXPECT_TRUE(create(admin, "orders", 1, 20'000).status.ok());
  world.run_for(std::chrono::minutes(10));
  EXPECT_TRUE(world.broker->core().image()->deleting().empty());
  EXPECT_EQ(world.broker->core().disks->status()[0].partitions, 1U);
}

INSTANTIATE_TEST_SUITE_P(Workers, TopicsTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace mq::broker
