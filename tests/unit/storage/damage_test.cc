#include <gtest/gtest.h>

#include "replicated_world.h"
#include "storage/batch_scanner.h"
#include "storage/disk_files.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

// What is damaged in places: what can be read of it all the same, what is known of it, and what is
// kept of what is given up.
namespace mq::testing {
namespace {

using model::Offset;

constexpr std::uint64_t kInBody = 300;
constexpr std::uint64_t kInStamp = 13;

/// Twenty batches of ten records; one segment, or two.
struct DamagedSegment {
  void fill(bool sealed) {
    world.config.tail_cache_bytes = 0;  // else readers are served from memory
    world.start();
    for (int i = 0; i < 20; ++i) positions.push_back(append());
    if (sealed)
      while (world.log().segments() < 2) append();
    ASSERT_TRUE(world.settle());
    ASSERT_TRUE(world.stop());
    if (!sealed) return;
    for (const auto& file : world.files->files_below(world.directory())) {
      if (!file.ends_with(".index")) continue;
      ASSERT_TRUE(world.files->remove_file(file));
    }
  }
  /// Filled, damaged in its eighth batch while nothing runs, and open again.
  StorageWorld& start_damaged(bool sealed, std::uint64_t byte = kInBody) {
    fill(sealed);
    flip(7, byte);
    world.start();
    return world;
  }
  /// The same, and a reader has come to the damage, which is written down by now.
  StorageWorld& start_and_meet(bool sealed) {
    start_damaged(sealed);
    EXPECT_FALSE(world.read(Offset(75), 1));
    world.pass(std::chrono::milliseconds(100));
    return world;
  }
  /// Where the batch stands in its segment.
  std::uint64_t append() {
    const auto before = world.log().bytes_on_disk();
    const auto segments = world.log().segments();
    world.append(10, 100);
    return world.log().segments() == segments ? before : 0;
  }
  void flip(std::size_t batch, std::uint64_t byte) {
    world.files->flip(world.segment(0), positions[batch] + byte, std::byte{4});
  }
  /// As if the batch had been written for another place: its checksums hold.
  void restamp(std::size_t batch, Offset base) {
    const auto path = world.segment(0);
    auto content = world.files->content(path);
    const auto from = static_cast<std::ptrdiff_t>(positions[batch]);
    const auto to = static_cast<std::ptrdiff_t>(positions[batch + 1]);
    model::stamp(base::MutableBytes(content).subspan(static_cast<std::size_t>(from),
                                                     static_cast<std::size_t>(to - from)),
                 base, model::LeaderEpoch(1), 1);
    world.files->set_content(path, content);
  }
  /// Which of the first twenty batches can be read.
  std::string readable() {
    std::string all;
    for (int batch = 0; batch < 20; ++batch) {
      const auto read = world.read(Offset(batch * 10 + 3), 1);
      all += read && read->end_offset == Offset(batch * 10 + 10) ? '+' : '-';
    }
    return all;
  }

  StorageWorld world;
  std::vector<std::uint64_t> positions;
};

TEST(DamagedSegment, OnlyTheBatchIsLostWhoseRecordsAreDamaged) {
  for (const bool sealed : {false, true}) {
    DamagedSegment segment;
    auto& world = segment.start_damaged(sealed);
    EXPECT_EQ(segment.readable(), "+++++++-++++++++++++") << sealed;
    const auto places = world.log().damaged_places();
    ASSERT_EQ(places.size(), 1u);
    EXPECT_EQ(places.front(),
              (model::DamagedPlace{Offset(0), segment.positions[7], Offset(70), Offset(80)}));
    EXPECT_NE(world.log().read_damage().find("offsets 70 to 79"), std::string::npos);
    ASSERT_TRUE(world.stop());
  }
}

/// The batch behind it says where reading goes on, as long as it can be believed.
TEST(DamagedSegment, ItsEndIsNotTakenFromABatchOfAnotherPlace) {
  for (const std::int64_t base : {0, 69, 70, 81, 5'000, 1'000'000'000}) {
    DamagedSegment segment;
    segment.fill(true);
    segment.flip(7, kInBody);
    segment.restamp(8, Offset(base));
    auto& world = segment.world;
    world.start();
    for (const std::int64_t at : {75, 85, 95}) {
      EXPECT_FALSE(world.read(Offset(at), 1)) << base;
      ASSERT_EQ(world.log().damaged_places().size(), 1u);
      EXPECT_EQ(world.log().damaged_places().front().end, Offset()) << base << " " << at;
    }
    ASSERT_TRUE(world.stop());
  }
}

TEST(DamagedSegment, AScrubBelievesNoBatchOfAnotherPlaceEither) {
  for (const std::int64_t base : {0, 70, 80, 1'000'000'000}) {
    DamagedSegment segment;
    segment.fill(true);
    segment.flip(7, kInBody);
    segment.restamp(8, Offset(base));
    const auto path = segment.world.segment(0);
    const auto file = segment.world.files->open(path, base::OpenMode::read);
    ASSERT_TRUE(file);
    storage::BatchScanner scanner(**file, {.position = 0, .expected = Offset(0)},
                                  segment.world.files->content(path).size(),
                                  storage::BatchScanner::Depth::whole);
    do {
      ASSERT_TRUE(scanner.next());
    } while (scanner.is_good());
    EXPECT_EQ(*scanner.step_over_below(Offset(0)), base == 80 ? Offset(80) : Offset()) << base;
    EXPECT_EQ(scanner.state(), storage::BatchState::bad_body_crc);
  }
}

TEST(DamagedSegment, ItsEndIsKnownWhenTheNextIsDamagedTooOrItsOwnCount) {
  constexpr std::uint64_t kInVersion = 32;
  constexpr std::uint64_t kInLastOffsetDelta = 44;
  for (const bool own : {false, true}) {
    DamagedSegment segment;
    segment.fill(true);
    segment.flip(7, own ? kInLastOffsetDelta : kInBody);
    if (!own) segment.flip(8, kInVersion);
    auto& world = segment.world;
    world.start();
    EXPECT_FALSE(world.read(Offset(75), 1));
    EXPECT_EQ(world.log().damaged_places().front(),
              (model::DamagedPlace{Offset(0), segment.positions[7], Offset(70), Offset(80)}))
        << own;
    ASSERT_TRUE(world.stop());
  }
}

// LOG-5
TEST(DamagedSegment, WhatLiesBeforeADamagedHeaderIsReadWithoutAnIndex) {
  DamagedSegment segment;
  auto& world = segment.start_damaged(true, kInStamp);
  EXPECT_EQ(segment.readable().substr(0, 8), "+++++++-");
  EXPECT_EQ(world.log().damaged_places().front().offset, Offset(70));
}

TEST(DamagedSegment, ANewRunKnowsWhatTheLastOneFound) {
  for (const bool killed : {true, false}) {
    DamagedSegment segment;
    auto& world = segment.start_and_meet(true);
    const auto known = world.log().damaged_places();
    ASSERT_EQ(known.size(), 1u);
    if (killed)
      world.kill();
    else
      ASSERT_TRUE(world.stop());
    world.start();
    EXPECT_EQ(world.log().damaged_places(), known) << killed;
    // Mended by somebody, or trimmed away.
    if (killed) {
      world.kill();
      segment.flip(7, kInBody);
      world.start();
    } else {
      ASSERT_TRUE(world.trim(Offset(80)));
    }
    EXPECT_TRUE(world.log().damaged_places().empty());
    EXPECT_TRUE(world.read(Offset(85), 1));
    ASSERT_TRUE(world.stop());
    world.start();
    EXPECT_TRUE(world.log().damaged_places().empty());
    ASSERT_TRUE(world.stop());
  }
}

TEST(DamagedSegment, ANewRunKnowsWhatWasFoundDuringTheStop) {
  DamagedSegment segment;
  auto& world = segment.start_damaged(true);
  auto& log = world.log();
  world.executor->stall(std::chrono::milliseconds(100));
  auto reading = log.read_from_disk(Offset(75), log.log_end_offset(), 1);
  const auto read = start_for_outcome(world.simulator.executor(), std::move(reading), [] {});
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(read->value && !*read->value);
  world.start();
  ASSERT_EQ(world.log().damaged_places().size(), 1u);
  EXPECT_EQ(world.log().damaged_places().front().offset, Offset(70));
}

// Readers near the new start come by it, as the index leads them to a place before.
TEST(DamagedSegment, WhatWasTrimmedAwayIsNotMetAgain) {
  for (const bool sealed : {false, true}) {
    DamagedSegment segment;
    auto& world = segment.start_and_meet(sealed);
    ASSERT_TRUE(world.trim(Offset(80)));
    for (const int run : {1, 2}) {
      EXPECT_EQ(segment.readable(), "--------++++++++++++") << sealed << run;
      EXPECT_TRUE(world.log().damaged_places().empty()) << sealed << run;
      EXPECT_EQ(world.complaints("cannot be read at byte"), 1) << sealed << run;
      ASSERT_TRUE(world.stop());
      world.start();
    }
    ASSERT_TRUE(world.stop());
  }
}

TEST(DamagedSegment, WhatANewRunKnowsAsWellIsNotWrittenDownAnew) {
  const std::string notes = std::string(StorageWorld::kPath) + "/damaged";
  DamagedSegment segment;
  auto& world = segment.start_and_meet(true);
  ASSERT_TRUE(world.stop());
  Fault unwritten;
  unwritten.operation = FileOperation::write;
  unwritten.path_part = notes;
  unwritten.times = -1;
  world.files->inject(unwritten);
  world.start();
  world.pass(std::chrono::seconds(1));
  EXPECT_EQ(world.log().damaged_places().size(), 1u);
  ASSERT_TRUE(world.stop());
  EXPECT_FALSE(world.files->content(notes).empty());
}

TEST(DamagedSegment, WhatNobodyKnowsAnyMoreIsNotWrittenDownStill) {
  const std::string notes = std::string(StorageWorld::kPath) + "/damaged";
  const auto none = storage::seal(storage::kDamagedMagic, storage::encode_damage({}));
  for (const bool readable : {true, false}) {
    DamagedSegment segment;
    auto& world = segment.start_and_meet(true);
    ASSERT_TRUE(world.stop());
    EXPECT_NE(world.files->content(notes), none);
    segment.flip(7, kInBody);  // mended by somebody
    if (!readable) world.files->flip(notes, 30, std::byte{4});
    world.start();
    world.pass(std::chrono::seconds(1));
    EXPECT_EQ(world.files->content(notes), none) << readable;
    ASSERT_TRUE(world.stop());
  }
}

TEST(DamagedSegment, OneOfWhichAPartWasTrimmedAwayIsMetStill) {
  DamagedSegment segment;
  auto& world = segment.start_damaged(true);
  ASSERT_TRUE(world.trim(Offset(75)));
  EXPECT_EQ(segment.readable(), "--------++++++++++++");
  EXPECT_EQ(world.log().damaged_places().size(), 1u);
}

TEST(DamageNotes, GoldenFile) {
  storage::DamageList damage;
  damage[{*base::Uuid::from_hex("3031323334354637b8393a3b3c3d3e3f"), 3}] = {
      {Offset(0), 400, Offset(7), Offset(10)}};
  const auto file = storage::seal(storage::kDamagedMagic, storage::encode_damage(damage));
  std::string hex;
  for (const auto b : file) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  EXPECT_EQ(hex,
            "4d5144414d41470a01000000380000004852d7a2010000003031323334354637b8393a3b3c3d3e3f"
            "030000000000000000000000900100000000000007000000000000000a00000000000000");
  const auto body = storage::unseal(storage::kDamagedMagic, file);
  ASSERT_TRUE(body);
  EXPECT_EQ(*storage::decode_damage(*body), damage);
  for (std::size_t bytes = 0; bytes < body->size(); ++bytes)
    EXPECT_FALSE(storage::decode_damage(body->first(bytes)));
}

// REP-6
TEST(KeepAside, WhatIsCutLaterIsKeptInFilesOfItsOwn) {
  ReplicatedWorld world;
  world.fill(20, 9'000);
  std::map<std::string, std::vector<std::byte>> before;
  for (const auto& file : world.files->files_below(world.directory(1)))
    if (file.ends_with(".log"))
      before[file.substr(file.rfind('/') + 1)] = world.files->content(file);
  ASSERT_EQ(before.size(), 3u);
  const auto all = world.follower().log_end_offset();
  auto keeping = world.follower().keep_aside(model::advance(all, -2));
  ASSERT_TRUE(run(world.simulator, std::move(keeping)));
  auto cutting = world.follower().truncate(model::advance(all, -2), model::LeaderEpoch(9));
  ASSERT_TRUE(run(world.simulator, std::move(cutting)));
  world.crash();
  const auto unknown = std::string(StorageWorld::kPath) + "/unknown/" + world.id(1).text();
  std::map<std::string, std::vector<std::byte>> kept;
  for (const auto& file : world.files->files_below(unknown))
    kept[file.substr(file.rfind('/') + 1)] = world.files->content(file);
  ASSERT_EQ(kept.size(), 1u) << "the last segment";
  EXPECT_EQ(kept.begin()->second, before.at(kept.begin()->first));
}

TEST(KeepAside, IsDoneOncePerCutHoweverOftenThatIsTried) {
  ReplicatedWorld world;
  world.fill(20, 9'000);
  const auto unknown = std::string(StorageWorld::kPath) + "/unknown";
  const auto keep = [&](model::Offset from) {
    auto keeping = world.follower().keep_aside(from);
    return run(world.simulator, std::move(keeping));
  };
  const auto all = world.follower().log_end_offset();
  ASSERT_TRUE(keep(model::advance(all, -2)));
  const auto once = world.files->files_below(unknown);
  ASSERT_TRUE(keep(model::advance(all, -2)));
  ASSERT_TRUE(keep(model::advance(all, -1)));
  EXPECT_EQ(world.files->files_below(unknown), once);
  // Another cut: more of it, or of another end.
  ASSERT_TRUE(keep(Offset(0)));
  const auto twice = world.files->files_below(unknown);
  EXPECT_EQ(twice.size(), once.size() + 3);
  auto cutting = world.follower().truncate(model::advance(all, -2), model::LeaderEpoch(9));
  ASSERT_TRUE(run(world.simulator, std::move(cutting)));
  ASSERT_TRUE(keep(model::advance(all, -4)));
  EXPECT_GT(world.files->files_below(unknown).size(), twice.size());
}

TEST(KeepAside, NothingHalfIsLeftOnAFullDisk) {
  ReplicatedWorld world;
  world.fill(20, 9'000);
  const auto unknown = std::string(StorageWorld::kPath) + "/unknown";
  Fault full;
  full.operation = FileOperation::write;
  full.path_part = unknown;
  full.short_write = 10;
  world.files->inject(full);
  auto keeping = world.follower().keep_aside(Offset(0));
  EXPECT_EQ(run(world.simulator, std::move(keeping)).error(),
            make_error_code(StorageErrc::storage_full));
  EXPECT_TRUE(world.files->files_below(unknown).empty());
}

}  // namespace
}  // namespace mq::testing
