#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_client.h"
#include "started_broker.h"

namespace mq::broker {
namespace {

using model::Offset;
using model::PartitionId;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::fetch;
using testing::from;
using ::testing::HasSubstr;
using testing::make_batch;
using testing::produce;

using FetchTest = testing::StartedBroker;

TEST_P(FetchTest, WhatWasProducedComesBackBehindTheStamp) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto one = client();
  const std::string batch = make_batch(3);
  produce(one, {{id, 0, batch}});
  const auto fetched = fetch(one, {{from(id, 0)}});
  ASSERT_EQ(fetched.results.size(), 1U);
  EXPECT_EQ(fetched.results[0].high_watermark, Offset(3));
  EXPECT_EQ(fetched.results[0].log_start_offset, Offset(0));
  ASSERT_EQ(fetched.payload.size(), batch.size());
  EXPECT_EQ(std::string(base::as_text(fetched.payload)).substr(32), batch.substr(32));
}

TEST_P(FetchTest, ALongPollIsWokenByAnAppendAndBlocksNobody) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto consumer = client(1);
  auto producer = client(2);
  testing::FetchAsk ask{{from(id, 0)}, 30'000};
  const auto waiting = testing::send_fetch(consumer, ask);
  protocol::MetadataRequest other;
  const auto between = consumer.send(protocol::ApiKey::metadata, protocol::encode(other));
  auto answer = consumer.receive(seconds(1));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->head.correlation_id, between);
  world.run_for(seconds(5));
  produce(producer, {{id, 0}});
  answer = consumer.receive(seconds(1));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->head.correlation_id, waiting);
  EXPECT_FALSE(answer->payload.empty());
}

TEST_P(FetchTest, ALongPollOverManyPartitionsIsWokenByAnyOfThem) {
  const auto topic = world.create_topic("orders", 8);
  auto consumer = client(1);
  auto producer = client(2);
  testing::FetchAsk ask;
  ask.wait_ms = 30'000;
  for (int p = 0; p < 8; ++p) ask.entries.push_back(from({topic, p}, 0));
  testing::send_fetch(consumer, ask);
  world.run_for(seconds(1));
  produce(producer, {{{topic, 5}, 0}});
  const auto fetched = testing::receive_fetch(consumer, seconds(1));
  ASSERT_TRUE(fetched);
  for (int p = 0; p < 8; ++p)
    EXPECT_EQ(fetched->results[static_cast<std::size_t>(p)].payload_bytes > 0, p == 5) << p;
}

TEST_P(FetchTest, WithoutRecordsItEndsAfterItsWait) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto consumer = client();
  const auto began = world.simulator.now();
  const auto fetched = fetch(consumer, {{from(id, 0)}, 700});
  EXPECT_TRUE(fetched.payload.empty());
  EXPECT_GE(world.simulator.now() - began, milliseconds(700));
  EXPECT_LT(world.simulator.now() - began, milliseconds(1000));
}

TEST_P(FetchTest, ItWaitsUntilEnoughIsThere) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto consumer = client(1);
  auto producer = client(2);
  testing::FetchAsk ask{{from(id, 0)}, 60'000, 1500};
  testing::send_fetch(consumer, ask);
  produce(producer, {{id, 0, make_batch(1, 500)}});
  EXPECT_FALSE(consumer.receive(seconds(1)));
  // The frame reader of the first wait still stands and takes the answer.
  produce(producer, {{id, 1, make_batch(1, 1500)}});
  world.run_for(seconds(1));
  EXPECT_EQ(world.counter("fetch_answers_total"), 1);
  EXPECT_GE(world.counter("fetch_bytes_total"), 2000);
}

// PAR-3
TEST_P(FetchTest, WhatIsNotDurableYetIsNotSeen) {
  ASSERT_TRUE(world.stop());
  world.disk_times.work_min = world.disk_times.work_max = seconds(1);
  world.disk_times.stall_chance = 0;
  ASSERT_TRUE(world.start());
  const PartitionId id{world.create_topic("orders", 1, "disk"), 0};
  auto producer = client(1);
  auto consumer = client(2);
  testing::send_produce(producer, {{id, 0}});
  world.run_for(milliseconds(300));
  const auto early = fetch(consumer, {{from(id, 0)}});
  EXPECT_EQ(early.results[0].high_watermark, Offset(0));
  EXPECT_TRUE(early.payload.empty());
  EXPECT_EQ(fetch(consumer, {{from(id, 1)}}).results[0].status.error(),
            WireError::offset_out_of_range);
  ASSERT_TRUE(producer.receive());
  EXPECT_FALSE(fetch(consumer, {{from(id, 0)}}).payload.empty());
}

// LOG-11
TEST_P(FetchTest, OutOfRangeNamesTheRange) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto one = client();
  produce(one, {{id, 0, make_batch(3)}});
  const auto fetched = fetch(one, {{from(id, 4)}, 10'000});
  EXPECT_EQ(fetched.results[0].status.error(), WireError::offset_out_of_range);
  EXPECT_EQ(fetched.results[0].status.text, "orders-0: offset 4 is not in [0, 3]");
}

TEST_P(FetchTest, OneBadEntryIsToldAtOnceAndTheOthersAreServed) {
  const auto topic = world.create_topic("orders", 2);
  auto one = client();
  produce(one, {{{topic, 1}, 0}});
  const auto fetched = fetch(one, {{from({topic, 0}, 9), from({topic, 1}, 0)}, 10'000});
  EXPECT_EQ(fetched.results[0].status.error(), WireError::offset_out_of_range);
  EXPECT_TRUE(fetched.results[1].status.ok());
  EXPECT_GT(fetched.results[1].payload_bytes, 0U);
}

TEST_P(FetchTest, TheFirstBatchComesWhateverTheLimit) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto one = client();
  produce(one, {{id, 0, make_batch(1, 5000)}, {id, 1, make_batch(1, 5000)}});
  for (const std::uint32_t limit : {0U, 1U, 5500U}) {
    testing::FetchAsk ask{{from(id, 0, limit)}, 0, 1, limit};
    const auto fetched = fetch(one, ask);
    EXPECT_GT(fetched.payload.size(), 5000U) << limit;
    EXPECT_LT(fetched.payload.size(), 6000U) << limit;
  }
}

TEST_P(FetchTest, AnAnswerAboveTheFrameLimitComesInSeveralFrames) {
  const auto topic = world.create_topic("orders", 12);
  auto one = client();
  testing::FetchAsk ask;
  ask.bytes_max = 64U << 20;
  for (int p = 0; p < 12; ++p) {
    produce(one, {{{topic, p}, 0, make_batch(1, 1'000'000)}});
    ask.entries.push_back(from({topic, p}, 0));
  }
  const auto fetched = fetch(one, ask);
  EXPECT_GT(fetched.frames, 1);
  ASSERT_EQ(fetched.results.size(), 12U);
  std::size_t bytes = 0;
  for (int p = 0; p < 12; ++p) {
    const auto& result = fetched.results[static_cast<std::size_t>(p)];
    EXPECT_EQ(result.partition.partition, p);
    EXPECT_GT(result.payload_bytes, 1'000'000U);
    bytes += result.payload_bytes;
  }
  EXPECT_EQ(bytes, fetched.payload.size());
}

TEST_P(FetchTest, ColdDataComesFromTheDisk) {
  const PartitionId id{world.create_topic("orders"), 0};
  {
    auto one = client();
    for (std::uint64_t i = 0; i < 10; ++i) produce(one, {{id, i, make_batch(1, 10'000)}});
  }
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());  // the tail cache is empty
  world.disk.set_cold_share(1);
  auto one = client();
  const auto fetched = fetch(one, {{from(id, 0)}, 1000});
  EXPECT_GT(fetched.payload.size(), 10'000U);
  EXPECT_GT(world.counter("fetch_disk_reads_total"), 0);
}

TEST_P(FetchTest, AClosedConnectionLeavesNothingBehind) {
  const PartitionId id{world.create_topic("orders"), 0};
  {
    auto consumer = client();
    testing::send_fetch(consumer, {{from(id, 0)}, 60'000});
    world.run_for(milliseconds(100));
    consumer.close();
  }
  world.run_for(seconds(1));
  EXPECT_EQ(world.counter("connections_open"), 0);
  for (const auto& worker : world.broker->core().workers) {
    EXPECT_EQ(worker->answer_budget().used(), 0U);
    EXPECT_EQ(worker->tasks().running(), 0U);
  }
}

TEST_P(FetchTest, DeletingTheTopicEndsTheWait) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto consumer = client(1);
  testing::send_fetch(consumer, {{from(id, 0)}, 60'000});
  world.run_for(milliseconds(100));
  auto admin = client(2);
  protocol::DeleteTopicsRequest request;
  request.names = {"orders"};
  admin.call(protocol::ApiKey::delete_topics, protocol::encode(request));
  const auto fetched = testing::receive_fetch(consumer, seconds(1));
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->results[0].status.error(), WireError::unknown_topic_id);
}

TEST_P(FetchTest, AReaderThatDoesNotReadIsClosedAndHoldsUpNobody) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto stuck = client(1);
  auto other = client(2);
  for (std::uint64_t i = 0; i < 30; ++i) produce(other, {{id, i, make_batch(1, 1'000'000)}});
  // Its window fills and nothing is read from it.
  for (int i = 0; i < 40; ++i) testing::send_fetch(stuck, {{from(id, 0)}});
  world.run_for(seconds(5));
  std::size_t used = 0;
  for (const auto& worker : world.broker->core().workers) used += worker->answer_budget().used();
  EXPECT_LE(used, world.limits.outbound_bytes + (std::size_t{16} << 20));
  EXPECT_FALSE(fetch(other, {{from(id, 0)}}).payload.empty());
  world.run_for(seconds(30));
  EXPECT_EQ(world.counter("connections_timed_out_total"), 1);
}

INSTANTIATE_TEST_SUITE_P(Workers, FetchTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace mq::broker
