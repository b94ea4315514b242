#include <gtest/gtest.h>

#include "replicated_world.h"

namespace mq::testing {
namespace {

using model::LeaderEpoch;
using model::Offset;

/// The leader has trimmed what the follower has not got yet.
void leave_behind(ReplicatedWorld& world, int segments) {
  for (int i = 0; i < 10; ++i) world.append(1, segments > 1 ? 9'000 : 500);
  world.catch_up();
  for (int i = 0; i < 20; ++i) world.append(1, 9'000);
  world.pass(std::chrono::seconds(70));  // those of durability `memory` too
  ASSERT_TRUE(world.settle(0));
  ASSERT_TRUE(world.settle(1));
  ASSERT_TRUE(world.trim(Offset(25), 0));
}

TEST(Restart, LogGoesOnWhereItWasBegunAnew) {
  for (const int segments : {1, 3}) {
    ReplicatedWorld world;
    world.start(2);
    leave_behind(world, segments);
    world.follower().set_high_watermark_hint(Offset(9));
    ASSERT_TRUE(world.restart_at(Offset(25)));
    auto& log = world.follower();
    EXPECT_EQ(log.log_start_offset(), Offset(25));
    EXPECT_EQ(log.log_end_offset(), Offset(25));
    EXPECT_EQ(log.durable_offset(), Offset(25));
    EXPECT_EQ(log.confirmed_end(), Offset(25));
    EXPECT_EQ(log.high_watermark_hint(), Offset(25));
    EXPECT_EQ(log.last_batch_epoch(), LeaderEpoch(-1));
    EXPECT_EQ(log.segments(), 1U);
    EXPECT_EQ(log.bytes_on_disk(), 0U);
    EXPECT_FALSE(*world.files->exists(world.segment(0, 1)));
    EXPECT_EQ(world.read(Offset(9), 1, 1).error(),
              make_error_code(StorageErrc::offset_out_of_range));
    world.catch_up();
    ASSERT_TRUE(world.settle(1));
    EXPECT_EQ(world.read_all(1), world.read_all(0));
    world.crash();
    EXPECT_TRUE(world.start(2).offline.empty());
    EXPECT_EQ(world.follower().log_start_offset(), Offset(25));
    EXPECT_EQ(world.read_all(1), world.read_all(0));
    ASSERT_TRUE(world.stop());
    EXPECT_TRUE(world.start(2).clean);
    EXPECT_EQ(world.follower().log_start_offset(), Offset(25));
    EXPECT_EQ(world.read_all(1), world.read_all(0));
  }
}

TEST(Restart, OfAnEmptyLogAndAgain) {
  ReplicatedWorld world;
  world.start(2);
  ASSERT_TRUE(world.restart_at(Offset(0)));
  ASSERT_TRUE(world.restart_at(Offset(7)));
  ASSERT_TRUE(world.restart_at(Offset(7)));
  ASSERT_TRUE(world.restart_at(Offset(9)));
  world.kill();
  world.start(2);
  EXPECT_EQ(world.follower().log_start_offset(), Offset(9));
  EXPECT_EQ(world.follower().log_end_offset(), Offset(9));
}

TEST(Restart, RefusesToTakeBackOffsets) {
  ReplicatedWorld world;
  world.start(2);
  for (int i = 0; i < 4; ++i) world.append(1);
  world.catch_up();
  EXPECT_EQ(world.restart_at(Offset(3)).error(), make_error_code(StorageErrc::offset_out_of_range));
  auto restarting = world.follower().restart_at(Offset(9), LeaderEpoch(0));
  EXPECT_EQ(run(world.simulator, std::move(restarting)).error(),
            make_error_code(StorageErrc::stale_leader_epoch));
  EXPECT_EQ(world.follower().log_end_offset(), Offset(4));
}

/// The log is as before or begun anew, whatever step the process or the machine dies at; behind a
/// restart that has ended all is kept.
TEST(Restart, SurvivesAnEndAtEveryStep) {
  int anew = 0;
  int as_before = 0;
  for (std::uint64_t step = 1; step <= 60; ++step) {
    ReplicatedWorld world(step);
    world.settings.durability = step % 2 == 0 ? model::Durability::disk : model::Durability::memory;
    world.start(2);
    leave_behind(world, 3);
    world.process->kill_after(step, [] {});
    auto restarting = world.follower().restart_at(Offset(25), world.follower().leader_epoch());
    const auto ignore = [](asio::awaitable<base::Result<void>> task) -> asio::awaitable<void> {
      static_cast<void>(co_await std::move(task));
    };
    world.runtime.spawn("restart", ignore(std::move(restarting)));
    world.simulator.run_until([&] { return world.process->dead(); }, std::chrono::seconds(2));
    if (step % 3 == 0) {
      world.kill();
    } else {
      world.crash();
    }
    const auto summary = world.start(2);
    ASSERT_TRUE(summary.offline.empty()) << "step " << step;
    const auto start = world.follower().log_start_offset();
    const auto end = world.follower().log_end_offset();
    if (start == Offset(0)) {
      ASSERT_EQ(end, Offset(10)) << "step " << step;
      ++as_before;
    } else {
      ASSERT_EQ(start, Offset(25)) << "step " << step;
      ASSERT_EQ(end, Offset(25)) << "step " << step;
      ++anew;
      world.catch_up();
      world.pass(std::chrono::seconds(70));
      world.crash();
      ASSERT_TRUE(world.start(2).offline.empty()) << "step " << step;
      ASSERT_EQ(world.read_all(1), world.read_all(0)) << "step " << step;
    }
  }
  EXPECT_GT(anew, 0);
  EXPECT_GT(as_before, 0);
}

TEST(Restart, AFullDiskLeavesTheLogAsItIs) {
  ReplicatedWorld world;
  world.start(2);
  leave_behind(world, 1);
  world.files->inject({.operation = FileOperation::open,
                       .path_part = "00000025.log",
                       .error = base::make_error_code(base::BaseErrc::no_space)});
  EXPECT_EQ(world.restart_at(Offset(25)).error(), make_error_code(StorageErrc::storage_full));
  EXPECT_EQ(world.follower().log_end_offset(), Offset(10));
  EXPECT_FALSE(world.follower().failure());
}

}  // namespace
}  // namespace mq::testing
