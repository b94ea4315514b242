#include "storage/space_reserve.h"

#include "storage_world.h"

namespace mq::testing {
namespace {

using std::chrono::seconds;
using storage::kReserveSlices;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(SpaceReserve, IsSixtyFourMiBOrAShareOfASmallDisk) {
  EXPECT_EQ(storage::reserve_slice_bytes(std::uint64_t{8} << 40), 8 * kMiB);
  EXPECT_EQ(storage::reserve_slice_bytes(512 * kMiB), kMiB);
  EXPECT_EQ(storage::reserve_slice_bytes(64 * kMiB), 128u << 10);
  EXPECT_EQ(storage::reserve_slice_bytes(16 * kMiB), 0u);
  EXPECT_EQ(storage::reserve_slice_bytes(0), 0u);
}

TEST(SpaceReserve, IsGivenUpSliceBySliceWithItsInodes) {
  SimFileSystem files;
  ASSERT_TRUE(files.make_directory("data"));
  const auto empty = files.used_bytes();
  for (int n = 0; n < kReserveSlices; ++n)
    EXPECT_TRUE(storage::keep_reserve_slice(files, "data", kMiB));
  EXPECT_FALSE(storage::keep_reserve_slice(files, "data", kMiB));
  EXPECT_EQ(files.used_bytes(), empty + kReserveSlices * kMiB);
  EXPECT_TRUE(storage::give_up_reserve_slice(files, "data"));
  EXPECT_EQ(files.used_bytes(), empty + (kReserveSlices - 1) * kMiB);
  EXPECT_TRUE(storage::keep_reserve_slice(files, "data", kMiB));
  for (int n = 0; n < kReserveSlices; ++n)
    EXPECT_TRUE(storage::give_up_reserve_slice(files, "data"));
  EXPECT_FALSE(storage::give_up_reserve_slice(files, "data"));
  EXPECT_EQ(files.used_bytes(), empty);
}

TEST(SpaceReserve, RoomToWorkTakesNoMoreSlicesThanNeeded) {
  SimFileSystem files;
  ASSERT_TRUE(files.make_directory("data"));
  files.set_capacity(64 * kMiB);
  for (int n = 0; n < kReserveSlices; ++n) storage::keep_reserve_slice(files, "data", kMiB);
  auto ballast = files.open("ballast", base::OpenMode::create);
  ASSERT_TRUE(ballast);
  EXPECT_EQ(storage::make_room_to_work(files, "data"), 0);
  ASSERT_TRUE((*ballast)->allocate(0, 64 * kMiB - files.used_bytes()));
  EXPECT_EQ(*files.free_bytes("data"), 0u);
  EXPECT_EQ(storage::make_room_to_work(files, "data"), 1);
  EXPECT_GE(*files.free_bytes("data"), storage::kRoomToWork);
  // No inode is free.
  files.inject({.operation = FileOperation::open,
                .path_part = "reserve.tmp",
                .error = base::make_error_code(base::BaseErrc::no_space),
                .times = 1});
  EXPECT_EQ(storage::make_room_to_work(files, "data"), 1);
}

/// A disk of 64 MiB.
struct FullDisk : ::testing::Test {
  FullDisk() {
    world.files->set_capacity(64 * kMiB);
    world.settings.segment_bytes = kMiB;
    world.start();
    world.pass(seconds(5));
  }
  /// Somebody else takes all that is free.
  void fill_up() {
    auto ballast = world.files->open("ballast", base::OpenMode::create);
    const auto free = *world.files->free_bytes("data");
    if (free > 0) {
      EXPECT_TRUE((*ballast)->allocate(0, free));
    }
    EXPECT_EQ(*world.files->free_bytes("data"), 0u);
  }
  int slices() {
    const auto entries = world.files->list_directory("data/reserve");
    return entries ? static_cast<int>(entries->size()) : 0;
  }
  StorageWorld world;
};

// REC-6
TEST_F(FullDisk, RefusesBelowTheLowMarkAndGoesOnWithSpaceToSpare) {
  EXPECT_EQ(slices(), kReserveSlices);
  base::Error refused;
  for (int i = 0; i < 2000 && !refused; ++i) {
    const auto done = world.try_append(4, 10'000);
    if (!done) refused = done.error();
    world.pass(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(refused, make_error_code(StorageErrc::storage_full));
  EXPECT_TRUE(world.disk->full());
  EXPECT_GT(world.disk->free_bytes(), 4 * kMiB) << "before the disk is quite full";
  // Just above the mark is not enough.
  const auto mark = world.disk->low_mark_bytes();
  EXPECT_GT(mark, 5 * kMiB);
  ASSERT_TRUE(world.trim(model::Offset(world.log().log_end_offset().value() / 8)));
  world.pass(seconds(10));
  ASSERT_TRUE(world.trim(world.log().log_end_offset()));
  world.pass(seconds(10));
  EXPECT_FALSE(world.disk->full());
  EXPECT_TRUE(world.try_append());
  EXPECT_EQ(world.complaints("is full"), 1);
}

TEST_F(FullDisk, WithoutAFreeByteALogCanBeTrimmed) {
  while (world.log().segments() < 5) world.append(4, 10'000);
  ASSERT_TRUE(world.settle());
  fill_up();
  world.pass(seconds(3));
  EXPECT_TRUE(world.disk->full());
  EXPECT_GE(slices(), kReserveSlices - 2) << "the checkpoint of what had been written took one";
  EXPECT_TRUE(world.trim(world.log().log_end_offset()));
  world.pass(seconds(5));
  EXPECT_EQ(world.log().segments(), 1u);
  EXPECT_GE(*world.files->free_bytes("data"), 3 * kMiB);
}

TEST_F(FullDisk, WithoutAFreeByteItStartsAndNothingIsCut) {
  while (world.log().segments() < 3) world.append(4, 10'000);
  ASSERT_TRUE(world.settle());
  const auto all = world.read_all();
  const auto end = world.log().log_end_offset();
  for (const bool power_cut : {false, true}) {
    if (power_cut) {
      world.crash();
    } else {
      world.kill();
    }
    fill_up();
    world.start();
    EXPECT_FALSE(world.log().failure());
    EXPECT_EQ(world.log().log_end_offset(), end);
    EXPECT_EQ(world.read_all(), all);
    EXPECT_EQ(world.try_append().error(), make_error_code(StorageErrc::storage_full));
  }
  ASSERT_TRUE(world.files->remove_file("ballast"));
  world.pass(seconds(5));
  EXPECT_TRUE(world.try_append());
  world.pass(seconds(5));
  EXPECT_EQ(slices(), kReserveSlices) << "made again";
}

}  // namespace
}  // namespace mq::testing
