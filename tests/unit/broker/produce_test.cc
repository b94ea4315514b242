#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_client.h"
#include "started_broker.h"

namespace mq::broker {
namespace {

using model::Offset;
using model::PartitionId;
using protocol::Acks;
using protocol::WireError;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::make_batch;
using testing::produce;
using testing::send_produce;

using ProduceTest = testing::StartedBroker;

TEST_P(ProduceTest, OffsetsFollowEachOtherOverBatchesAndRequests) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto producer = client();
  auto results = produce(producer, {{id, 0, make_batch(3)}, {id, 1, make_batch(2)}});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].base_offset, Offset(0));
  EXPECT_EQ(results[1].base_offset, Offset(3));
  EXPECT_GT(results[1].append_time_ms, 0);
  results = produce(producer, {{id, 2}}, Acks::leader);
  EXPECT_EQ(results[0].base_offset, Offset(5));
}

TEST_P(ProduceTest, UnderDiskTheAnswerWaitsForTheFlush) {
  ASSERT_TRUE(world.stop());
  world.disk_times.work_min = world.disk_times.work_max = std::chrono::milliseconds(50);
  world.disk_times.stall_chance = 0;
  ASSERT_TRUE(world.start());
  const PartitionId id{world.create_topic("orders", 1, "disk"), 0};
  auto producer = client();
  world.run_for(std::chrono::seconds(1));  // no group that said of the creation is still under way
  const auto began = world.simulator.now();
  const auto results = produce(producer, {{id, 0}});
  EXPECT_TRUE(results[0].status.ok());
  EXPECT_GE(world.simulator.now() - began, std::chrono::milliseconds(50));
}

// PRO-3
TEST_P(ProduceTest, AnswersForOnePartitionKeepTheOrderOfTheRequests) {
  const auto fast = world.create_topic("fast", 1, "memory");
  const auto slow = world.create_topic("slow", 1, "disk");
  auto producer = client();
  const auto first = send_produce(producer, {{{slow, 0}, 0}, {{fast, 0}, 0}});
  const auto second = send_produce(producer, {{{fast, 0}, 1}});
  const auto third = send_produce(producer, {{{fast, 0}, 2}});
  for (const auto expected : {first, second, third}) {
    const auto answer = producer.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->head.correlation_id, expected);
    for (const auto& result : testing::results_of(*answer)) EXPECT_TRUE(result.status.ok());
  }
}

// PAR-5
TEST_P(ProduceTest, AGapIsRefusedAndNotApplied) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto producer = client();
  EXPECT_TRUE(produce(producer, {{id, 0}})[0].status.ok());
  const auto refused = produce(producer, {{id, 2}});
  EXPECT_EQ(refused[0].status.error(), WireError::out_of_order);
  EXPECT_EQ(refused[0].base_offset, Offset());
  EXPECT_FALSE(refused[0].status.advice.maybe_applied);
  EXPECT_EQ(produce(producer, {{id, 1}})[0].base_offset, Offset(1));
}

TEST_P(ProduceTest, AnOlderConnectionOfOneClientIsRefused) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto old = world.client(5, 1);
  auto newer = world.client(5, 2);
  EXPECT_TRUE(produce(old, {{id, 0}})[0].status.ok());
  EXPECT_TRUE(produce(newer, {{id, 0}})[0].status.ok());
  EXPECT_EQ(produce(old, {{id, 1}})[0].status.error(), WireError::stale_connection);
}

TEST_P(ProduceTest, OneBadBatchDoesNotTakeTheOthersWithIt) {
  const auto topic = world.create_topic("orders", 3);
  auto producer = client();
  std::string damaged = make_batch(1);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  const auto results =
      produce(producer, {{{topic, 0}, 0}, {{topic, 1}, 0, damaged}, {{topic, 2}, 0}});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].status.ok());
  EXPECT_EQ(results[1].status.error(), WireError::corrupt_batch);
  EXPECT_THAT(results[1].status.text, HasSubstr("orders-1"));
  EXPECT_TRUE(results[2].status.ok());
}

TEST_P(ProduceTest, ABatchAboveTheLimitIsRefusedWithBothSizes) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto producer = client();
  const auto results = produce(producer, {{id, 0, make_batch(1, 2U << 20)}});
  EXPECT_EQ(results[0].status.error(), WireError::batch_too_large);
  EXPECT_THAT(results[0].status.text, HasSubstr("the topic takes 1048576"));
}

TEST_P(ProduceTest, WhatIsNotThereIsNamed) {
  const auto topic = world.create_topic("orders");
  auto producer = client();
  const auto results =
      produce(producer, {{{topic, 7}, 0}, {{base::Uuid::from_random(3, 4), 0}, 0}});
  EXPECT_EQ(results[0].status.error(), WireError::unknown_partition);
  EXPECT_THAT(results[0].status.text, HasSubstr("has no partition 7"));
  EXPECT_EQ(results[1].status.error(), WireError::unknown_topic_id);
}

TEST_P(ProduceTest, ARequestWhoseSizesDisagreeIsMalformed) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto producer = client();
  auto request = testing::produce_request({{id, 0}});
  request.entries[0].batch_bytes += 1;
  const auto answer =
      producer.call(protocol::ApiKey::produce, protocol::encode(request), make_batch(1));
  EXPECT_EQ(answer.status().error(), WireError::malformed_request);
  const auto empty =
      producer.call(protocol::ApiKey::produce, protocol::encode(testing::produce_request({})));
  EXPECT_EQ(empty.status().error(), WireError::malformed_request);
}

TEST_P(ProduceTest, WithoutAcksNothingIsAnswered) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto producer = client();
  send_produce(producer, {{id, 0}}, Acks::none);
  const auto answered = send_produce(producer, {{id, 1}});
  const auto answer = producer.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->head.correlation_id, answered);
  EXPECT_EQ(testing::results_of(*answer)[0].base_offset, Offset(1));
}

// PRO-2
TEST_P(ProduceTest, AFailureWithoutAcksClosesTheConnectionWithOneLine) {
  const PartitionId id{world.create_topic("orders"), 0};
  std::vector<std::string> lines;
  base::set_log_sink(
      [&](base::LogLevel, std::string_view, std::string_view text) { lines.emplace_back(text); });
  auto producer = client();
  send_produce(producer, {{id, 5}}, Acks::none);
  EXPECT_TRUE(producer.closed_within(seconds(1)));
  base::set_log_sink({});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("OUT_OF_ORDER"));
}

TEST_P(ProduceTest, AckAllTimesOutAtItsDeadlineAndSaysMaybe) {
  ASSERT_TRUE(world.stop());
  world.disk_times.work_min = world.disk_times.work_max = seconds(2);
  world.disk_times.stall_chance = 0;
  ASSERT_TRUE(world.start());
  const PartitionId id{world.create_topic("orders", 1, "disk"), 0};
  auto producer = client();
  auto request = testing::produce_request({{id, 0}});
  request.envelope.deadline_ms = 500;
  const auto began = world.simulator.now();
  const auto answer =
      producer.call(protocol::ApiKey::produce, protocol::encode(request), make_batch(1));
  EXPECT_LT(world.simulator.now() - began, seconds(1));
  const auto results = testing::results_of(answer);
  EXPECT_EQ(results[0].status.error(), WireError::timed_out);
  EXPECT_TRUE(results[0].status.advice.maybe_applied);
}

TEST_P(ProduceTest, MemoryIsGivenBack) {
  const PartitionId id{world.create_topic("orders"), 0};
  {
    auto producer = client();
    for (std::uint64_t i = 0; i < 20; ++i) produce(producer, {{id, i, make_batch(10, 1000)}});
    protocol::FrameHead head;
    head.api_key = static_cast<std::uint16_t>(protocol::ApiKey::produce);
    producer.send_bytes(protocol::encode_frame(head, "", 100'000).substr(0, 20));
    world.run_for(std::chrono::milliseconds(100));
  }
  world.run_for(seconds(1));
  for (const auto& worker : world.broker->core().workers)
    EXPECT_EQ(worker->request_budget().used(), 0U);
  EXPECT_EQ(world.counter("connections_open"), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, ProduceTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace mq::broker
