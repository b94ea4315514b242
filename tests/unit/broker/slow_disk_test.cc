#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_client.h"

namespace mq::broker {
namespace {

using model::Offset;
using model::PartitionId;
using protocol::Acks;
using protocol::WireError;
using std::chrono::milliseconds;
using testing::BrokerWorld;
using ::testing::HasSubstr;
using testing::make_batch;
using testing::produce;
using testing::results_of;
using testing::send_produce;
using testing::SimDiskExecutor;
using testing::SimDiskTimes;

SimDiskTimes always(base::Duration span) {
  SimDiskTimes times;
  times.threads = 1;
  times.work_min = times.work_max = span;
  times.stall_chance = 0;
  return times;
}

/// Two disks: /fast, and /slow, whose own threads take what the test says.
struct SlowDiskTest : ::testing::Test {
  BrokerWorld world;
  std::unique_ptr<SimDiskExecutor> slow_work;
  std::unique_ptr<SimDiskExecutor> slow_appends;
  base::Uuid topic;
  std::vector<PartitionId> fast;
  std::vector<PartitionId> slow;

  void start(base::Duration work, base::Duration append) {
    slow_work = std::make_unique<SimDiskExecutor>(world.simulator, always(work));
    slow_appends = std::make_unique<SimDiskExecutor>(world.simulator, always(append));
    world.config.disks = {"/fast", "/slow"};
    world.disk_times = always(std::chrono::microseconds(50));
    world.adjust = [this](BrokerParts& parts) {
      auto& executor = *parts.disk_executor;
      parts.disk_threads.emplace_back(executor);
      parts.disk_threads.emplace_back(*slow_work, executor, *slow_appends);
    };
    ASSERT_TRUE(world.start()) << world.broker->refusal().text;
    topic = world.create_topic("orders", 8);
    for (int i = 0; i < 8; ++i) {
      const PartitionId id{topic, i};
      const auto on_fast = world.disk.exists("/fast/" + id.text());
      ASSERT_TRUE(on_fast);
      (*on_fast ? fast : slow).push_back(id);
    }
    ASSERT_FALSE(fast.empty());
    ASSERT_FALSE(slow.empty());
  }
  void TearDown() override { EXPECT_TRUE(world.stop()); }
  testing::RawClient client(std::uint64_t instance) {
    auto made = world.connect();
    made.hello(instance);
    return made;
  }
};

TEST_F(SlowDiskTest, SleepingAppendsGoToAThreadAndTheOtherDiskDoesNotNotice) {
  start(std::chrono::microseconds(50), milliseconds(30));
  auto slow_client = client(1);
  auto fast_client = client(2);
  // The first one sleeps where it is.
  world.disk.on_write([this] { world.simulator.pass(milliseconds(30)); });
  send_produce(slow_client, {{slow[0], 0}});
  ASSERT_TRUE(slow_client.receive());
  world.disk.on_write({});
  for (std::uint64_t i = 1; i <= 10; ++i) send_produce(slow_client, {{slow[0], i}});
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto began = world.simulator.now();
    const auto results = produce(fast_client, {{fast[0], i}});
    EXPECT_TRUE(results[0].status.ok());
    EXPECT_LT(world.simulator.now() - began, milliseconds(10));
  }
  for (int i = 1; i <= 10; ++i) {
    const auto answer = slow_client.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(results_of(*answer)[0].base_offset, Offset(i));
  }
  EXPECT_EQ(world.counter("storage_appends_on_thread_total"), 10);
  world.run_for(std::chrono::seconds(2));
  EXPECT_TRUE(produce(slow_client, {{slow[0], 11}})[0].status.ok());
  EXPECT_EQ(world.counter("storage_appends_on_thread_total"), 10);
}

// PAR-7
TEST_F(SlowDiskTest, AppendsThatWaitTooLongAreRefusedByNameAndNotApplied) {
  world.config.dirty_bytes_max = 1 << 20;
  start(std::chrono::seconds(20), milliseconds(1));  // it writes back, but hardly
  auto producer = client(1);
  std::uint64_t sequence = 0;
  while (world.counter("produce_delayed_total") == 0 && sequence < 100)
    send_produce(producer, {{slow[0], sequence++, make_batch(1, 100'000)}}),
        world.run_for(milliseconds(1));
  ASSERT_LT(sequence, 100u);
  for (std::uint64_t i = 0; i + 1 < sequence; ++i) ASSERT_TRUE(producer.receive());
  // Another disk's producers go on meanwhile.
  auto other = client(2);
  EXPECT_TRUE(produce(other, {{fast[0], 0}})[0].status.ok());
  const auto late = producer.receive();
  ASSERT_TRUE(late);
  const auto result = results_of(*late)[0];
  EXPECT_EQ(result.status.error(), WireError::timed_out);
  EXPECT_THAT(result.status.text, HasSubstr("the disk is behind with writing"));
  EXPECT_FALSE(result.status.advice.maybe_applied);
  EXPECT_EQ(result.base_offset, Offset());
  // It recovers by itself, and nothing of that batch is there.
  world.run_for(std::chrono::minutes(5));
  const auto again = produce(producer, {{slow[0], sequence - 1}});
  EXPECT_TRUE(again[0].status.ok()) << again[0].status.text;
  EXPECT_EQ(again[0].base_offset, Offset(static_cast<std::int64_t>(sequence) - 1));
}

}  // namespace
}  // namespace mq::broker
