// The leader's side of replication, with a follower that the test plays.
#include "protocol/replica_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutants.h"
#include "broker/membership.h"
#include "data_client.h"
#include "protocol/trim_partitions.h"

namespace mq::broker {
namespace {

using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using model::LeaderEpoch;
using model::Offset;
using model::PartitionId;
using protocol::ReplicaFetchRequest;
using protocol::ReplicaFetchResponse;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::BrokerWorld;

constexpr IsrMember kFollower{BrokerId(2), BrokerEpoch(77)};

struct News {
  std::uint32_t correlation = 0;
  ReplicaFetchResponse response;
  std::vector<std::byte> payload;
};

struct ReplicaFetchTest : ::testing::TestWithParam<std::size_t> {
  BrokerWorld world{1, GetParam()};

  void SetUp() override { ASSERT_TRUE(world.start()) << world.broker->refusal().text; }

  testing::RawClient client(std::uint64_t instance = 1) {
    auto made = world.connect();
    made.hello(instance);
    return made;
  }
  const Core& core() const { return world.broker->core(); }
  IsrMember leader() const { return {core().id, core().membership->epoch()}; }

  /// There is a second broker, by the image that this one has.
  void know_follower() {
    const auto image = core().image();
    metadata::ImageChange change;
    change.brokers = image->brokers();
    change.brokers->push_back({kFollower.broker, kFollower.epoch, {"follower", 1}, true});
    core().membership->view().publish(std::make_shared<metadata::ClusterImage>(
        image->with(std::move(change), image->version() + 1)));
    world.run_for(milliseconds(10));
  }
  /// This broker leads `id` in `epoch`, with the follower as second replica.
  void replicate(const PartitionId& id, std::vector<IsrMember> isr, std::int32_t epoch = 100) {
    Worker& worker = core().worker_of(id);
    auto before = worker.partitions().remove(id);
    before->close();
    testing::run(world.simulator, before->closed());
    before.reset();
    auto* log = core().disks->find(id);
    ASSERT_TRUE(log->start_epoch(LeaderEpoch(epoch)));
    replication::LeaderRole role;
    role.self = leader();
    role.replicas = {core().id, kFollower.broker};
    role.state = {core().id, LeaderEpoch(epoch), model::PartitionVersion(1), std::move(isr), 2};
    worker.partitions().add(std::make_shared<replication::Partition>(
        worker.runtime(), *log, world.counters, std::move(role)));
  }
  PartitionId replicated_topic(const std::string& name) {
    const PartitionId id{world.create_topic(name), 0};
    know_follower();
    replicate(id, {leader(), kFollower});
    return id;
  }

  static ReplicaFetchRequest request(std::uint32_t wait_ms = 500) {
    ReplicaFetchRequest request;
    request.broker = kFollower.broker.value();
    request.broker_epoch = kFollower.epoch.value();
    request.wait_ms = wait_ms;
    request.bytes_max = 4U << 20;
    return request;
  }
  static protocol::ReplicaSubscribe from(const PartitionId& id, std::int64_t end,
                                         std::uint32_t number = 1, std::int32_t last_epoch = 100) {
    return {id,        number,      LeaderEpoch(100), LeaderEpoch(end == 0 ? -1 : last_epoch),
            Offset(0), Offset(end), Offset(end)};
  }
  static protocol::ReplicaPosition has(const PartitionId& id, std::int64_t end,
                                       std::uint32_t number = 1) {
    return {id, number, Offset(end), Offset(end)};
  }
  static std::uint32_t send(testing::RawClient& follower, const ReplicaFetchRequest& request) {
    return follower.send(protocol::ApiKey::replica_fetch, protocol::encode(request));
  }
  static std::optional<News> receive(testing::RawClient& follower,
                                     base::Duration limit = seconds(1)) {
    auto answer = follower.receive(limit);
    if (!answer) return std::nullopt;
    auto response = protocol::decode_replica_fetch_response(answer->header_bytes());
    if (!response) throw std::runtime_error("an answer that does not parse");
    return News{answer->head.correlation_id, *std::move(response), std::move(answer->payload)};
  }
  News subscribe(testing::RawClient& follower, const protocol::ReplicaSubscribe& from) {
    auto ask = request();
    ask.subscribe = {from};
    send(follower, ask);
    auto news = receive(follower);
    if (!news || news->response.results.size() != 1)
      throw std::runtime_error("one result was expected");
    return *std::move(news);
  }
};

TEST_P(ReplicaFetchTest, ASubscriptionBeginsWithWhereTheLeaderIs) {
  const auto id = replicated_topic("orders");
  auto follower = client();
  const auto news = subscribe(follower, from(id, 0));
  EXPECT_TRUE(news.response.envelope.status.ok());
  const auto& result = news.response.results[0];
  EXPECT_TRUE(result.status.ok()) << result.status.text;
  EXPECT_EQ(result.partition, id);
  EXPECT_EQ(result.number, 1U);
  EXPECT_EQ(result.leader_epoch, LeaderEpoch(100));
  EXPECT_EQ(result.log_start, Offset(0));
  EXPECT_EQ(result.high_watermark, Offset(0));
  EXPECT_EQ(result.payload_bytes, 0U);
}

TEST_P(ReplicaFetchTest, AcksAllAreAnsweredOnceTheFollowerHasTheBatch) {
  const auto id = replicated_topic("orders");
  auto follower = client(1);
  auto producer = client(2);
  subscribe(follower, from(id, 0));
  send(follower, request());
  testing::send_produce(producer, {{id, 0, testing::make_batch(3)}});
  const auto news = receive(follower);
  ASSERT_TRUE(news);
  ASSERT_EQ(news->response.results.size(), 1U);
  EXPECT_EQ(news->payload.size(), news->response.results[0].payload_bytes);
  const auto batch = model::RecordBatchView::parse(news->payload);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->base_offset(), Offset(0));
  EXPECT_EQ(batch->leader_epoch(), LeaderEpoch(100));
  // That it was sent proves nothing.
  EXPECT_FALSE(producer.receive(milliseconds(300)));
  auto told = request();
  told.positions = {has(id, 3)};
  send(follower, told);
  const auto answer = producer.receive(milliseconds(100));
  ASSERT_TRUE(answer);
  EXPECT_TRUE(testing::results_of(*answer)[0].status.ok());
}

TEST_P(ReplicaFetchTest, WhatWasSentAndNotSaidIsNotConfirmed) {
  const base::EnabledMutant mutant("send_cursor_confirms");
  const auto id = replicated_topic("orders");
  auto follower = client(1);
  auto producer = client(2);
  subscribe(follower, from(id, 0));
  send(follower, request());
  testing::send_produce(producer, {{id, 0, testing::make_batch(3)}});
  ASSERT_TRUE(receive(follower));
  EXPECT_TRUE(producer.receive(milliseconds(300)));  // the mistake: nobody said that it has it
}

TEST_P(ReplicaFetchTest, BelowMinIsrNothingIsAppended) {
  const PartitionId id{world.create_topic("orders"), 0};
  know_follower();
  replicate(id, {leader()});
  auto producer = client();
  const auto refused = testing::produce(producer, {{id, 0}});
  EXPECT_EQ(refused[0].status.error(), WireError::not_enough_replicas);
  EXPECT_FALSE(refused[0].status.advice.maybe_applied);
  EXPECT_TRUE(testing::produce(producer, {{id, 0}}, protocol::Acks::leader)[0].status.ok());
}

TEST_P(ReplicaFetchTest, TooFewReplicasAfterTheAppendAreToldByName) {
  const auto id = replicated_topic("orders");
  auto producer = client();
  auto ask = testing::produce_request({{id, 0}});
  ask.envelope.deadline_ms = 2000;
  producer.send(protocol::ApiKey::produce, protocol::encode(ask), testing::payload_of({{id, 0}}));
  world.run_for(milliseconds(500));
  core().worker_of(id).partitions().find(id)->take_state(
      {core().id, LeaderEpoch(100), model::PartitionVersion(2), {leader()}, 2});
  const auto answer = producer.receive(seconds(5));
  ASSERT_TRUE(answer);
  const auto status = testing::results_of(*answer)[0].status;
  EXPECT_EQ(status.error(), WireError::not_enough_replicas_after_append);
  EXPECT_TRUE(status.advice.maybe_applied);
}

TEST_P(ReplicaFetchTest, TheEndIsNotToldBeforeItIsKnown) {
  // PAR-8
  const PartitionId id{world.create_topic("orders"), 0};
  auto consumer = client(2);
  ASSERT_TRUE(testing::produce(consumer, {{id, 0, testing::make_batch(3)}})[0].status.ok());
  know_follower();
  replicate(id, {leader(), kFollower});
  const auto latest = [&] {
    protocol::ListOffsetsRequest ask;
    ask.entries = {{id, protocol::OffsetPoint::latest}};
    const auto answer = consumer.call(protocol::ApiKey::list_offsets, protocol::encode(ask));
    return protocol::decode_list_offsets_response(answer.header_bytes())->results[0];
  };
  EXPECT_EQ(latest().status.error(), WireError::offset_not_available);
  const auto fetched = testing::fetch(consumer, {{testing::from(id, 3)}});
  EXPECT_TRUE(fetched.results[0].status.ok());
  EXPECT_EQ(fetched.results[0].high_watermark, Offset());
  auto follower = client(1);
  const auto old_epoch = core().disks->find(id)->epoch_starts().front().leader_epoch.value();
  subscribe(follower, from(id, 3, 1, old_epoch));
  EXPECT_EQ(latest().offset, Offset(3));
  EXPECT_EQ(testing::fetch(consumer, {{testing::from(id, 3)}}).results[0].high_watermark,
            Offset(3));
}

TEST_P(ReplicaFetchTest, TwoRequestsAreHeldAndAThirdReleasesTheOldest) {
  const auto id = replicated_topic("orders");
  auto follower = client();
  subscribe(follower, from(id, 0));
  const auto first = send(follower, request());
  send(follower, request());
  EXPECT_FALSE(receive(follower, milliseconds(100)));
  send(follower, request());
  auto news = receive(follower, milliseconds(50));
  ASSERT_TRUE(news);
  EXPECT_EQ(news->correlation, first);
  EXPECT_TRUE(news->response.results.empty());
  EXPECT_FALSE(receive(follower, milliseconds(100)));
}

TEST_P(ReplicaFetchTest, AtItsDeadlineARequestTellsTheHighWatermark) {
  const auto id = replicated_topic("orders");
  auto follower = client(1);
  auto producer = client(2);
  subscribe(follower, from(id, 0));
  send(follower, request());
  testing::send_produce(producer, {{id, 0, testing::make_batch(3)}});
  ASSERT_TRUE(receive(follower));
  auto told = request(400);
  told.positions = {has(id, 3)};
  send(follower, told);
  ASSERT_TRUE(producer.receive(milliseconds(50)));
  EXPECT_FALSE(receive(follower, milliseconds(200)));
  const auto news = receive(follower, milliseconds(300));
  ASSERT_TRUE(news);
  ASSERT_EQ(news->response.results.size(), 1U);
  EXPECT_EQ(news->response.results[0].high_watermark, Offset(3));
  EXPECT_EQ(news->response.results[0].payload_bytes, 0U);
  send(follower, request(100));
  const auto quiet = receive(follower, milliseconds(300));
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(quiet->response.results.empty());
}

TEST_P(ReplicaFetchTest, AnotherRegistrationIsRefusedInItsTurn) {
  const auto id = replicated_topic("orders");
  auto follower = client();
  subscribe(follower, from(id, 0));
  const auto held = send(follower, request());
  auto stale = request();
  stale.broker_epoch = 76;
  stale.positions = {has(id, 0)};
  const auto refused = send(follower, stale);
  auto answer = receive(follower, milliseconds(50));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->correlation, held);
  const auto second = follower.receive(milliseconds(50));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->head.correlation_id, refused);
  EXPECT_EQ(second->status().error(), WireError::stale_broker_epoch);
  EXPECT_TRUE(second->status().advice.retriable);
}

TEST_P(ReplicaFetchTest, NobodyButABrokerMayFollow) {
  const auto id = replicated_topic("orders");
  auto stranger = client();
  auto ask = request();
  ask.broker = 9;
  ask.subscribe = {from(id, 0)};
  send(stranger, ask);
  EXPECT_EQ(stranger.receive(milliseconds(50))->status().error(), WireError::stale_broker_epoch);
  ask.broker = core().id.value();
  ask.broker_epoch = core().membership->epoch().value();
  send(stranger, ask);
  EXPECT_EQ(stranger.receive(milliseconds(50))->status().error(), WireError::invalid_request);
}

TEST_P(ReplicaFetchTest, ADivergingLogIsToldWhereAndGetsNothing) {
  // ISR-6
  const PartitionId id{world.create_topic("orders"), 0};
  auto producer = client(2);
  ASSERT_TRUE(testing::produce(producer, {{id, 0, testing::make_batch(3)}})[0].status.ok());
  know_follower();
  replicate(id, {leader(), kFollower});
  const auto old_epoch = core().disks->find(id)->epoch_starts().front().leader_epoch;
  auto follower = client(1);
  const auto news = subscribe(follower, from(id, 9, 1, 50));
  const auto& result = news.response.results[0];
  EXPECT_TRUE(result.status.ok());
  ASSERT_TRUE(result.diverging);
  EXPECT_EQ(*result.diverging, (protocol::Divergence{old_epoch, Offset(3)}));
  EXPECT_EQ(result.payload_bytes, 0U);
  send(follower, request());
  testing::send_produce(producer, {{id, 0}});
  EXPECT_FALSE(receive(follower, milliseconds(300)));
  // It cuts and comes again.
  auto again = request();
  again.subscribe = {from(id, 3, 2, old_epoch.value())};
  send(follower, again);
  const auto now = receive(follower);
  ASSERT_TRUE(now);
  ASSERT_EQ(now->response.results.size(), 1U);
  EXPECT_EQ(now->response.results[0].number, 2U);
  EXPECT_GT(now->response.results[0].payload_bytes, 0U);
}

TEST_P(ReplicaFetchTest, APositionOfAnEarlierSubscriptionDoesNotCount) {
  const auto id = replicated_topic("orders");
  auto follower = client(1);
  auto producer = client(2);
  subscribe(follower, from(id, 0));
  subscribe(follower, from(id, 0, 2));
  testing::send_produce(producer, {{id, 0, testing::make_batch(3)}});
  auto old = request();
  old.positions = {has(id, 3, 1)};
  send(follower, old);
  ASSERT_TRUE(receive(follower));
  EXPECT_FALSE(producer.receive(milliseconds(300)));
  auto now = request();
  now.positions = {has(id, 3, 2)};
  send(follower, now);
  EXPECT_TRUE(producer.receive(milliseconds(100)));
}

TEST_P(ReplicaFetchTest, OtherEpochsAndUnknownPartitionsAreToldByName) {
  const auto id = replicated_topic("orders");
  auto follower = client();
  auto older = from(id, 0);
  older.leader_epoch = LeaderEpoch(99);
  EXPECT_EQ(subscribe(follower, older).response.results[0].status.error(),
            WireError::fenced_leader_epoch);
  auto newer = from(id, 0, 2);
  newer.leader_epoch = LeaderEpoch(101);
  EXPECT_EQ(subscribe(follower, newer).response.results[0].status.error(),
            WireError::unknown_leader_epoch);
  const PartitionId nowhere{base::Uuid::from_random(7, 7), 0};
  EXPECT_EQ(subscribe(follower, from(nowhere, 0)).response.results[0].status.error(),
            WireError::unknown_topic_id);
}

TEST_P(ReplicaFetchTest, WhenThePartitionGoesItsFollowersAreTold) {
  const auto id = replicated_topic("orders");
  auto follower = client();
  subscribe(follower, from(id, 0));
  send(follower, request());
  replicate(id, {leader(), kFollower}, 101);
  const auto news = receive(follower, milliseconds(100));
  ASSERT_TRUE(news);
  ASSERT_EQ(news->response.results.size(), 1U);
  EXPECT_FALSE(news->response.results[0].status.ok());
}

TEST_P(ReplicaFetchTest, ManyPartitionsOfAllWorkersShareOneConnection) {
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

TEST_P(ReplicaFetchTest, MuchIsSentInPiecesThatFollowEachOther) {
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
    base::Bytes rest(news->payload);
    while (!rest.empty()) {
      const auto size = model::peek_batch_bytes(rest);
      ASSERT_TRUE(size);
      const auto batch = model::RecordBatchView::parse(rest.first(*size));
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch->base_offset(), Offset(end));
      end = batch->end_offset().value();
      rest = rest.subspan(*size);
    }
    auto next = request();
    next.bytes_max = 100'000;
    next.positions = {has(id, end)};
    send(follower, next);
  }
  EXPECT_EQ(end, 400);
  EXPECT_GT(answers, 15);
}

TEST_P(ReplicaFetchTest, ATrimIsAnsweredOnceTheWholeIsrBeginsThere) {
  const auto id = replicated_topic("orders");
  auto follower = client(1);
  auto producer = client(2);
  auto admin = client(3);
  subscribe(follower, from(id, 0));
  testing::send_produce(producer, {{id, 0, testing::make_batch(3)}}, protocol::Acks::leader);
  auto ask = request();
  ask.positions = {has(id, 3)};
  send(follower, request());
  send(follower, ask);
  world.run_for(milliseconds(50));
  protocol::TrimPartitionsRequest trim;
  trim.envelope.deadline_ms = 2'000;
  trim.entries = {{id, Offset(2)}};
  const auto send_trim = [&] {
    admin.send(protocol::ApiKey::trim_partitions, protocol::encode(trim));
  };
  send_trim();
  EXPECT_FALSE(admin.receive(seconds(1)));
  const auto late = admin.receive(seconds(2));
  ASSERT_TRUE(late);
  const auto refused = protocol::decode_trim_partitions_response(late->header_bytes());
  EXPECT_EQ(refused->results[0].status.error(), WireError::timed_out);
  EXPECT_EQ(refused->results[0].status.text,
            "orders-0: it begins at 2 here, but broker 2 has not removed the records yet");
  send_trim();
  world.run_for(milliseconds(50));
  ask.positions[0].log_start = Offset(2);
  send(follower, ask);
  const auto answer = admin.receive(milliseconds(200));
  ASSERT_TRUE(answer);
  const auto done = protocol::decode_trim_partitions_response(answer->header_bytes());
  EXPECT_TRUE(done->results[0].status.ok()) << done->results[0].status.text;
  EXPECT_EQ(done->results[0].log_start_offset, Offset(2));
}

/// A log start may lie inside a batch, and batches go whole.
TEST_P(ReplicaFetchTest, AReplicaThatEndsBelowTheLogBeginsWhereItsFirstBatchDoes) {
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

TEST_P(ReplicaFetchTest, AReplicaNearTheConsumerIsNamed) {
  const auto id = replicated_topic("orders");
  auto image = core().image();
  metadata::ImageChange change;
  change.brokers = image->brokers();
  change.brokers->back().rack = "b";
  core().membership->view().publish(std::make_shared<metadata::ClusterImage>(
      image->with(std::move(change), image->version() + 1)));
  auto follower = client(1);
  auto consumer = client(2);
  const auto fetch = [&](const std::string& rack, bool of_leader) {
    protocol::FetchRequest ask;
    ask.wait_ms = 100;
    ask.bytes_max = 1 << 20;
    ask.rack = rack;
    ask.entries = {testing::from(id, 0)};
    ask.entries[0].of_leader = of_leader;
    const auto answer = consumer.call(protocol::ApiKey::fetch, protocol::encode(ask));
    return protocol::decode_fetch_response(answer.header_bytes())->results.at(0);
  };
  EXPECT_EQ(fetch("b", false).nearer_replica, -1);  // it has not fetched in this epoch
  subscribe(follower, from(id, 0));
  EXPECT_EQ(fetch("b", false).nearer_replica, kFollower.broker.value());
  EXPECT_EQ(fetch("b", true).nearer_replica, -1);
  EXPECT_EQ(fetch("a", false).nearer_replica, -1);
  EXPECT_EQ(fetch("", false).nearer_replica, -1);
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
      for (base::Bytes rest(news->payload); !rest.empty();) {
        const auto batch = model::RecordBatchView::parse_first(rest);
        EXPECT_EQ(batch->base_offset(), Offset(end));
        end = batch->end_offset().value();
        rest = rest.subspan(batch->batch_bytes());
      }
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

TEST_P(ReplicaFetchTest, WhatLiesOnTheDiskHoldsUpNobody) {
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
    base::Bytes rest(news->payload);
    while (!rest.empty()) {
      const auto batch = model::RecordBatchView::parse(rest.first(*model::peek_batch_bytes(rest)));
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch->base_offset(), Offset(end));
      end = batch->end_offset().value();
      rest = rest.subspan(batch->bytes().size());
    }
    next.positions = {has(cold, end)};
    send(follower, next);
  }
  EXPECT_EQ(end, 300);
  EXPECT_GT(world.counter("fetch_disk_reads_total"), 0);
}

TEST_P(ReplicaFetchTest, AConnectionThatBreaksLeavesNothingBehind) {
  const auto id = replicated_topic("orders");
  auto producer = client(2);
  {
    auto follower = client(1);
    subscribe(follower, from(id, 0));
    send(follower, request());
    follower.close();
  }
  world.run_for(milliseconds(100));
  testing::send_produce(producer, {{id, 0}});
  world.run_for(milliseconds(100));
  auto follower = client(3);
  auto ask = request();
  ask.subscribe = {from(id, 0)};
  send(follower, ask);
  ASSERT_TRUE(receive(follower));
  ask = request();
  ask.positions = {has(id, 1)};
  send(follower, ask);
  EXPECT_TRUE(producer.receive(milliseconds(100)));
}

TEST_P(ReplicaFetchTest, AStopAnswersWhatIsHeld) {
  const auto id = replicated_topic("orders");
  auto follower = client();
  subscribe(follower, from(id, 0));
  send(follower, request());
  send(follower, request());
  world.run_for(milliseconds(100));
  ASSERT_TRUE(world.stop());
  EXPECT_TRUE(receive(follower, seconds(1)));
  EXPECT_TRUE(receive(follower, seconds(1)));
}

INSTANTIATE_TEST_SUITE_P(Workers, ReplicaFetchTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace mq::broker
