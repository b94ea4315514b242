#include <gtest/gtest.h>

#include "producer_world.h"
#include "replicated_world.h"

namespace mq::testing {
namespace {

using model::LeaderEpoch;
using model::Offset;
using storage::EpochStart;

TEST(Replicated, LogIsTheSameByteByByte) {
  for (const auto durability : {model::Durability::disk, model::Durability::memory}) {
    ReplicatedWorld world;
    world.settings.durability = durability;
    world.start(2);
    for (int i = 0; i < 30; ++i) {
      world.append(1 + i % 3, 5'000);
      if (i % 10 == 9) world.next_epoch();
      if (i % 4 == 0) world.catch_up();
      world.pass(std::chrono::milliseconds(30));
    }
    world.catch_up();
    EXPECT_EQ(world.follower().epoch_starts(),
              std::vector(world.leader().epoch_starts().begin(),
                          world.leader().epoch_starts().end() - 1));
    EXPECT_GT(world.follower().segments(), 3U);
    world.pass(std::chrono::seconds(1));
    EXPECT_EQ(world.follower().confirmed_end(), world.leader().log_end_offset());
    const auto all = world.read_all(0);
    EXPECT_EQ(world.read_all(1), all);
    const auto starts = world.follower().epoch_starts();
    const auto last = world.follower().last_batch_epoch();
    world.kill();
    EXPECT_TRUE(world.start(2).offline.empty());
    EXPECT_EQ(world.read_all(1), all);
    EXPECT_EQ(world.follower().epoch_starts(), starts);
    EXPECT_EQ(world.follower().last_batch_epoch(), last);
    EXPECT_EQ(world.follower().leader_epoch(), last);
    world.append(2);
    world.catch_up();
    EXPECT_EQ(world.read_all(1), world.read_all(0));
  }
}

// The file of its next segment is made by a thread all the same.
TEST(Replicated, ASegmentThatIsOldByTheLeadersClockAloneTakesOneMoreBatch) {
  ReplicatedWorld world;
  world.config.retention_interval = world.config.memory_sync_interval = std::chrono::hours(1);
  world.settings.durability = model::Durability::memory;
  world.settings.segment_age = std::chrono::minutes(5);
  world.start(2);
  world.append();
  world.catch_up();
  const std::int64_t ahead_ms = 6 * 60'000;
  world.runtime.jump_wall_clock(ahead_ms);
  world.append();
  world.append();
  ASSERT_EQ(world.leader().segments(), 2u);
  const auto second = world.batch_at(Offset(1));
  world.runtime.jump_wall_clock(-ahead_ms);
  ASSERT_TRUE(world.follower().appends_inline());
  ASSERT_TRUE(world.follower().append_replicated(second.owner, second.bytes));
  EXPECT_EQ(world.follower().segments(), 1u);
  EXPECT_FALSE(world.follower().appends_inline());
  world.catch_up();
  EXPECT_EQ(world.follower().segments(), 2u);
  EXPECT_TRUE(world.follower().appends_inline());
  EXPECT_EQ(world.read_all(1), world.read_all(0));
}

TEST(Replicated, DurableAfterAPowerCut) {
  ReplicatedWorld world;
  world.fill(12, 7'000);
  world.crash();
  world.start(2);
  EXPECT_EQ(world.follower().log_end_offset(), Offset(12));
  EXPECT_EQ(world.read_all(1), world.read_all(0));
}

TEST(Replicated, RefusesWhatDoesNotFollow) {
  ReplicatedWorld world;
  world.start(2);
  for (int i = 0; i < 3; ++i) world.append(2);
  const auto first = world.batch_at(Offset(0));
  const auto second = world.batch_at(Offset(2));
  ASSERT_TRUE(world.settle(0));
  EXPECT_EQ(world.replicate(second).error(), make_error_code(StorageErrc::offset_out_of_range));
  ASSERT_TRUE(world.replicate(first));
  EXPECT_EQ(world.replicate(first).error(), make_error_code(StorageErrc::offset_out_of_range));
  // LOG-4: whatever byte is wrong.
  for (std::size_t at = 0; at < second.bytes.size(); ++at) {
    std::vector<std::byte> damaged(second.bytes.begin(), second.bytes.end());
    damaged[at] ^= std::byte{1};
    const auto appended = world.follower().append_replicated({}, damaged);
    ASSERT_FALSE(appended) << "byte " << at;
  }
  const auto unstamped = make_batch(1, 1, 10);
  EXPECT_EQ(world.follower().append_replicated({}, unstamped.bytes).error(),
            make_error_code(StorageErrc::corrupt_batch));
  EXPECT_EQ(world.follower().append_replicated({}, second.bytes.first(100)).error(),
            make_error_code(StorageErrc::corrupt_batch));
  EXPECT_EQ(world.follower().log_end_offset(), Offset(2));
  world.catch_up();
  EXPECT_EQ(world.read_all(1), world.read_all(0));
}

TEST(Replicated, EpochsDoNotFall) {
  ReplicatedWorld world;
  world.start(2);
  world.append(1);
  const auto older = world.batch_at(Offset(0));
  world.catch_up();
  world.next_epoch();
  world.append(1);
  world.catch_up();
  // The first batch again, where the next one belongs.
  std::vector<std::byte> bytes(older.bytes.begin(), older.bytes.end());
  const auto epoch = model::RecordBatchView::parse(bytes)->leader_epoch();
  model::stamp(bytes, Offset(2), epoch, world.runtime.wall_clock_ms());
  EXPECT_EQ(world.follower().append_replicated({}, bytes).error(),
            make_error_code(StorageErrc::stale_leader_epoch));
  // Nobody else appends in an epoch that was begun here.
  const LeaderEpoch own(world.follower().leader_epoch().value() + 1);
  ASSERT_TRUE(world.follower().start_epoch(own));
  model::stamp(bytes, Offset(2), own, world.runtime.wall_clock_ms());
  EXPECT_EQ(world.follower().append_replicated({}, bytes).error(),
            make_error_code(StorageErrc::stale_leader_epoch));
}

/// Batches of an older epoch that a later leader had come where an epoch was begun in vain.
TEST(Replicated, AnEpochInWhichNothingWasAppendedGivesWay) {
  for (const bool cleanly : {true, false}) {
    ReplicatedWorld world;
    world.start(2);
    for (int i = 0; i < 4; ++i) world.append(1);
    const auto epoch = world.leader().last_batch_epoch();
    ASSERT_TRUE(world.replicate(world.batch_at(Offset(0))));
    const LeaderEpoch vain(epoch.value() + 5);
    ASSERT_TRUE(world.follower().start_epoch(vain));
    ASSERT_EQ(world.follower().epoch_starts().back(), (EpochStart{vain, Offset(1)}));
    ASSERT_TRUE(world.settle(1));
    ASSERT_TRUE(world.replicate(world.batch_at(Offset(1))));
    EXPECT_EQ(world.follower().epoch_starts(), (std::vector<EpochStart>{{epoch, Offset(0)}}));
    EXPECT_EQ(world.follower().leader_epoch(), vain);
    EXPECT_EQ(world.follower().last_batch_epoch(), epoch);
    ASSERT_TRUE(world.settle(1));
    if (cleanly) {
      ASSERT_TRUE(world.stop());
    } else {
      world.crash();
    }
    world.start(2);
    // PAR-4: it was seen; but what lies below the log end is of the older one.
    EXPECT_EQ(world.follower().leader_epoch(), vain);
    EXPECT_EQ(world.follower().epoch_starts(),
              (std::vector<EpochStart>{{epoch, Offset(0)}, {vain, Offset(2)}}));
    EXPECT_EQ(world.follower().last_batch_epoch(), epoch);
    ASSERT_TRUE(world.replicate(world.batch_at(Offset(2))));
    EXPECT_EQ(world.follower().epoch_starts(), (std::vector<EpochStart>{{epoch, Offset(0)}}));
  }
}

TEST(Replicated, OtherBatchesOfAHigherEpochFollowACut) {
  ReplicatedWorld world;
  world.start(2);
  for (int i = 0; i < 12; ++i) world.append(1, 9'000);
  world.catch_up();
  ASSERT_TRUE(world.settle(1));
  // The leader loses its end and goes on in another epoch.
  ASSERT_TRUE(world.settle(0));
  auto cutting = world.leader().truncate(Offset(5), world.leader().leader_epoch());
  ASSERT_TRUE(run(world.simulator, std::move(cutting)));
  world.next_epoch();
  for (int i = 0; i < 9; ++i) world.append(1, 8'000);
  ASSERT_TRUE(world.truncate(Offset(5), world.leader().leader_epoch()));
  world.catch_up();
  ASSERT_TRUE(world.settle(1));
  const auto all = world.read_all(0);
  EXPECT_EQ(world.read_all(1), all);
  world.crash();
  EXPECT_TRUE(world.start(2).offline.empty());
  EXPECT_EQ(world.read_all(1), all);
  EXPECT_EQ(world.follower().last_batch_epoch(), LeaderEpoch(2));
}

TEST(Replicated, ProducersFollow) {
  ReplicatedWorld world;
  world.start(2);
  for (int i = 0; i < 9; ++i) {
    auto batch = named_batch(7 + i % 2, 0, i / 2 * 3, 3);
    ASSERT_TRUE(world.append_batch(batch, 0));
  }
  world.catch_up();
  for (const std::int64_t id : {7, 8}) {
    const auto known = remembered(world.follower().find_producer(id));
    ASSERT_TRUE(known);
    EXPECT_EQ(known, remembered(world.leader().find_producer(id)));
  }
  ASSERT_TRUE(world.settle(1));
  world.kill();
  world.start(2);
  EXPECT_EQ(remembered(world.follower().find_producer(7)),
            remembered(world.leader().find_producer(7)));
}

TEST(Replicated, AFullDiskRefusesAndGoesOn) {
  ReplicatedWorld world;
  world.start(2);
  world.append(1, 1'000);
  const auto batch = world.batch_at(Offset(0));
  ASSERT_TRUE(world.settle(0));
  world.files->inject({.operation = FileOperation::write,
                       .path_part = ".log",
                       .error = base::make_error_code(base::BaseErrc::no_space)});
  EXPECT_EQ(world.replicate(batch).error(), make_error_code(StorageErrc::storage_full));
  EXPECT_EQ(world.follower().log_end_offset(), Offset(0));
  EXPECT_TRUE(world.follower().epoch_starts().empty());
  EXPECT_EQ(world.follower().leader_epoch(), LeaderEpoch(-1));
  world.pass(std::chrono::seconds(5));
  world.catch_up();
  EXPECT_EQ(world.read_all(1), world.read_all(0));
}

TEST(HighWatermark, HintIsKept) {
  ReplicatedWorld world;
  world.start(2);
  for (int i = 0; i < 6; ++i) world.append(1);
  world.catch_up();
  EXPECT_EQ(world.follower().high_watermark_hint(), Offset(0));
  world.follower().set_high_watermark_hint(Offset(4));
  EXPECT_EQ(world.follower().high_watermark_hint(), Offset(4));
  ASSERT_TRUE(world.settle(1));
  world.pass(std::chrono::seconds(6));
  world.follower().set_high_watermark_hint(Offset(5));
  world.crash();
  world.start(2);
  EXPECT_EQ(world.follower().high_watermark_hint(), Offset(4));
  world.follower().set_high_watermark_hint(Offset(5));
  ASSERT_TRUE(world.stop());
  world.start(2);
  EXPECT_EQ(world.follower().high_watermark_hint(), Offset(5));
  EXPECT_EQ(world.leader().high_watermark_hint(), Offset(0));
  // Never outside of the log.
  ASSERT_TRUE(world.truncate(Offset(3), world.follower().leader_epoch()));
  EXPECT_EQ(world.follower().high_watermark_hint(), Offset(3));
  ASSERT_TRUE(world.trim(Offset(6), 0));
  EXPECT_EQ(world.leader().high_watermark_hint(), Offset(6));
}

TEST(HighWatermark, ADamagedFileCostsNothing) {
  ReplicatedWorld world;
  world.start(2);
  world.append(1);
  world.catch_up();
  world.follower().set_high_watermark_hint(Offset(1));
  ASSERT_TRUE(world.settle(1));
  ASSERT_TRUE(world.stop());
  const std::string path = std::string(StorageWorld::kPath) + "/watermarks";
  auto bytes = world.files->content(path);
  ASSERT_FALSE(bytes.empty());
  bytes.back() ^= std::byte{1};
  world.files->set_content(path, bytes);
  EXPECT_TRUE(world.start(2).offline.empty());
  EXPECT_EQ(world.follower().high_watermark_hint(), Offset(0));
}

}  // namespace
}  // namespace mq::testing
