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

/// Threads that take as long for a piece of work as the test says just then.
class TunableThreads final : public base::DiskExecutor {
 public:
  explicit TunableThreads(testing::Simulator& simulator) : simulator_(simulator) {}
  void submit(std::function<void()> work) override {
    free_at_ = std::max(free_at_, simulator_.now()) + takes;
    simulator_.start_timer(free_at_, std::move(work));
  }
  base::Duration takes = std::chrono::microseconds(50);

 private:
  testing::Simulator& simulator_;
  base::TimePoint free_at_{};  // of the one thread
};

/// Two disks: /fast, and /slow, whose own threads take what the test says.
struct SlowDiskTest : ::testing::Test {
  BrokerWorld world;
  TunableThreads slow_work{world.simulator};
  TunableThreads slow_appends{world.simulator};
  base::Uuid topic;
  std::vector<PartitionId> fast;
  std::vector<PartitionId> slow;

  void start() {
    world.config.disks = {"/fast", "/slow"};
    world.disk_times.work_max = std::chrono::microseconds(50);
    world.disk_times.stall_chance = 0;
    world.adjust = [this](BrokerParts& parts) {
      auto& executor = *parts.disk_executor;
      parts.disk_threads.emplace_back(executor);
      parts.disk_threads.emplace_back(slow_work, executor, slow_appends, slow_work);
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
  testing::RawClient client(std::uint64_t instance) { return world.client(instance); }
};

TEST_F(SlowDiskTest, SleepingAppendsGoToAThreadAndTheOtherDiskDoesNotNotice) {
  start();
  slow_appends.takes = milliseconds(30);
  auto slow_client = client(1);
  auto fast_client = client(2);
  // The first one sleeps where it is.
  world.disk.on_write([this] { world.simulator.pass(milliseconds(30)); });
  send_produce(slow_client, {{slow[0], 0}});
  ASSERT_TRUE(slow_client.receive());
  world.disk.on_write({});
  for (std::uint64_t i = 1; i <= 10; ++i) send_produce(slow_client, {{slow[0], i}});
  const auto began = world.simulator.now();
  for (std::uint64_t i = 0; i < 5; ++i)
    EXPECT_TRUE(produce(fast_client, {{fast[0], i}})[0].status.ok());
  EXPECT_LT(world.simulator.now() - began, milliseconds(150));
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
TEST_F(SlowDiskTest, AppendsThatWaitTooLongAreRefusedByName) {
  world.config.dirty_bytes_max = 1 << 20;
  start();
  slow_work.takes = std::chrono::seconds(20);  // it writes back, but hardly
  auto producer = client(1);
  std::uint64_t sequence = 0;
  while (world.counter("produce_delayed_total") == 0 && sequence < 100) {
    send_produce(producer, {{slow[0], sequence++, make_batch(1, 100'000)}});
    world.run_for(milliseconds(200));
  }
  ASSERT_LT(sequence, 100u);
  for (std::uint64_t i = 0; i + 1 < sequence; ++i) ASSERT_TRUE(producer.receive());
  send_produce(producer, {{slow[0], sequence}});
  // Another disk's producers go on meanwhile.
  auto other = client(2);
  EXPECT_TRUE(produce(other, {{fast[0], 0}})[0].status.ok());
  for (const bool first_in_line : {true, false}) {
    const auto late = producer.receive();
    ASSERT_TRUE(late);
    const auto result = results_of(*late)[0];
    EXPECT_EQ(result.status.error(), WireError::timed_out);
    EXPECT_THAT(result.status.text, HasSubstr("the disk is behind with writing"));
    EXPECT_EQ(result.status.advice.maybe_applied, first_in_line);
    EXPECT_EQ(result.base_offset, Offset());
  }
  // It recovers by itself: the first in line was appended after all, the other one was not.
  slow_work.takes = milliseconds(1);
  world.run_for(std::chrono::minutes(5));
  const auto again = produce(producer, {{slow[0], sequence}});
  EXPECT_TRUE(again[0].status.ok()) << again[0].status.text;
  EXPECT_EQ(again[0].base_offset, Offset(static_cast<std::int64_t>(sequence)));
}

}  // namespace
}  // namespace mq::broker
