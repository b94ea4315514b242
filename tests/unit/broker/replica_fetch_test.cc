// The leader's side of replication: who may follow, what is answered when, and what counts.
#include "base/mutants.h"
#include "protocol/trim_partitions.h"
#include "replica_fetch_fixture.h"

namespace mq::broker {
namespace {

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
