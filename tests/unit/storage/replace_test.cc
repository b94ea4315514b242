#include <gtest/gtest.h>

#include "replicated_world.h"

namespace mq::testing {
namespace {

using model::Offset;

/// A leader and a follower with three segments each.
void fill(ReplicatedWorld& world) { world.fill(20, 9'000); }

std::vector<std::string> segments(ReplicatedWorld& world, int partition) {
  std::vector<std::string> found;
  for (const auto& file : world.files->files_below(world.directory(partition))) {
    if (file.ends_with(".log")) found.push_back(file);
  }
  std::ranges::sort(found);
  return found;
}

Offset base_of(const std::string& segment) {
  return Offset(std::stoll(segment.substr(segment.rfind('/') + 1)));
}

/// A follower whose log is damaged far below what may be cut: its n-th segment is too short, so
/// that its last batch is lost; or the first one, too.
void damage(ReplicatedWorld& world, std::size_t segment = 0, bool first_batch = false) {
  fill(world);
  ASSERT_TRUE(world.stop());
  const auto path = segments(world, 1).at(segment);
  auto bytes = world.files->content(path);
  bytes.resize(bytes.size() - 100);
  if (first_batch) bytes[200] ^= std::byte{0x10};
  world.files->set_content(path, bytes);
}

void flip_a_byte(ReplicatedWorld& world, const std::string& path) {
  auto bytes = world.files->content(path);
  bytes[bytes.size() / 2] ^= std::byte{0x10};
  world.files->set_content(path, bytes);
}

/// The last batch of one that is damaged so, if it ends where the next segment begins.
Offset last_batch(const std::vector<std::string>& files, std::size_t segment,
                  ReplicatedWorld& world) {
  const auto end =
      segment + 1 < files.size() ? base_of(files[segment + 1]) : world.leader().log_end_offset();
  return model::advance(end, -1);
}

base::Result<Offset> replace(ReplicatedWorld& world, Offset start,
                             storage::Keep keep = storage::Keep::sound_segments) {
  auto replacing = world.disk->replace_damaged(world.spec(1), start, keep);
  return run(world.simulator, std::move(replacing));
}

void expect_equal_files(ReplicatedWorld& world) {
  const auto leaders = segments(world, 0);
  const auto followers = segments(world, 1);
  ASSERT_EQ(leaders.size(), followers.size());
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    EXPECT_EQ(base_of(leaders[i]), base_of(followers[i]));
    EXPECT_EQ(world.files->content(leaders[i]), world.files->content(followers[i]));
  }
}

/// Of all segments together.
std::vector<std::byte> content(ReplicatedWorld& world, int partition) {
  std::vector<std::byte> all;
  for (const auto& file : segments(world, partition)) {
    const auto bytes = world.files->content(file);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

/// What the follower lacks it gets from the leader.
void expect_filled_again(ReplicatedWorld& world) {
  world.catch_up();
  ASSERT_TRUE(world.settle(1));
  expect_equal_files(world);
}

std::string unknown(ReplicatedWorld& world) {
  return std::string(StorageWorld::kPath) + "/unknown/" + world.id(1).text();
}

TEST(Replace, ADamagedLogIsKeptAndFilledAnew) {
  ReplicatedWorld world;
  damage(world, 0, true);
  EXPECT_EQ(world.start(2).offline, std::vector{world.id(1)});
  EXPECT_EQ(world.disk->intact_since(world.id(1)), 2);
  ASSERT_TRUE(replace(world, Offset(0)));
  EXPECT_FALSE(world.follower().failure());
  EXPECT_EQ(world.follower().log_end_offset(), Offset(0));
  EXPECT_FALSE(world.files->files_below(unknown(world)).empty());
  world.catch_up();
  ASSERT_TRUE(world.settle(1));
  EXPECT_EQ(world.read_all(1), world.read_all(0));
  world.crash();
  EXPECT_TRUE(world.start(2).offline.empty());
  EXPECT_EQ(world.read_all(1), world.read_all(0));
  // What it held before stays missing.
  EXPECT_EQ(world.disk->intact_since(world.id(1)), 2);
  ASSERT_TRUE(world.stop());
  world.start(2);
  EXPECT_EQ(world.disk->intact_since(world.id(1)), 2);
}

TEST(Replace, WhatIsPutAsideIsCountedUntilItIsRemoved) {
  ReplicatedWorld world;
  damage(world, 1);
  world.start(2);
  world.pass(std::chrono::seconds(2));
  EXPECT_EQ(world.disk->put_aside(), storage::PutAside());
  EXPECT_NE(world.follower().failure_text(), world.follower().failure().message());
  ASSERT_TRUE(replace(world, Offset(0)));
  EXPECT_EQ(world.follower().failure_text(), "");
  world.pass(std::chrono::seconds(2));
  std::uint64_t bytes = 0;
  for (const auto& file : world.files->files_below(unknown(world)))
    bytes += world.files->content(file).size();
  EXPECT_GT(bytes, 0U);
  EXPECT_EQ(world.disk->put_aside(), (storage::PutAside{bytes, 1}));
  for (const auto& file : world.files->files_below(unknown(world)))
    ASSERT_TRUE(world.files->remove_file(file));
  ASSERT_TRUE(world.files->remove_directory(unknown(world)));
  world.pass(std::chrono::seconds(70));
  EXPECT_EQ(world.disk->put_aside(), storage::PutAside());
}

TEST(Replace, BeginsWhereTheLeaderBegins) {
  ReplicatedWorld world;
  damage(world, 0, true);
  world.start(2);
  ASSERT_TRUE(world.trim(Offset(12), 0));
  ASSERT_TRUE(replace(world, Offset(12)));
  EXPECT_EQ(world.follower().log_start_offset(), Offset(12));
  world.catch_up();
  ASSERT_TRUE(world.settle(1));
  world.kill();
  world.start(2);
  EXPECT_EQ(world.follower().log_start_offset(), Offset(12));
  EXPECT_EQ(world.read_all(1), world.read_all(0));
}

TEST(Replace, WhatWasTrimmedAwayMayBeDamagedToo) {
  ReplicatedWorld world;
  fill(world);
  for (const int partition : {0, 1}) ASSERT_TRUE(world.trim(Offset(3), partition));
  ASSERT_TRUE(world.stop());
  const auto files = segments(world, 1);
  ASSERT_EQ(files.size(), 3u);
  world.files->flip(files[0], 4'000, std::byte{4});
  world.files->flip(files[0], 13'000, std::byte{4});
  for (const auto& file : world.files->files_below(world.directory(1)))
    if (file.find("producers") != std::string::npos)
      static_cast<void>(world.files->remove_file(file));
  auto bytes = world.files->content(files[1]);
  bytes.resize(bytes.size() - 100);
  world.files->set_content(files[1], bytes);
  EXPECT_EQ(world.start(2).offline, std::vector{world.id(1)});
  const auto reached = replace(world, Offset(0));
  ASSERT_TRUE(reached);
  EXPECT_EQ(*reached, last_batch(files, 1, world));
  EXPECT_EQ(world.follower().log_start_offset(), Offset(3));
  world.catch_up();
  ASSERT_TRUE(world.settle(1));
  EXPECT_EQ(world.read_all(1), world.read_all(0));
}

TEST(Replace, ALogThatIsServedToo) {
  ReplicatedWorld world;
  fill(world);
  ASSERT_TRUE(replace(world, Offset(0)));
  world.catch_up();
  ASSERT_TRUE(world.settle(1));
  EXPECT_EQ(world.read_all(1), world.read_all(0));
  EXPECT_EQ(world.disk->intact_since(world.id(1)), 1);
}

// REC-10
TEST(Replace, WhatIsSoundBelowTheDamageStays) {
  for (std::size_t damaged = 0; damaged < 3; ++damaged) {
    ReplicatedWorld world;
    damage(world, damaged);
    const auto before = segments(world, 1);
    ASSERT_EQ(before.size(), 3u);
    EXPECT_EQ(world.start(2).offline, std::vector{world.id(1)});
    const auto goes_on = replace(world, Offset(0));
    ASSERT_TRUE(goes_on) << goes_on.error().message();
    EXPECT_EQ(*goes_on, last_batch(before, damaged, world));
    EXPECT_FALSE(world.follower().failure());
    EXPECT_EQ(world.follower().log_start_offset(), Offset(0));
    EXPECT_EQ(world.follower().log_end_offset(), *goes_on);
    EXPECT_EQ(world.follower().last_batch_epoch(), world.leader().last_batch_epoch());
    EXPECT_EQ(world.files->files_below(unknown(world)).size(), before.size() - damaged);
    world.catch_up();
    ASSERT_TRUE(world.settle(1));
    EXPECT_EQ(world.read_all(1), world.read_all(0));
    expect_equal_files(world);
    world.crash();
    EXPECT_TRUE(world.start(2).offline.empty());
    EXPECT_EQ(world.read_all(1), world.read_all(0));
    EXPECT_EQ(world.disk->intact_since(world.id(1)), 2);
    expect_equal_files(world);
  }
}

TEST(Replace, WhatWasConfirmedOfTheRestStaysSo) {
  for (const auto keep : {storage::Keep::sound_segments, storage::Keep::nothing}) {
    ReplicatedWorld world;
    fill(world);
    world.follower().set_high_watermark_hint(world.follower().log_end_offset());
    ASSERT_TRUE(world.stop());
    const auto before = segments(world, 1);
    flip_a_byte(world, before[1]);
    world.start(2);
    const auto goes_on = replace(world, Offset(0), keep);
    ASSERT_TRUE(goes_on);
    EXPECT_EQ(world.follower().high_watermark_hint(), *goes_on);
    world.catch_up();
    EXPECT_EQ(world.follower().high_watermark_hint(), *goes_on) << "nobody has said more";
  }
}

TEST(Replace, ASegmentThatReadersFoundDamaged) {
  ReplicatedWorld world;
  fill(world);
  const auto before = segments(world, 1);
  ASSERT_TRUE(world.stop());
  flip_a_byte(world, before[1]);
  EXPECT_TRUE(world.start(2).offline.empty());
  for (auto at = base_of(before[1]); at < base_of(before[2]); at = model::advance(at, 1)) {
    auto reading = world.follower().read_from_disk(at, world.follower().log_end_offset(), 1);
    if (!run(world.simulator, std::move(reading))) break;
  }
  EXPECT_NE(world.follower().read_damage(), "");
  const auto goes_on = replace(world, Offset(0));
  ASSERT_TRUE(goes_on) << goes_on.error().message();
  EXPECT_GT(*goes_on, base_of(before[1]));
  EXPECT_LT(*goes_on, base_of(before[2]));
  EXPECT_EQ(world.follower().read_damage(), "");
  expect_filled_again(world);
}

// A log that lost its beginning does not begin behind what is missing.
TEST(Replace, GoesOnWhereASegmentIsMissing) {
  for (const std::size_t missing : {2U, 0U}) {
    ReplicatedWorld world;
    fill(world);
    ASSERT_TRUE(world.stop());
    const auto before = segments(world, 1);
    ASSERT_TRUE(world.files->remove_file(before[missing]));
    EXPECT_EQ(world.start(2).offline, std::vector{world.id(1)});
    const auto goes_on = replace(world, Offset(0));
    ASSERT_TRUE(goes_on) << goes_on.error().message();
    EXPECT_EQ(*goes_on, base_of(before[missing]));
    EXPECT_EQ(world.follower().log_start_offset(), Offset(0));
    EXPECT_EQ(world.follower().log_end_offset(), *goes_on);
    expect_filled_again(world);
  }
}

TEST(Replace, NothingStaysOfALogThatIsNotTheLeaders) {
  ReplicatedWorld world;
  fill(world);
  const auto goes_on = replace(world, Offset(5), storage::Keep::nothing);
  ASSERT_TRUE(goes_on);
  EXPECT_EQ(*goes_on, Offset(5));
  EXPECT_EQ(world.follower().log_end_offset(), Offset(5));
}

TEST(Replace, CanBeTriedAgain) {
  ReplicatedWorld world;
  damage(world, 1);
  const auto before = segments(world, 1);
  world.start(2);
  world.files->inject({.operation = FileOperation::make_directory,
                       .path_part = "unknown",
                       .error = make_error_code(base::BaseErrc::no_space)});
  EXPECT_EQ(replace(world, Offset(0)).error(), make_error_code(StorageErrc::storage_full));
  ASSERT_TRUE(replace(world, Offset(0)));
  expect_filled_again(world);
}

TEST(Replace, NothingThere) {
  ReplicatedWorld world;
  world.start(1);
  EXPECT_EQ(replace(world, Offset(0)).error(), make_error_code(StorageErrc::not_found));
}

void die_while_replacing(ReplicatedWorld& world, std::uint64_t step) {
  world.process->kill_after(step, [] {});
  auto replacing =
      world.disk->replace_damaged(world.spec(1), Offset(3), storage::Keep::sound_segments);
  auto ended = std::make_shared<bool>(false);
  const auto watch = [](asio::awaitable<base::Result<Offset>> task,
                        std::shared_ptr<bool> over) -> asio::awaitable<void> {
    static_cast<void>(co_await std::move(task));
    *over = true;
  };
  world.runtime.spawn("replace", watch(std::move(replacing), ended));
  ASSERT_TRUE(world.simulator.run_until([&] { return *ended; }, std::chrono::seconds(10)));
  if (step % 2 == 0) {
    world.kill();
  } else {
    world.crash();
  }
}

/// Whatever step it ends at: the log is damaged still, or made anew and says so.
TEST(Replace, SurvivesAnEndAtEveryStep) {
  int anew = 0;
  int as_before = 0;
  for (std::uint64_t step = 1; step <= 40; ++step) {
    ReplicatedWorld world(step);
    damage(world, 0, true);
    world.start(2);
    die_while_replacing(world, step);
    const auto summary = world.start(2);
    if (!summary.offline.empty()) {
      ++as_before;
      ASSERT_EQ(world.disk->intact_since(world.id(1)), 3);
      ASSERT_TRUE(replace(world, Offset(3)));
    } else {
      ++anew;
      ASSERT_EQ(world.follower().log_end_offset(), Offset(3)) << "step " << step;
      ASSERT_EQ(world.disk->intact_since(world.id(1)), 2);
    }
  }
  EXPECT_GT(anew, 0);
  EXPECT_GT(as_before, 0);
}

TEST(Replace, OfTheEndSurvivesAnEndAtEveryStep) {
  int anew = 0;
  int as_before = 0;
  for (std::uint64_t step = 1; step <= 80; ++step) {
    ReplicatedWorld world(step);
    damage(world, 1);
    const auto base = model::advance(base_of(segments(world, 1)[2]), -1);
    world.start(2);
    die_while_replacing(world, step);
    const auto summary = world.start(2);
    ++(summary.offline.empty() ? anew : as_before);
    ASSERT_GE(world.disk->intact_since(world.id(1)), 2);
    if (!summary.offline.empty()) {
      ASSERT_TRUE(replace(world, Offset(3)));
    }
    ASSERT_EQ(world.follower().log_end_offset(), base) << "step " << step;
    // Where it ended between the cut and its record, the segment that was cut is a whole one.
    world.catch_up();
    ASSERT_TRUE(world.settle(1));
    ASSERT_EQ(content(world, 1), content(world, 0)) << "step " << step;
  }
  EXPECT_GT(anew, 0);
  EXPECT_GT(as_before, 0);
}

// What may be missing in one replica alone.

TEST(IntactSince, FollowsTheDurability) {
  StorageWorld world;
  world.settings_of[1] = world.settings;
  world.settings_of[1].durability = model::Durability::memory;
  world.start(2);
  for (int i = 0; i < 2; ++i) {
    world.append(1, 100, i);
    ASSERT_TRUE(world.settle(0));
    EXPECT_EQ(world.disk->intact_since(world.id(i)), 1);
  }
  world.kill();
  world.start(2);
  EXPECT_EQ(world.disk->intact_since(world.id(0)), 1);
  EXPECT_EQ(world.disk->intact_since(world.id(1)), 1);
  world.crash();  // what the page cache held is gone
  world.start(2);
  EXPECT_EQ(world.disk->intact_since(world.id(0)), 1);
  EXPECT_EQ(world.disk->intact_since(world.id(1)), 3);
  EXPECT_EQ(world.disk->intact_since(world.id(5)), 3);  // which is not here
}

TEST(IntactSince, ADiskThatFailed) {
  StorageWorld world;
  world.start(1);
  world.append(1);
  ASSERT_TRUE(world.settle());
  world.files->inject({.operation = FileOperation::sync, .path_part = ".journal"});
  world.append(1);
  world.pass(std::chrono::seconds(1));
  ASSERT_TRUE(world.disk->failed());
  world.kill();
  EXPECT_TRUE(world.start(1).lossy_suspect);
  EXPECT_EQ(world.disk->intact_since(), (storage::IntactSince{2, 2}));
  world.kill();
  EXPECT_FALSE(world.start(1).lossy_suspect);
  EXPECT_EQ(world.disk->intact_since(world.id()), 2);
}

/// A topic changed to `disk` counts as such once all is durable that was there then.
TEST(IntactSince, ATopicChangedToDisk) {
  for (const bool settled : {true, false}) {
    StorageWorld world;
    world.settings.durability = model::Durability::memory;
    world.start(1);
    world.append(1);
    auto settings = world.settings;
    settings.durability = model::Durability::disk;
    world.log().set_settings(settings);
    world.settings = settings;
    if (settled) {
      ASSERT_TRUE(world.settle());
      world.pass(std::chrono::seconds(1));
    } else {
      // The change alone gets as far as the disk.
      world.files->inject({.operation = FileOperation::sync, .path_part = ".log"});
      world.pass(std::chrono::seconds(1));
    }
    world.crash();
    world.start(1);
    EXPECT_EQ(world.disk->intact_since(world.id(0)), settled ? 1 : 2);
  }
}

TEST(IntactSince, AReplicaWhoseDirectoryIsMissing) {
  for (const auto durability : {model::Durability::disk, model::Durability::memory}) {
    for (const bool synced : {true, false}) {
      StorageWorld world;
      world.settings.durability = durability;
      world.start(2);
      world.append(1, 100, 1);
      ASSERT_TRUE(world.settle(1) || durability == model::Durability::memory);
      if (synced) world.pass(std::chrono::seconds(70));
      world.kill();
      for (const auto& file : world.files->files_below(world.directory(1)))
        ASSERT_TRUE(world.files->remove_file(file));
      ASSERT_TRUE(world.files->remove_directory(world.directory(1)));
      const auto summary = world.start(2);
      EXPECT_EQ(world.disk->intact_since(world.id(0)), 1);
      const bool whole = durability == model::Durability::disk && !synced;
      if (whole) {
        EXPECT_EQ(world.log(1).log_end_offset(), Offset(1));  // all of it was in the journal
        EXPECT_EQ(world.disk->intact_since(world.id(1)), 1);
        continue;
      }
      EXPECT_EQ(world.disk->intact_since(world.id(1)), 2);
      world.kill();
      world.start(2);  // its directory is there again, or still missing
      EXPECT_GE(world.disk->intact_since(world.id(1)), 2);
    }
  }
}

TEST(IntactSince, AReplicaThatNobodyKnew) {
  StorageWorld world;
  world.start(1);
  world.kill();
  world.start(2);
  EXPECT_EQ(world.disk->intact_since(world.id(0)), 1);
  EXPECT_EQ(world.disk->intact_since(world.id(1)), 2);
  world.disk->set_broker_epoch(9);  // registered anew
  auto creating = world.disk->create_log(world.spec(2));
  ASSERT_TRUE(run(world.simulator, std::move(creating)));
  EXPECT_EQ(world.disk->intact_since(world.id(2)), 9);
}

}  // namespace
}  // namespace mq::testing
