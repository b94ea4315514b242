// Clusters of more topics and partitions than one frame tells.
#include "producer_fixture.h"

namespace mq::testing {
namespace {

using protocol::Status;
using protocol::WireError;
using std::chrono::seconds;

struct LargeClusterTest : ProducerWorld {};

TEST_F(LargeClusterTest, AnAnswerInSeveralFramesIsReadWhole) {
  constexpr int kPartitions = 50'000;
  broker->add_topic("large", kPartitions);
  start(producer_config());
  const auto large = topic("large");
  ASSERT_TRUE(large);
  EXPECT_EQ(send(*large, "last", kPartitions - 1), client::Appended::accepted);
  EXPECT_EQ(send(*large, "first", 0), client::Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  EXPECT_TRUE(results.at("last").at(0)) << to_string(results.at("last").at(0).error());
  EXPECT_EQ(broker->values("large", kPartitions - 1), std::vector<std::string>{"last"});
  EXPECT_EQ(broker->values("large", 0), std::vector<std::string>{"first"});
}

TEST_F(LargeClusterTest, AnAnswerWithoutEndIsGivenUp) {
  broker->add_topic("large", 8'000);
  broker->endless_metadata = true;
  start(producer_config());
  const auto found = run(simulator, core->topic("large"));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::protocol_violation) << to_string(found.error());
  EXPECT_NE(found.error().message.find("32 MiB"), std::string::npos) << found.error().message;
}

TEST_F(LargeClusterTest, ARefreshAsksOnlyForTheTopicsConcerned) {
  for (int i = 0; i < 20; ++i) broker->add_topic("topic-" + std::to_string(i), 1);
  start(producer_config());
  std::vector<client::ProducerTopicPtr> topics;
  for (int i = 0; i < 20; ++i) topics.push_back(topic("topic-" + std::to_string(i)));
  int refusals = 1;
  broker->refuse = [&](const FakeBroker::Produced& produced) -> std::optional<Status> {
    if (produced.topic != "topic-7" || refusals-- <= 0) return std::nullopt;
    return Status::of(WireError::not_leader, "not here", 1);
  };
  const int before = broker->metadata_requests;
  for (int i = 0; i < 20; ++i) send(*topics[static_cast<std::size_t>(i)], std::to_string(i));
  ASSERT_TRUE(wait_for_results());
  simulator.run_for(seconds(10));
  EXPECT_EQ(broker->metadata_requests, before + 1);
  EXPECT_EQ(broker->metadata_asked, std::vector<std::string>{"topic-7"});
  EXPECT_TRUE(results.at("7").at(0));
}

TEST_F(LargeClusterTest, ARefreshOfVeryManyTopicsComesInPieces) {
  constexpr int kTopics = 2'500;
  for (int i = 0; i < kTopics; ++i) broker->add_topic("topic-" + std::to_string(i), 1);
  start(producer_config());
  std::vector<client::ProducerTopicPtr> topics;
  for (int i = 0; i < kTopics; ++i) topics.push_back(topic("topic-" + std::to_string(i)));
  const int before = broker->metadata_requests;
  for (const auto& one : topics) core->client().metadata.refresh_soon(one->id);
  simulator.run_for(seconds(10));
  EXPECT_EQ(broker->metadata_requests, before + 3);
  EXPECT_LE(broker->metadata_asked.size(), 1000U);
}

TEST_F(LargeClusterTest, AConsumerReadsMorePartitionsThanOneRequestTakes) {
  constexpr int kPartitions = 20'000;
  broker->add_topic("large", kPartitions);
  start(producer_config());
  const auto large = topic("large");
  ASSERT_TRUE(large);
  send(*large, "last", kPartitions - 1);
  ASSERT_TRUE(wait_for_results());

  client::ConsumerCore consumer(client_runtime, *client_network, config<ConsumerConfig>());
  ASSERT_TRUE(run(simulator, consumer.start()));
  std::vector<TopicPartition> all;
  std::map<TopicPartition, Start> starts;
  for (int i = 0; i < kPartitions; ++i) {
    all.push_back({"large", i});
    starts[all.back()] = {Start::earliest};
  }
  const int before = broker->metadata_requests;
  const auto ranges = run(simulator, consumer.offsets(all));
  ASSERT_TRUE(ranges) << to_string(ranges.error());
  EXPECT_EQ(ranges->size(), all.size());
  EXPECT_EQ(ranges->at(all.back()).end, 1);
  EXPECT_LE(broker->metadata_requests, before + 1);

  const auto assigned = run(simulator, consumer.assign(starts));
  ASSERT_TRUE(assigned) << to_string(assigned.error());
  std::optional<Result<Batch>> taken;
  simulator.run_until([&] { return (taken = consumer.take()).has_value(); }, seconds(10));
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ((**taken)[0].partition, kPartitions - 1);
  EXPECT_EQ(as_text(*(**taken)[0].value), "last");
  run(simulator, consumer.stop());
}

}  // namespace
}  // namespace mq::testing
