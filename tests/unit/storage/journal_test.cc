#include "storage/journal.h"

#include "base/mutants.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::LeaderEpoch;
using model::Offset;
using std::chrono::seconds;

std::int64_t counted(StorageWorld& world, const char* name) {
  return world.counters.get(name).value();
}

TEST(Journal, OneSyncMakesManyPartitionsDurable) {
  StorageWorld world;
  world.start(40);
  world.pass(seconds(1));
  const auto before = counted(world, "storage_journal_groups_total");
  for (int i = 0; i < 40; ++i) world.append(1, 100, i);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(world.settle(i));
  EXPECT_LE(counted(world, "storage_journal_groups_total") - before, 3);
  EXPECT_EQ(counted(world, "storage_syncs_total"), 0);
  world.crash();
  const auto summary = world.start(40);
  EXPECT_TRUE(summary.offline.empty());
  EXPECT_TRUE(summary.journal_problem.empty()) << summary.journal_problem;
  for (int i = 0; i < 40; ++i) EXPECT_EQ(world.log(i).log_end_offset(), Offset(1));
}

TEST(Journal, WhatOnlyTheJournalHasIsPutBack) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    StorageWorld world(seed);
    world.settings.segment_bytes = 64u << 10;
    world.start(3);
    std::vector<std::vector<std::byte>> sent(3);
    for (int i = 0; i < 60; ++i) {
      auto batch = make_batch(++world.batches, 1, 100 + 97 * static_cast<std::size_t>(i));
      ASSERT_TRUE(world.append_batch(batch, i % 3));
      sent[i % 3].insert(sent[i % 3].end(), batch.bytes.begin(), batch.bytes.end());
      ASSERT_TRUE(world.settle(i % 3));
    }
    world.crash();
    world.start(3);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(world.read_all(i), sent[i]) << seed << " " << i;
  }
}

TEST(Journal, FilesAreUsedAgainAndAgain) {
  StorageWorld world;
  world.config.journal_file_bytes_min = world.config.journal_file_bytes_max = 64u << 10;
  world.config.journal_files_max = 2;
  world.start(3);
  for (int i = 0; i < 1'500; ++i) {
    world.append(1, 1'500, i % 3);
    if (i % 7 == 0) {
      ASSERT_TRUE(world.settle(i % 3));
    }
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.settle(i));
  EXPECT_GT(counted(world, "storage_journal_files_begun_total"), 10);
  EXPECT_EQ(world.files->files_below("data/journal").size(), 2u);
  world.crash();
  const auto summary = world.start(3);
  EXPECT_TRUE(summary.offline.empty());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(world.log(i).log_end_offset(), Offset(500));
}

TEST(Journal, MuchOfOnePartitionGoesToItsSegment) {
  StorageWorld world;
  world.start(2);
  for (int i = 0; i < 20; ++i) world.append(1, 30'000, 0);
  world.append(1, 100, 1);
  ASSERT_TRUE(world.settle(0));
  ASSERT_TRUE(world.settle(1));
  EXPECT_LT(counted(world, "storage_journal_bytes_total"), 300'000);
  EXPECT_GT(counted(world, "storage_syncs_total"), 0);
  world.crash();
  world.start(2);
  EXPECT_EQ(world.log(0).log_end_offset(), Offset(20));
  EXPECT_EQ(world.log(1).log_end_offset(), Offset(1));
}

// Small files are made larger where a partition goes past them only because they are small.
TEST(Journal, FilesGrowWhereABusyPartitionWouldBypassThem) {
  StorageWorld world;
  world.config.journal_file_bytes_min = 64u << 10;
  world.config.journal_file_bytes_max = 64u << 20;
  world.config.journal_bypass_bytes = 1u << 20;
  world.settings.segment_bytes = 64u << 20;
  world.start();
  const auto burst = [&world] {
    const auto syncs = counted(world, "storage_syncs_total");
    for (int i = 0; i < 20; ++i) world.append(1, 30'000);
    EXPECT_TRUE(world.settle());
    return counted(world, "storage_syncs_total") - syncs;
  };
  EXPECT_GT(burst(), 0);
  world.pass(std::chrono::seconds(1));
  EXPECT_EQ(burst(), 0);
  EXPECT_EQ(burst(), 0);
  world.crash();
  world.start();
  EXPECT_EQ(world.log().log_end_offset(), Offset(60));
}

/// How a log comes back whose bypassed and acknowledged bytes were damaged.
base::Error after_damage_in_a_bypass() {
  StorageWorld world;
  world.start();
  for (int i = 0; i < 20; ++i) world.append(1, 30'000);
  EXPECT_TRUE(world.settle());
  world.kill();
  world.files->flip(world.segment(0), 1'000, std::byte{1});
  world.start();
  return world.log().failure();
}

TEST(Journal, BypassedBytesCountAsDurableWithTheirRecordOnly) {
  EXPECT_EQ(after_damage_in_a_bypass(), make_error_code(StorageErrc::partition_corrupt));
}

TEST(JournalMutants, BypassWithoutRecordIsCaught) {
  const base::EnabledMutant enabled("bypass_without_record");
  EXPECT_FALSE(after_damage_in_a_bypass());
}

/// Entries behind a bypass wait with it, outside of the queue.
TEST(Journal, WhoWaitsBehindABypassHearsOfAFailedDisk) {
  for (int stage = 0; stage < 40; ++stage) {
    StorageWorld world;
    world.config.journal_bypass_bytes = 4096;
    world.start();
    world.append(1);
    ASSERT_TRUE(world.settle());
    auto heard = std::make_shared<bool>(false);
    const auto watch = [](asio::awaitable<base::Result<void>> task,
                          std::shared_ptr<bool> ended) -> asio::awaitable<void> {
      static_cast<void>(co_await std::move(task));
      *ended = true;
    };
    auto trimming = world.log().trim(Offset(1));
    world.runtime.spawn("trim", watch(std::move(trimming), heard));
    world.pass(std::chrono::microseconds(500 * stage));
    world.files->inject({.operation = FileOperation::sync, .path_part = ".log"});
    static_cast<void>(world.try_append(1, 30'000));
    world.pass(std::chrono::minutes(2));
    EXPECT_TRUE(*heard) << stage;
  }
}

/// REC-1: what the journal made durable is never cut, wherever it is damaged.
TEST(Journal, DamageBelowTheBoundIsCorruptNotTorn) {
  StorageWorld world;
  world.start();
  for (int i = 0; i < 5; ++i) world.append(1, 2'000);
  ASSERT_TRUE(world.settle());
  world.kill();
  const auto golden = world.files->clone();
  // The journal puts back what is damaged in the segment.
  world.files->flip(world.segment(0), 3'000, std::byte{1});
  world.start();
  EXPECT_FALSE(world.log().failure());
  EXPECT_EQ(world.log().log_end_offset(), Offset(5));
  world.kill();
  // Without the journal's help nothing is left but the recovery point.
  world.files = golden->clone();
  world.files->truncate_file(world.segment(0), 3'000);
  world.files->remove_tree("data/journal");
  const auto summary = world.start();
  EXPECT_TRUE(summary.lossy_suspect);
  EXPECT_FALSE(summary.journal_problem.empty());
  EXPECT_EQ(world.complaints("the journal is lost"), 1);
  EXPECT_LT(world.log().log_end_offset(), Offset(5));
}

TEST(Journal, LostOrForeignJournalIsSaidAndANewOneBegun) {
  for (const int damage : {0, 1, 2}) {
    StorageWorld world;
    world.start();
    world.append(3);
    ASSERT_TRUE(world.settle());
    world.pass(seconds(90));
    world.kill();
    if (damage == 0) world.files->remove_tree("data/journal");
    if (damage == 1) {
      for (const auto& file : world.files->files_below("data/journal"))
        world.files->flip(file, 60, std::byte{1});  // another journal's uuid, and no checksum
    }
    if (damage == 2) {
      for (const auto& file : world.files->files_below("data/journal"))
        world.files->truncate_file(file, 0);
    }
    auto summary = world.start();
    EXPECT_TRUE(summary.lossy_suspect) << damage;
    EXPECT_EQ(world.complaints("the journal is lost"), 1) << damage;
    EXPECT_EQ(world.log().log_end_offset(), Offset(3));
    world.append(2);
    ASSERT_TRUE(world.settle());
    ASSERT_TRUE(world.stop());
    summary = world.start();
    EXPECT_FALSE(summary.lossy_suspect);
    EXPECT_TRUE(summary.journal_problem.empty()) << summary.journal_problem;
    EXPECT_EQ(world.log().log_end_offset(), Offset(5));
  }
}

/// The run in which something went missing is remembered, over starts and files of the journal.
TEST(Journal, RemembersSinceWhenNothingIsMissing) {
  using storage::IntactSince;
  StorageWorld world;
  world.start();
  EXPECT_EQ(world.disk->intact_since(), (IntactSince{1, 1}));  // a new disk
  world.append(3);
  ASSERT_TRUE(world.settle());
  world.kill();
  world.start();
  EXPECT_EQ(world.disk->intact_since(), (IntactSince{1, 1}));
  world.crash();
  world.start();
  EXPECT_EQ(world.disk->intact_since(), (IntactSince{1, 3}));
  ASSERT_TRUE(world.stop());
  world.config.boot_id = "another";
  world.start();
  EXPECT_EQ(world.disk->intact_since(), (IntactSince{1, 3}));
  ASSERT_TRUE(world.stop());
  world.files->remove_tree("data/journal");
  world.start();
  EXPECT_EQ(world.disk->intact_since(), (IntactSince{5, 5}));
  world.append(3);
  ASSERT_TRUE(world.settle());
  world.pass(seconds(70));
  world.kill();
  world.files->remove_tree(world.directory());
  world.start();
  EXPECT_TRUE(world.log().failure());
  world.pass(seconds(1));
  // That replica alone: the others' logs say for themselves whether anything is missing.
  EXPECT_EQ(world.disk->intact_since(), (IntactSince{5, 5}));
  EXPECT_EQ(world.disk->intact_since(world.id()), 6);
}

/// The headers and the last snapshot, whatever the size of the files.
TEST(Journal, CleanStartReadsNoneOfIt) {
  StorageWorld world;
  world.start(3);
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 3; ++i) world.append(1, 3'000, i);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.settle(i));
  }
  const LeaderEpoch epoch(static_cast<int>(++world.epoch));
  ASSERT_TRUE(world.log(1).start_epoch(epoch));
  ASSERT_TRUE(world.stop());
  const auto summary = world.start(3);
  EXPECT_TRUE(summary.clean);
  EXPECT_EQ(summary.bytes_scanned, 0U);
  const auto files = world.files->files_below("data/journal").size();
  EXPECT_EQ(summary.journal_bytes_read, (files + 1) * 4'096);
  EXPECT_EQ(world.found_epochs[1], epoch);
  for (int i = 0; i < 3; ++i) world.append(1, 100, i);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.settle(i));
  world.crash();
  EXPECT_TRUE(world.start(3).journal_problem.empty());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(world.log(i).log_end_offset(), Offset(41));
}

/// The clean marker's word is not enough: the group that it names must be there.
TEST(Journal, CleanStartWithoutTheLastGroupReadsAll) {
  StorageWorld world;
  world.start();
  world.append(5);
  ASSERT_TRUE(world.settle());
  ASSERT_TRUE(world.stop());
  // The newest file by its generation.
  std::string newest;
  std::uint64_t generation = 0;
  for (const auto& file : world.files->files_below("data/journal")) {
    const auto header = storage::decode_journal_header(world.files->content(file));
    if (!header || header->generation < generation) continue;
    generation = header->generation;
    newest = file;
  }
  world.files->flip(newest, 4'096 + 20, std::byte{1});
  const auto summary = world.start();
  EXPECT_GT(summary.journal_bytes_read, 100'000U);
  EXPECT_EQ(world.log().log_end_offset(), Offset(5));
}

TEST(Journal, DamagedMiddleTakesOnlyWhatItHeldOffline) {
  StorageWorld world;
  world.config.boot_id = "one";
  world.start(2);
  world.append(1, 100, 0);
  world.append(1, 100, 1);
  ASSERT_TRUE(world.settle(0));
  ASSERT_TRUE(world.settle(1));
  world.append(1, 100, 0);
  ASSERT_TRUE(world.settle(0));
  const auto journal = world.files->files_below("data/journal");
  // The newest group holds partition 0; flip something in the one before.
  std::string used;
  std::uint64_t last = 0;
  for (const auto& file : journal) {
    const auto content = world.files->content(file);
    for (std::uint64_t at = 4'096; at + 8 < content.size(); at += 4'096) {
      if (base::as_text(base::Bytes(content).subspan(at, 8)) != storage::kJournalGroupMagic)
        continue;
      used = file;
      last = at;
    }
  }
  world.kill();
  world.files->flip(used, last - 4'096 + 60, std::byte{1});
  const auto summary = world.start(2);
  EXPECT_TRUE(summary.lossy_suspect);
  EXPECT_FALSE(summary.journal_problem.empty());
  EXPECT_EQ(world.complaints("the journal is damaged"), 1);
}

TEST(Journal, MayLieElsewhere) {
  StorageWorld world;
  ASSERT_TRUE(world.files->make_directory("fast"));
  world.config.journal_path = "fast";
  world.start();
  world.append(3);
  ASSERT_TRUE(world.settle());
  EXPECT_FALSE(*world.files->exists("data/journal"));
  const std::string own = "fast/" + world.disk->identity().disk.hex();
  EXPECT_EQ(world.files->files_below(own).size(), 2u);
  world.crash();
  EXPECT_TRUE(world.start().journal_problem.empty());
  EXPECT_EQ(world.log().log_end_offset(), Offset(3));
  // A failed journal device takes its disk offline.
  world.files->inject({.operation = FileOperation::write, .path_part = "fast/"});
  world.append(1);
  world.pass(seconds(1));
  EXPECT_TRUE(world.disk->failed());
}

/// PAR-4: an epoch is known after a crash though nothing was appended in it,
/// also when the file that recorded it was used again.
model::LeaderEpoch epoch_after_cycles() {
  StorageWorld world;
  world.config.journal_file_bytes_min = world.config.journal_file_bytes_max = 64u << 10;
  world.config.journal_files_max = 2;
  world.start(2);
  EXPECT_TRUE(world.log(1).start_epoch(model::LeaderEpoch(77)));
  world.epoch = 100;
  for (int i = 0; i < 300; ++i) {
    world.append(1, 1'500, 0);
    EXPECT_TRUE(world.settle(0));
  }
  world.crash();
  world.start(2);
  return world.found_epochs[1];
}

TEST(Journal, EpochsWithoutRecordsSurviveTheirFile) {
  EXPECT_EQ(epoch_after_cycles(), model::LeaderEpoch(77));
}

TEST(JournalMutants, FileWithoutSnapshotIsCaught) {
  const base::EnabledMutant enabled("journal_file_without_snapshot");
  EXPECT_NE(epoch_after_cycles(), model::LeaderEpoch(77));
}

/// A block that is synced in part is written again when the power goes.
bool survives_a_torn_block() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    StorageWorld world(seed);
    world.config.write_behind_bytes = 1'000;
    world.config.journal_file_bytes_min = world.config.journal_file_bytes_max = 64u << 10;
    world.config.journal_files_max = 2;
    world.start(2);
    world.append(1, 1'000);
    EXPECT_TRUE(world.settle());
    // The recovery point covers it, and the journal forgets it.
    world.pass(seconds(70));
    for (int i = 0; i < 100; ++i) {
      world.append(1, 1'500, 1);
      EXPECT_TRUE(world.settle(1));
    }
    for (int i = 0; i < 6; ++i) {
      world.append(1, 700);
      EXPECT_TRUE(world.settle());
      world.pass(std::chrono::milliseconds(50));
    }
    world.crash();
    world.start(2);
    if (world.log().failure() || world.log().log_end_offset() != Offset(7)) return false;
    if (!world.read(Offset(0))) return false;
  }
  return true;
}

TEST(Journal, TornBlockTakesNothing) { EXPECT_TRUE(survives_a_torn_block()); }

TEST(JournalMutants, BlockImageLeftOutIsCaught) {
  const base::EnabledMutant enabled("block_image_left_out");
  EXPECT_FALSE(survives_a_torn_block());
}

TEST(Journal, DirectoryThatTheCrashTookIsMadeAgain) {
  StorageWorld world;
  world.start(1);
  world.append(2);
  ASSERT_TRUE(world.settle());
  world.crash();
  world.files->remove_tree(world.directory());
  world.start(1);
  EXPECT_FALSE(world.log().failure());
  EXPECT_EQ(world.log().log_end_offset(), Offset(2));
}

TEST(Journal, DeletedPartitionDoesNotComeBack) {
  StorageWorld world;
  world.start(2);
  world.append(2, 100, 1);
  ASSERT_TRUE(world.settle(1));
  auto deleting = world.disk->delete_log(world.id(1));
  ASSERT_TRUE(run(world.simulator, std::move(deleting)));
  world.crash();
  world.start(1);
  EXPECT_FALSE(*world.files->exists(world.directory(1)));
}

}  // namespace
}  // namespace mq::testing
