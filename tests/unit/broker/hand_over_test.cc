#include <gtest/gtest.h>

#include "broker/membership.h"
#include "data_client.h"

namespace mq::broker {
namespace {

using model::Offset;
using model::PartitionId;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::BrokerWorld;
using testing::from;
using testing::RawClient;

constexpr std::int32_t kPartitions = 32;

struct HandOverTest : ::testing::Test {
  BrokerWorld world{1, 4};
  base::Uuid topic;

  void start() {
    ASSERT_TRUE(world.start()) << world.broker->refusal().text;
    topic = world.create_topic("orders", kPartitions);
    world.run_for(seconds(1));
  }
  const std::vector<std::unique_ptr<Worker>>& workers() { return world.broker->core().workers; }
  /// The only worker with a connection.
  Worker& worker_with_connection() {
    Worker* found = nullptr;
    for (const auto& worker : workers()) {
      if (worker->open_connections() == 0) continue;
      EXPECT_EQ(found, nullptr);
      found = worker.get();
    }
    return *found;
  }
  /// Partitions that do not belong, or that belong, to `worker`.
  std::vector<PartitionId> partitions(const Worker& worker, bool own) {
    std::vector<PartitionId> found;
    for (std::int32_t i = 0; i < kPartitions; ++i) {
      const PartitionId id{topic, i};
      if ((&world.broker->core().worker_of(id) == &worker) == own) found.push_back(id);
    }
    return found;
  }
  [[nodiscard]] std::int64_t moved() const { return world.counter("connections_moved_total"); }

  /// So many produce requests in one piece of bytes; their answers have to come in order.
  void produce_in_a_burst(RawClient& client, const PartitionId& id, std::uint64_t& sequence,
                          int requests) {
    std::vector<std::uint32_t> sent;
    for (int i = 0; i < requests; ++i)
      sent.push_back(testing::send_produce(client, {{id, sequence++}}));
    for (const auto correlation : sent) {
      const auto answer = client.receive();
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->head.correlation_id, correlation);
      const auto results = testing::results_of(*answer);
      EXPECT_TRUE(results[0].status.ok()) << results[0].status.text;
    }
  }
};

// PRO-3, PAR-5
TEST_F(HandOverTest, AConnectionMovesOnceToTheWorkerOfItsPartitions) {
  start();
  auto client = world.connect();
  client.hello();
  Worker& first = worker_with_connection();
  const PartitionId away = partitions(first, false).front();
  std::uint64_t sequence = 0;
  produce_in_a_burst(client, away, sequence, 40);
  EXPECT_EQ(moved(), 1);
  Worker& second = worker_with_connection();
  EXPECT_EQ(&second, &world.broker->core().worker_of(away));
  EXPECT_EQ(world.counter("connections_open"), 1);

  // Never again, whatever it asks for afterwards.
  const PartitionId back = partitions(first, true).front();
  std::uint64_t other_sequence = 0;
  produce_in_a_burst(client, back, other_sequence, 40);
  EXPECT_EQ(moved(), 1);
  EXPECT_EQ(&worker_with_connection(), &second);
  const auto fetched = testing::fetch(client, {{from(away, 0), from(back, 0)}});
  EXPECT_EQ(fetched.results[0].high_watermark, Offset(40));
  EXPECT_EQ(fetched.results[1].high_watermark, Offset(40));
}

TEST_F(HandOverTest, AFollowersConnectionMovesWithItsFirstRequest) {
  start();
  const auto image = world.broker->core().image();
  metadata::ImageChange change;
  change.brokers = image->brokers();
  change.brokers->push_back({model::BrokerId(2), model::BrokerEpoch(77), {"follower", 1}, true});
  world.broker->core().membership->view().publish(std::make_shared<metadata::ClusterImage>(
      image->with(std::move(change), image->version() + 1)));
  world.run_for(milliseconds(10));
  auto follower = world.connect();
  follower.hello();
  Worker& first = worker_with_connection();
  const PartitionId away = partitions(first, false).front();
  protocol::ReplicaFetchRequest request;
  request.broker = 2;
  request.broker_epoch = 77;
  request.wait_ms = 500;
  request.bytes_max = 1 << 20;
  request.subscribe.push_back(
      {away, 1, model::LeaderEpoch(1), model::LeaderEpoch(-1), Offset(0), Offset(0), Offset(0)});
  const auto sent = follower.send(protocol::ApiKey::replica_fetch, protocol::encode(request));
  request.subscribe.clear();
  follower.send(protocol::ApiKey::replica_fetch, protocol::encode(request));
  const auto answer = follower.receive(seconds(2));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->head.correlation_id, sent);
  const auto response = protocol::decode_replica_fetch_response(answer->header_bytes());
  EXPECT_EQ(response->results.size(), 1U);  // it has no followers: told by name
  EXPECT_EQ(moved(), 1);
  EXPECT_EQ(&worker_with_connection(), &world.broker->core().worker_of(away));
  EXPECT_TRUE(follower.receive(seconds(2)));
}

TEST_F(HandOverTest, WithPartitionsOfAllWorkersAConnectionStays) {
  start();
  auto client = world.connect();
  client.hello();
  testing::FetchAsk ask;
  for (std::int32_t i = 0; i < kPartitions; ++i) ask.entries.push_back(from({topic, i}, 0));
  for (int i = 0; i < 40; ++i) testing::fetch(client, ask);
  EXPECT_EQ(moved(), 0);
}

TEST_F(HandOverTest, WhereItsPartitionsAreAConnectionStays) {
  start();
  auto client = world.connect();
  client.hello();
  Worker& worker = worker_with_connection();
  std::uint64_t sequence = 0;
  produce_in_a_burst(client, partitions(worker, true).front(), sequence, 40);
  EXPECT_EQ(moved(), 0);
}

TEST_F(HandOverTest, ALongPollIsAnsweredBeforeTheConnectionMoves) {
  start();
  auto client = world.connect();
  client.hello();
  const PartitionId away = partitions(worker_with_connection(), false).front();
  for (std::size_t i = 1; i < world.limits.requests_before_move; ++i)
    testing::fetch(client, {{from(away, 0)}});
  const auto began = world.simulator.now();
  const auto held = testing::fetch(client, {{from(away, 0)}, 60'000});
  EXPECT_EQ(held.results[0].payload_bytes, 0U);
  EXPECT_LT(world.simulator.now() - began, seconds(5));
  EXPECT_EQ(moved(), 1);

  // The next one is held on the other worker, and woken there.
  testing::send_fetch(client, {{from(away, 0)}, 60'000});
  auto producer = world.connect();
  producer.hello(2);
  EXPECT_TRUE(testing::produce(producer, {{away, 0}})[0].status.ok());
  const auto fetched = testing::receive_fetch(client, seconds(5));
  ASSERT_TRUE(fetched);
  EXPECT_GT(fetched->results[0].payload_bytes, 0U);
}

TEST_F(HandOverTest, ASlowAnswerKeepsTheConnectionWhereItIs) {
  world.limits.move_wait = milliseconds(20);
  world.disk_times.stall_chance = 0;
  start();
  const auto slow_topic = world.create_topic("slow", kPartitions, "disk");
  world.run_for(seconds(1));
  world.disk_times.work_min = world.disk_times.work_max = milliseconds(500);
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());
  topic = slow_topic;
  auto client = world.connect();
  client.hello();
  Worker& worker = worker_with_connection();
  std::uint64_t sequence = 0;
  produce_in_a_burst(client, partitions(worker, false).front(), sequence, 40);
  EXPECT_EQ(moved(), 0);
  EXPECT_EQ(&worker_with_connection(), &worker);
}

TEST_F(HandOverTest, ARequestThatMayTakeLongIsWaitedForWithoutHoldingUpTheOthers) {
  start();
  auto client = world.connect();
  client.hello();
  const PartitionId away = partitions(worker_with_connection(), false).front();
  protocol::MetadataRequest metadata;
  metadata.newer_than = world.broker->core().image_version;
  metadata.envelope.deadline_ms = 10'000;
  const auto waiting = client.send(protocol::ApiKey::metadata, protocol::encode(metadata));
  std::uint64_t sequence = 0;
  produce_in_a_burst(client, away, sequence, 40);
  EXPECT_EQ(moved(), 0);
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->head.correlation_id, waiting);
  produce_in_a_burst(client, away, sequence, 2);
  EXPECT_EQ(moved(), 1);
}

TEST_F(HandOverTest, DeadlinesGoOnBehindTheMove) {
  world.limits.idle_timeout = seconds(30);
  start();
  auto client = world.connect();
  client.hello();
  const PartitionId away = partitions(worker_with_connection(), false).front();
  std::uint64_t sequence = 0;
  produce_in_a_burst(client, away, sequence, 20);
  ASSERT_EQ(moved(), 1);
  EXPECT_FALSE(client.closed_within(seconds(20)));
  EXPECT_TRUE(client.closed_within(seconds(20)));
  world.run_for(seconds(1));
  EXPECT_EQ(world.counter("connections_open"), 0);
}

TEST_F(HandOverTest, AStopEndsConnectionsThatHaveMoved) {
  start();
  auto client = world.connect();
  client.hello();
  const PartitionId away = partitions(worker_with_connection(), false).front();
  std::uint64_t sequence = 0;
  produce_in_a_burst(client, away, sequence, 20);
  ASSERT_EQ(moved(), 1);
  EXPECT_TRUE(world.stop());
  EXPECT_EQ(world.counter("connections_open"), 0);
  EXPECT_TRUE(client.closed_within(seconds(1)));
}

/// Stops at many moments, some of them in the middle of a move.
TEST_F(HandOverTest, AStopDuringTheMoveLosesNoConnection) {
  for (int micros = 0; micros < 6000; micros += 300) {
    BrokerWorld small{static_cast<std::uint64_t>(micros) + 1, 3};
    ASSERT_TRUE(small.start());
    const auto id = small.create_topic("t", 8);
    std::vector<RawClient> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(small.connect());
      clients.back().hello(static_cast<std::uint64_t>(i) + 1);
    }
    for (std::uint64_t round = 0; round < 17; ++round) {
      for (int i = 0; i < 4; ++i) testing::send_produce(clients[i], {{{id, i}, round}});
    }
    small.run_for(std::chrono::microseconds(micros));
    EXPECT_TRUE(small.stop());
    EXPECT_EQ(small.counter("connections_open"), 0);
  }
}

}  // namespace
}  // namespace mq::broker
