#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "data_client.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"

namespace mq::broker {
namespace {

using model::Offset;
using model::PartitionId;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::BrokerWorld;
using testing::from;
using ::testing::HasSubstr;
using testing::make_batch;
using testing::produce;

testing::RawClient greeted(BrokerWorld& world, std::uint64_t instance = 1) {
  auto client = world.connect();
  client.hello(instance);
  return client;
}

// PAR-4, CTL-5
TEST(BrokerStart, ARestartKeepsRecordsAndRaisesTheLeaderEpoch) {
  BrokerWorld world(1, 2);
  ASSERT_TRUE(world.start());
  const PartitionId id{world.create_topic("orders", 1, "disk"), 0};
  std::string batch = make_batch(3);
  model::LeaderEpoch before;
  {
    auto producer = greeted(world);
    const auto results = produce(producer, {{id, 0, batch}});
    before = results[0].leader_epoch;
  }
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());
  EXPECT_TRUE(world.broker->recovery().clean);
  auto client = greeted(world);
  const auto fetched = testing::fetch(client, {{from(id, 0)}});
  EXPECT_EQ(std::string(base::as_text(fetched.payload)).substr(32), batch.substr(32));
  EXPECT_GT(fetched.results[0].leader_epoch, before);
  EXPECT_EQ(produce(client, {{id, 0}})[0].base_offset, Offset(3));
}

// REC-7
TEST(BrokerStart, ADirectoryOfAnotherBrokerIsRefused) {
  BrokerWorld world;
  ASSERT_TRUE(world.start());
  ASSERT_TRUE(world.stop());
  world.config.id = model::BrokerId(2);
  EXPECT_FALSE(world.start());
  EXPECT_EQ(world.broker->refusal().error(), WireError::wrong_directory);
  EXPECT_THAT(world.broker->refusal().text, HasSubstr("/data"));
  ASSERT_TRUE(world.stop());
  world.config.id = model::BrokerId(1);
  EXPECT_TRUE(world.start());
}

TEST(BrokerStart, ADirectoryOfAnotherClusterIsRefused) {
  BrokerWorld world;
  ASSERT_TRUE(world.start());
  ASSERT_TRUE(world.stop());
  const auto own = std::exchange(world.metadata, std::make_shared<metadata::MemoryStoreState>());
  EXPECT_FALSE(world.start());
  EXPECT_THAT(world.broker->refusal().text, HasSubstr("does not name its cluster"));
  ASSERT_TRUE(world.stop());
  world.metadata = own;
  EXPECT_TRUE(world.start());
}

TEST(BrokerStart, ALockedDirectoryIsRefusedWithItsHolder) {
  BrokerWorld world;
  ASSERT_TRUE(world.start());
  BrokerWorld* const first = &world;
  base::Counters counters;
  auto second_network = first->network.join("second", first->client_runtime);
  BrokerParts parts;
  parts.config = world.config;
  parts.workers = {&world.client_runtime};
  parts.network = second_network.get();
  parts.files = &world.disk;
  parts.disk_executor = world.executor.get();
  parts.counters = &counters;
  Broker second(std::move(parts));
  EXPECT_FALSE(testing::run(world.simulator, second.start()));
  EXPECT_EQ(second.refusal().error(), WireError::directory_locked);
  EXPECT_TRUE(testing::run(world.simulator, second.stop()));
  auto client = greeted(world);  // the first is not disturbed
}

TEST(BrokerStart, APortInUseIsRefusedBeforeAnythingIsWritten) {
  BrokerWorld world;
  auto other = world.network.join("broker", *world.runtimes.front());
  const auto taken = other->listen({"127.0.0.1", 9500});
  ASSERT_TRUE(taken);
  world.executor = std::make_unique<testing::SimDiskExecutor>(world.simulator, world.disk_times);
  BrokerParts parts;
  parts.config = world.config;
  parts.workers = {world.runtimes.front().get()};
  parts.network = other.get();
  parts.files = &world.disk;
  parts.disk_executor = world.executor.get();
  parts.counters = &world.counters;
  Broker broker(std::move(parts));
  EXPECT_FALSE(testing::run(world.simulator, broker.start()));
  EXPECT_EQ(broker.refusal().error(), WireError::port_in_use);
  EXPECT_EQ(broker.refusal().text,
            "cannot listen on 127.0.0.1:9500: another process listens there");
  EXPECT_TRUE(testing::run(world.simulator, broker.stop()));
}

// Whoever held it was killed, and is not quite gone.
TEST(BrokerStart, APortThatIsGivenUpSoonIsWaitedFor) {
  BrokerWorld world;
  auto other = world.network.join("broker", *world.runtimes.front());
  auto taken = other->listen({"127.0.0.1", 9500});
  ASSERT_TRUE(taken);
  world.runtimes.front()->start_timer(world.runtimes.front()->now() + milliseconds(500),
                                      [&] { taken->reset(); });
  EXPECT_TRUE(world.start()) << world.broker->refusal().text;
  EXPECT_TRUE(world.stop());
}

TEST(BrokerStop, LetsAcknowledgementsThroughAndEndsLongPolls) {
  BrokerWorld world(1, 2);
  world.disk_times.work_min = world.disk_times.work_max = milliseconds(200);
  world.disk_times.stall_chance = 0;
  ASSERT_TRUE(world.start());
  const PartitionId id{world.create_topic("orders", 1, "disk"), 0};
  auto producer = greeted(world, 1);
  auto consumer = greeted(world, 2);
  testing::send_fetch(consumer, {{from(id, 5)}, 60'000});
  testing::send_fetch(consumer, {{from(id, 0)}, 60'000});
  world.run_for(milliseconds(50));
  testing::send_produce(producer, {{id, 0}});
  world.run_for(milliseconds(50));
  const auto began = world.simulator.now();
  ASSERT_TRUE(world.stop());
  EXPECT_LT(world.simulator.now() - began, seconds(5));
  const auto answer = producer.receive();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(testing::results_of(*answer)[0].status.ok());
  EXPECT_TRUE(testing::receive_fetch(consumer));
  ASSERT_TRUE(world.start());
  EXPECT_TRUE(world.broker->recovery().clean);
}

TEST(BrokerStop, EndsThoughTheDiskFailsEveryCall) {
  BrokerWorld world;
  ASSERT_TRUE(world.start());
  const PartitionId id{world.create_topic("orders", 1, "disk"), 0};
  auto producer = greeted(world);
  testing::Fault fault;
  fault.times = -1;
  for (const auto operation :
       {testing::FileOperation::sync, testing::FileOperation::write, testing::FileOperation::rename,
        testing::FileOperation::sync_directory}) {
    fault.operation = operation;
    world.disk.inject(fault);
  }
  testing::send_produce(producer, {{id, 0}});
  world.run_for(milliseconds(100));
  const auto began = world.simulator.now();
  EXPECT_TRUE(world.stop());
  EXPECT_LT(world.simulator.now() - began, seconds(20));
}

TEST(BrokerStop, DoesNotWaitForTheRestOfALargeTopic) {
  BrokerWorld world;
  world.disk_times.work_min = world.disk_times.work_max = milliseconds(100);
  world.disk_times.stall_chance = 0;
  ASSERT_TRUE(world.start());
  auto admin = greeted(world);
  protocol::NewTopic topic;
  topic.name = "big";
  topic.partitions = 10'000;
  protocol::CreateTopicsRequest request;
  request.topics.push_back(std::move(topic));
  admin.send(protocol::ApiKey::create_topics, protocol::encode(request));
  world.run_for(milliseconds(300));
  const auto began = world.simulator.now();
  EXPECT_TRUE(world.stop());
  EXPECT_LT(world.simulator.now() - began, seconds(10));
  EXPECT_TRUE(world.start());
}

TEST(BrokerStop, ProcessDeathLosesNothingAcknowledged) {
  BrokerWorld world;
  ASSERT_TRUE(world.start());
  const PartitionId id{world.create_topic("orders", 1, "memory"), 0};
  {
    auto producer = greeted(world);
    for (std::uint64_t i = 0; i < 10; ++i) produce(producer, {{id, i}});
  }
  world.disk.kill();
  EXPECT_TRUE(world.stop());
  ASSERT_TRUE(world.start());
  EXPECT_FALSE(world.broker->recovery().clean);
  auto client = greeted(world);
  EXPECT_EQ(testing::fetch(client, {{from(id, 0)}}).results[0].high_watermark, Offset(10));
}

/// Broker 2 has been there, and the topic has a copy on it.
void give_it_a_copy_elsewhere(BrokerWorld& world) {
  metadata::BrokerEpochValue other;
  other.incarnation = base::Uuid::from_random(8, 9);
  other.advertised = {"broker-2", 9500};
  world.metadata->nodes[metadata::layout::broker_epoch(model::BrokerId(2))].value =
      metadata::encode(other);
}

TEST(BrokerStop, EndsInBoundedTimeWhileTheMetadataStoreHangsAndNamesWhatItStillLeads) {
  BrokerWorld world;
  std::vector<std::string> lines;
  base::set_log_sink(
      [&](base::LogLevel, std::string_view, std::string_view text) { lines.emplace_back(text); });
  ASSERT_TRUE(world.start());
  give_it_a_copy_elsewhere(world);
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());
  auto client = greeted(world);
  protocol::CreateTopicsRequest request;
  request.topics.emplace_back().name = "orders";
  request.topics.back().partitions = 1;
  request.topics.back().replicas = 2;
  ASSERT_TRUE(
      client.call(protocol::ApiKey::create_topics, protocol::encode(request)).status().ok());
  world.run_for(seconds(2));

  // The controller reads the brokers anew, as it does every minute, and the hand-over waits behind.
  world.metadata->slower_by = std::chrono::hours(2);
  world.run_for(seconds(70));
  const auto began = world.simulator.now();
  const auto stopped = run(world.simulator, world.broker->stop());
  EXPECT_LT(world.simulator.now() - began,
            world.limits.hand_over_timeout + 2 * world.limits.drain_timeout + seconds(1));
  const auto named = std::ranges::find_if(lines, [](const auto& line) {
    return line.find("was not handed over within 5 s") != std::string::npos;
  });
  EXPECT_THAT(named == lines.end() ? std::string("nothing") : *named, HasSubstr("orders-0"));
  EXPECT_FALSE(stopped);
  EXPECT_THAT(lines.back(), HasSubstr("did not end within 10 s"));
  base::set_log_sink({});

  // A process ends here; this one lets everything come to its end.
  world.metadata->slower_by = {};
  world.run_for(std::chrono::hours(3));
  EXPECT_TRUE(world.stop());
}

}  // namespace
}  // namespace mq::broker
