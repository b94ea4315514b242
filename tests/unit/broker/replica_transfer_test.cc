// What a leader sends to its followers: how much at a time, how soon, and from where on.
#include "replica_fetch_fixture.h"

namespace mq::broker {
namespace {

/// Whole batches that go on at `end`, which is behind them then.
void walk(base::Bytes payload, std::int64_t& end) {
  while (!payload.empty()) {
    const auto size = model::peek_batch_bytes(payload);
    ASSERT_TRUE(size);
    const auto batch = model::RecordBatchView::parse(payload.first(*size));
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch->base_offset(), Offset(end));
    end = batch->end_offset().value();
    payload = payload.subspan(*size);
  }
}

struct ReplicaTransferTest : ReplicaFetchTest {};

INSTANTIATE_TEST_SUITE_P(Workers, ReplicaTransferTest, ::testing::Values(1, 3));

TEST_P(ReplicaTransferTest, ManyPartitionsOfAllWorkersShareOneConnection) {
  constexpr int kPartitions = 12;
  const auto topic = world.create_topic("orders", kPartitions);
  know_follower();
  auto follower = client(1);
  auto producer = client(2);
  auto ask = request();
  std::vector<testing::ProduceItem> items;
  for (int i = 0; i < kPartitions; ++i) {
    const PartitionId id{topic, i};
    replicate(id, {leader(), kFollower});
    ask.subscribe.push_back(from(id, 0));
    items.push_back({id, 0, testing::make_batch(5)});
  }
  send(follower, ask);
  testing::send_produce(producer, items);
  std::map<std::int32_t, std::int64_t> ends;
  const auto until = world.simulator.now() + seconds(3);
  while (world.simulator.now() < until && ends.size() < kPartitions) {
    const auto news = receive(follower, milliseconds(600));
    ASSERT_TRUE(news);
    auto next = request();
    std::size_t bytes = 0;
    for (const auto& result : news->response.results) {
      ASSERT_TRUE(result.status.ok()) << result.status.text;
      bytes += result.payload_bytes;
      if (result.payload_bytes == 0) continue;
      ends[result.partition.partition] = 5;
      next.positions.push_back(has(result.partition, 5));
    }
    EXPECT_EQ(bytes, news->payload.size());
    send(follower, next);
  }
  EXPECT_EQ(ends.size(), static_cast<std::size_t>(kPartitions));
  const auto answer = producer.receive(milliseconds(100));
  ASSERT_TRUE(answer);
  for (const auto& result : testing::results_of(*answer)) EXPECT_TRUE(result.status.ok());
}

TEST_P(ReplicaTransferTest, MuchIsSentInPiecesThatFollowEachOther) {
  const auto id = replicated_topic("orders");
  auto follower = client(1);
  auto producer = client(2);
  for (std::uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(testing::produce(producer, {{id, i, testing::make_batch(10, 5000)}},
                                 protocol::Acks::leader)[0]
                    .status.ok());
  }
  auto ask = request();
  ask.subscribe = {from(id, 0)};
  ask.bytes_max = 100'000;
  send(follower, ask);
  std::int64_t end = 0;
  int answers = 0;
  while (end < 400 && answers < 100) {
    const auto news = receive(follower);
    ASSERT_TRUE(news);
    ++answers;
    EXPECT_LE(news->payload.size(), 100'000U);
    ASSERT_NO_FATAL_FAILURE(walk(news->payload, end));
    auto next = request();
    next.bytes_max = 100'000;
    next.positions = {has(id, end)};
    send(follower, next);
  }
  EXPECT_EQ(end, 400);
  EXPECT_GT(answers, 15);
}

/// A log start may lie inside a batch, and batches go whole.
TEST_P(ReplicaTransferTest, AReplicaThatEndsBelowTheLogBeginsWhereItsFirstBatchDoes) {
  const auto id = replicated_topic("orders");
  auto follower = client(1);
  auto producer = client(2);
  subscribe(follower, from(id, 0));
  for (int i = 0; i < 3; ++i)
    testing::send_produce(producer, {{id, 0, testing::make_batch(5)}}, protocol::Acks::leader);
  auto ask = request();
  send(follower, ask);
  world.run_for(milliseconds(50));
  ask.positions = {has(id, 15)};
  send(follower, ask);
  world.run_for(milliseconds(50));
  ASSERT_TRUE(testing::run(world.simulator, core().disks->find(id)->trim(Offset(7))));
  auto late = client(3);
  const auto below = subscribe(late, from(id, 0));
  EXPECT_EQ(below.response.results[0].status.error(), WireError::offset_out_of_range);
  EXPECT_EQ(below.response.results[0].log_start, Offset(5));
  auto empty = from(id, 5, 2, -1);
  const auto news = subscribe(late, empty);
  ASSERT_TRUE(news.response.results[0].status.ok()) << news.response.results[0].status.text;
  EXPECT_EQ(news.response.results[0].log_start, Offset(7));
  const auto first = model::RecordBatchView::parse(
      base::Bytes(news.payload).first(*model::peek_batch_bytes(news.payload)));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->base_offset(), Offset(5));
  // What one has before that batch is no part of the log: it has to be emptied first.
  const auto other = subscribe(late, from(id, 5, 3));
  EXPECT_EQ(other.response.results[0].status.error(), WireError::offset_out_of_range);
  EXPECT_EQ(other.response.results[0].log_start, Offset(5));
}

TEST_P(ReplicaTransferTest, WhatLiesOnTheDiskHoldsUpNobody) {
  const PartitionId cold{world.create_topic("cold"), 0};
  {
    auto producer = client(2);
    for (std::uint64_t i = 0; i < 30; ++i)
      testing::produce(producer, {{cold, i, testing::make_batch(10, 10'000)}});
  }
  ASSERT_TRUE(world.stop());
  world.disk_times.work_min = world.disk_times.work_max = milliseconds(200);
  ASSERT_TRUE(world.start());  // the tail cache is empty
  const PartitionId hot = replicated_topic("hot");
  replicate(cold, {leader(), kFollower});
  world.disk.set_cold_share(1);
  auto follower = client(1);
  auto ask = request();
  ask.subscribe = {from(cold, 0), from(hot, 0)};
  send(follower, ask);
  auto news = receive(follower);
  ASSERT_TRUE(news);
  EXPECT_TRUE(news->payload.empty());
  auto producer = client(4);
  testing::send_produce(producer, {{hot, 0}});
  ask = request();
  send(follower, ask);
  news = receive(follower);
  ASSERT_TRUE(news);
  ASSERT_FALSE(news->response.results.empty());
  EXPECT_EQ(news->response.results.front().partition, hot);
  send(follower, ask);
  std::int64_t end = 0;
  for (int i = 0; i < 200 && end < 300; ++i) {
    news = receive(follower);
    ASSERT_TRUE(news);
    auto next = request();
    ASSERT_NO_FATAL_FAILURE(walk(news->payload, end));
    next.positions = {has(cold, end)};
    send(follower, next);
  }
  EXPECT_EQ(end, 300);
  EXPECT_GT(world.counter("fetch_disk_reads_total"), 0);
}

/// With a megabyte a second for those that are not in sync.
struct CatchUpPaceTest : ReplicaFetchTest {
  void SetUp() override {
    world.limits.catch_up_bytes_per_second = 1U << 20;
    ReplicaFetchTest::SetUp();
  }
  /// How long it takes to get all of `id`.
  base::Duration catch_up(const PartitionId& id, std::int64_t records) {
    auto follower = client(1);
    const auto began = world.simulator.now();
    auto ask = request();
    ask.subscribe = {from(id, 0)};
    send(follower, ask);
    std::int64_t end = 0;
    for (int answers = 0; end < records && answers < 200; ++answers) {
      const auto news = receive(follower, seconds(10));
      if (!news) break;
      walk(news->payload, end);
      auto next = request();
      next.positions = {has(id, end)};
      send(follower, next);
    }
    EXPECT_EQ(end, records);
    return world.simulator.now() - began;
  }
  PartitionId filled_topic(std::vector<IsrMember> isr) {
    const PartitionId id{world.create_topic("orders"), 0};
    know_follower();
    replicate(id, std::move(isr));
    auto producer = client(2);
    for (std::uint64_t i = 0; i < 80; ++i) {
      const auto done = testing::produce(producer, {{id, i, testing::make_batch(10, 5000)}},
                                         protocol::Acks::leader);
      EXPECT_TRUE(done[0].status.ok());
    }
    return id;
  }
};

INSTANTIATE_TEST_SUITE_P(Workers, CatchUpPaceTest, ::testing::Values(1, 2));

TEST_P(CatchUpPaceTest, AReplicaThatIsNotInSyncKeepsToIt) {
  const auto id = filled_topic({leader()});
  const auto took = catch_up(id, 800);  // 4 MB
  EXPECT_GE(took, seconds(2));
  EXPECT_LE(took, seconds(5));
  EXPECT_GE(world.counter("replica_catch_up_bytes_total"), 2'000'000);
}

// Also at first, with many partitions that are on the disk only.
TEST_P(CatchUpPaceTest, ManyPartitionsHaveOnePaceTogether) {
  std::vector<PartitionId> ids;
  {
    auto producer = client(2);
    for (int topic = 0; topic < 8; ++topic) {
      ids.emplace_back(PartitionId{world.create_topic("cold-" + std::to_string(topic)), 0});
      for (std::uint64_t i = 0; i < 10; ++i)
        testing::produce(producer, {{ids.back(), i, testing::make_batch(10, 5000)}});
    }
  }
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());  // the tail cache is empty
  know_follower();
  for (const auto& id : ids) replicate(id, {leader()});
  world.disk.set_cold_share(1);
  auto follower = client(1);
  auto ask = request();
  for (const auto& id : ids) ask.subscribe.push_back(from(id, 0));
  send(follower, ask);
  std::size_t bytes = 0;
  const auto until = world.simulator.now() + seconds(1);
  while (world.simulator.now() < until) {
    const auto news = receive(follower, seconds(10));
    ASSERT_TRUE(news);
    bytes += news->payload.size();
    send(follower, request());
  }
  EXPECT_GT(bytes, 500'000U);
  EXPECT_LE(bytes, 3'000'000U) << "of 4 MB";
}

TEST_P(CatchUpPaceTest, OneThatIsInSyncDoesNot) {
  const auto id = filled_topic({leader(), kFollower});
  EXPECT_LE(catch_up(id, 800), seconds(1));
  EXPECT_EQ(world.counter("replica_catch_up_bytes_total"), 0);
}

}  // namespace
}  // namespace mq::broker
