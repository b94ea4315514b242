#include "base/crc32c.h"
#include "base/mutants.h"
#include "storage/registration_mark.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;

/// Batches as they were stamped, one entry each.
std::vector<base::SharedBytes> fill(StorageWorld& world, int batches, int records,
                                    std::size_t value_bytes_max = 500) {
  std::vector<base::SharedBytes> sent;
  for (int i = 0; i < batches; ++i) {
    auto batch =
        make_batch(++world.batches, records, 20 + world.simulator.random().below(value_bytes_max));
    EXPECT_TRUE(world.append_batch(batch));
    sent.push_back(batch);
  }
  return sent;
}

std::vector<std::byte> joined(const std::vector<base::SharedBytes>& batches, std::size_t first,
                              std::size_t count) {
  std::vector<std::byte> all;
  for (std::size_t i = first; i < first + count; ++i)
    all.insert(all.end(), batches[i].bytes.begin(), batches[i].bytes.end());
  return all;
}

TEST(Recovery, CleanStartReadsNoLogData) {
  StorageWorld world;
  world.start();
  const auto sent = fill(world, 300, 2);
  ASSERT_TRUE(world.stop());
  // A flipped bit inside the data goes unnoticed, as nothing of it is read.
  world.files->flip(world.segment(0), 300, std::byte{4});
  const auto summary = world.start();
  EXPECT_TRUE(summary.clean);
  EXPECT_EQ(summary.bytes_scanned, 0u);
  EXPECT_EQ(world.log().log_end_offset(), Offset(600));
  EXPECT_EQ(world.complaints(""), 0);
  EXPECT_EQ(world.append(3).base_offset, Offset(600));
  // LOG-4: but it is not handed out.
  EXPECT_EQ(world.read(Offset(0)).error(), make_error_code(StorageErrc::partition_corrupt));
  EXPECT_EQ(world.complaints("cannot be read"), 1);
}

TEST(Recovery, KilledProcessLosesNothing) {
  for (const auto durability : {model::Durability::disk, model::Durability::memory}) {
    StorageWorld world;
    world.settings.durability = durability;
    world.start();
    std::vector<base::SharedBytes> sent;
    for (int round = 0; round < 10; ++round) {
      for (auto& batch : fill(world, 40, 3)) sent.push_back(batch);
      world.pass(std::chrono::milliseconds(700 * round));
      world.kill();
      const auto summary = world.start();
      EXPECT_FALSE(summary.clean);
      EXPECT_FALSE(summary.lossy_suspect);
      EXPECT_EQ(summary.bytes_cut, 0u);
      ASSERT_EQ(world.read_all(), joined(sent, 0, sent.size()));
      EXPECT_EQ(world.log().durable_offset(), world.log().log_end_offset());
    }
    EXPECT_EQ(world.complaints(""), 0);
  }
}

TEST(Recovery, ScanStartsAtTheRecoveryPoint) {
  StorageWorld world;
  world.start();
  fill(world, 50, 1);
  ASSERT_TRUE(world.settle());
  world.pass(std::chrono::seconds(11));  // a checkpoint
  const auto later = fill(world, 5, 1);
  world.kill();
  const auto summary = world.start();
  EXPECT_EQ(summary.bytes_scanned, joined(later, 0, 5).size());
}

/// Every cut inside the last two batches, as the case of a torn last record wants it.
TEST(Recovery, TornTailIsCutAtLastWholeBatch) {
  StorageWorld world;
  world.settings.segment_bytes = 1u << 20;
  world.start();
  const auto sent = fill(world, 200, 1, 1'900);
  world.kill();  // before any of it was durable: what is lacks nothing
  const auto golden = world.files->clone();
  const std::string file = world.segment(0);
  const std::uint64_t whole = golden->content(file).size();
  const std::uint64_t last_two = joined(sent, 198, 2).size();
  for (std::uint64_t cut = 1; cut <= last_two; cut += cut < 64 ? 1 : 37) {
    world.files = golden->clone();
    world.files->truncate_file(file, whole - cut);
    world.lines.clear();
    auto summary = world.start();
    const std::size_t kept = cut < sent[199].bytes.size() ? 199 : cut < last_two ? 198 : 198;
    const std::size_t expected = cut == sent[199].bytes.size() ? 199 : kept;
    ASSERT_EQ(world.log().log_end_offset(), Offset(static_cast<std::int64_t>(expected))) << cut;
    ASSERT_EQ(world.read_all(), joined(sent, 0, expected));
    const bool torn = cut != sent[199].bytes.size() && cut != last_two;
    ASSERT_EQ(world.complaints("torn tail"), torn ? 1 : 0) << cut;
    ASSERT_EQ(world.complaints(""), torn ? 1 : 0);
    ASSERT_EQ(world.append().base_offset, Offset(static_cast<std::int64_t>(expected)));
    world.kill();
    world.lines.clear();
    summary = world.start();
    ASSERT_EQ(summary.bytes_cut, 0u);
    ASSERT_EQ(world.complaints(""), 0);  // the second start is silent
    world.kill();
  }
}

TEST(Recovery, WarningNamesPartitionEndsAndBytes) {
  StorageWorld world;
  world.start();
  const auto sent = fill(world, 3, 1);
  world.kill();
  const auto whole = world.files->content(world.segment(0)).size();
  world.files->truncate_file(world.segment(0), whole - 10);
  world.start();
  const auto good = joined(sent, 0, 2).size();
  const std::string expected = fmt::format(
      "W partition {} (orders): torn tail cut off (torn): old end at byte {} of "
      "00000000000000000000.log, new end at byte {} of 00000000000000000000.log, offset 2; {} "
      "bytes "
      "dropped",
      world.id().text(), whole - 10, good, whole - 10 - good);
  EXPECT_EQ(world.complaints(expected.substr(2)), 1);
  for (const auto& line : world.lines) SCOPED_TRACE(line);
}

TEST(Recovery, ZerosAtTheEndAreNoData) {
  StorageWorld world;
  world.start();
  const auto sent = fill(world, 10, 1);
  world.kill();
  const auto golden = world.files->clone();
  for (const std::size_t zeros : {1u, 11u, 12u, 36u, 95u, 96u, 4'096u, 70'000u}) {
    world.files = golden->clone();
    auto content = world.files->content(world.segment(0));
    content.resize(content.size() + zeros);
    world.files->set_content(world.segment(0), std::move(content));
    world.start();
    EXPECT_EQ(world.read_all(), joined(sent, 0, 10));
    EXPECT_EQ(world.append().base_offset, Offset(10));
    world.kill();
    world.start();
    EXPECT_EQ(world.log().log_end_offset(), Offset(11));
    world.kill();
  }
}

TEST(Recovery, FlippedBitAboveTheRecoveryPointCutsThere) {
  StorageWorld world;
  world.start();
  const auto sent = fill(world, 20, 1, 100);
  world.kill();
  const auto golden = world.files->clone();
  const auto from = joined(sent, 0, 15).size();
  for (std::size_t at = 0; at < sent[15].bytes.size(); ++at) {
    world.files = golden->clone();
    world.files->flip(world.segment(0), from + at, std::byte{1});
    world.start();
    ASSERT_EQ(world.log().log_end_offset(), Offset(15)) << at;  // LOG-3: each one is noticed
    ASSERT_EQ(world.read_all(), joined(sent, 0, 15));
    world.kill();
  }
}

TEST(Recovery, FinishedSegmentIsNoTornTailFromItsRollOn) {  // REC-1
  for (const auto durability : {model::Durability::disk, model::Durability::memory}) {
    StorageWorld world;
    world.settings.durability = durability;
    world.start();
    world.pass(std::chrono::milliseconds(300));
    while (world.log().segments() < 2) fill(world, 1, 1);
    world.pass(std::chrono::milliseconds(600));  // the sync and the checkpoint, whatever stalls
    world.kill();
    const auto golden = world.files->clone();
    const auto whole = golden->content(world.segment(0)).size();
    const auto end = Offset(static_cast<std::int64_t>(world.batches));

    // Its end is gone: the partition is offline by name, as nothing else explains it.
    world.files->truncate_file(world.segment(0), whole - 10);
    auto summary = world.start();
    EXPECT_EQ(summary.offline, std::vector{world.id()});
    EXPECT_EQ(summary.bytes_cut, 0u);
    EXPECT_EQ(world.log().failure(), make_error_code(StorageErrc::partition_corrupt));
    EXPECT_EQ(world.files->files_below(world.directory()), golden->files_below(world.directory()));
    EXPECT_EQ(world.files->content(world.segment(0)).size(), whole - 10);
    world.kill();

    // A bit in it: nothing of it is read at the start, and a reader of that place is told.
    world.files = golden->clone();
    world.files->flip(world.segment(0), whole - 10, std::byte{1});
    summary = world.start();
    EXPECT_EQ(summary.bytes_cut, 0u);
    EXPECT_EQ(world.log().log_end_offset(), end);
    EXPECT_TRUE(world.read(model::advance(end, -1)));
    const auto damaged = model::advance(world.log().log_end_offset(), -2);
    EXPECT_EQ(world.log().read_damage(), "");
    EXPECT_EQ(world.read(damaged).error(), make_error_code(StorageErrc::partition_corrupt));
    EXPECT_TRUE(world.log().read_damage().starts_with("0000")) << world.log().read_damage();
  }
}

TEST(Recovery, BurstOfRollsSharesCheckpoints) {
  StorageWorld world;
  world.start();
  Fault fault;  // the sixth checkpoint from now would take the disk offline
  fault.operation = FileOperation::rename;
  fault.path_part = "checkpoint";
  fault.skip = 5;
  world.files->inject(fault);
  while (world.log().segments() < 60) fill(world, 10, 1, 10'000);
  world.pass(std::chrono::milliseconds(600));
  EXPECT_FALSE(world.disk->failed());
  EXPECT_EQ(world.files->faults_struck(), 0u);
  world.kill();
  // The newest one names them all.
  world.files->truncate_file(world.segment(0), 1'000);
  EXPECT_EQ(world.start().offline.size(), 1u);
}

TEST(Recovery, DamageBelowTheRecoveryPointIsNeverCut) {  // REC-1
  StorageWorld world;
  world.start();
  fill(world, 300, 1);
  ASSERT_TRUE(world.settle());
  world.pass(std::chrono::seconds(11));
  fill(world, 3, 1);
  world.kill();
  const auto golden = world.files->clone();
  const auto files = golden->files_below(world.directory());
  ASSERT_GE(files.size(), 4u);

  // A sealed segment is shorter than it was.
  world.files = golden->clone();
  world.files->truncate_file(world.segment(0), 1'000);
  auto summary = world.start();
  ASSERT_EQ(summary.offline.size(), 1u);
  EXPECT_EQ(world.log().failure(), make_error_code(StorageErrc::partition_corrupt));
  EXPECT_EQ(world.read(Offset(0)).error(), make_error_code(StorageErrc::partition_corrupt));
  EXPECT_EQ(world.try_append().error(), make_error_code(StorageErrc::partition_corrupt));
  EXPECT_EQ(world.complaints(world.id().text()), 1);
  EXPECT_EQ(world.files->content(world.segment(0)).size(), 1'000u);
  // And it stays so at the next start, clean stop or not.
  ASSERT_TRUE(world.stop());
  summary = world.start();
  EXPECT_EQ(summary.offline.size(), 1u);
  EXPECT_EQ(world.files->content(world.segment(0)).size(), 1'000u);
  world.kill();

  // A sealed segment is missing.
  for (const auto& file : files) {
    if (!file.ends_with(".log")) continue;
    world.files = golden->clone();
    world.files->remove_tree(file);
    summary = world.start();
    EXPECT_EQ(summary.offline.size(), 1u) << file;
    world.kill();
  }

  // The whole directory is missing.
  world.files = golden->clone();
  world.files->remove_tree(world.directory());
  summary = world.start();
  EXPECT_EQ(summary.offline.size(), 1u);
}

TEST(Recovery, ActiveSegmentShorterThanItsRecoveryPointIsCorrupt) {
  StorageWorld world;
  world.start();
  fill(world, 20, 1);
  ASSERT_TRUE(world.stop());
  // The journal still has what lies in the block of the recovery point, not what lies before.
  world.files->truncate_file(world.segment(0), 1'000);
  const auto summary = world.start();
  EXPECT_EQ(summary.offline.size(), 1u);
  EXPECT_EQ(world.files->content(world.segment(0)).size(), 1'000u);
}

TEST(Recovery, IndexesAreCaches) {  // LOG-5
  StorageWorld world;
  world.config.index_stride_bytes = 2'000;
  world.config.tail_cache_bytes = 1;
  world.start();
  const auto sent = fill(world, 300, 2);
  ASSERT_TRUE(world.stop());
  const auto golden = world.files->clone();
  const auto all = joined(sent, 0, sent.size());
  std::vector<std::string> indexes;
  for (const auto& file : golden->files_below(world.directory())) {
    if (file.ends_with(".index")) indexes.push_back(file);
  }
  ASSERT_GT(indexes.size(), 2u);
  for (int damage = 0; damage < 5; ++damage) {
    world.files = golden->clone();
    for (const auto& file : indexes) {
      const auto size = golden->content(file).size();
      if (damage == 0) world.files->remove_tree(file);
      if (damage == 1) world.files->truncate_file(file, size / 2);
      if (damage == 2) world.files->truncate_file(file, 0);
      if (damage == 3) world.files->flip(file, size - 3, std::byte{16});
      if (damage == 4) world.files->set_content(file, golden->content(indexes[0]));  // another's
    }
    world.start();
    EXPECT_EQ(world.read_all(0, 4'000), all) << damage;
    EXPECT_EQ(world.complaints(""), 0);
    world.kill();
  }
}

TEST(Recovery, LostCheckpointReadsEverythingAndCutsOnlyTheLastSegment) {
  StorageWorld world;
  world.start();
  const auto sent = fill(world, 300, 1);
  ASSERT_TRUE(world.stop());
  const auto golden = world.files->clone();
  const std::string checkpoint = std::string(StorageWorld::kPath) + "/checkpoint";
  for (const bool missing : {true, false}) {
    world.files = golden->clone();
    if (missing) {
      world.files->remove_tree(checkpoint);
    } else {
      world.files->flip(checkpoint, 40, std::byte{8});
    }
    auto summary = world.start();
    EXPECT_FALSE(summary.clean);
    EXPECT_TRUE(summary.lossy_suspect);
    EXPECT_EQ(world.read_all(), joined(sent, 0, 300));
    EXPECT_EQ(summary.bytes_scanned, joined(sent, 0, 300).size());
    EXPECT_EQ(world.log().epoch_starts().front().start_offset, Offset(0));
    world.kill();

    world.files = golden->clone();
    world.files->remove_tree(checkpoint);
    world.files->flip(world.segment(0), 500, std::byte{8});
    const auto size = world.files->content(world.segment(0)).size();
    for (int start = 0; start < 3; ++start) {
      summary = world.start();
      EXPECT_EQ(summary.offline.size(), 1u) << start;
      EXPECT_EQ(world.files->content(world.segment(0)).size(), size);
      world.kill();
    }
  }
}

TEST(Recovery, UnsupportedBatchIsKeptAndTakesThePartitionOffline) {  // LOG-9
  StorageWorld world;
  world.start();
  const auto sent = fill(world, 5, 1, 50);
  world.kill();
  auto content = world.files->content(world.segment(0));
  // A batch of version 9 with valid checksums.
  std::vector<std::byte> strange(sent[4].bytes.begin(), sent[4].bytes.end());
  strange[32] = std::byte{9};
  const auto crc = base::crc32c(base::Bytes(strange).subspan(32));
  base::store_le(strange.data() + 24, crc);
  model::stamp(strange, Offset(5), world.epoch ? model::LeaderEpoch(1) : model::LeaderEpoch(0), 1);
  content.insert(content.end(), strange.begin(), strange.end());
  world.files->set_content(world.segment(0), content);
  for (int i = 0; i < 2; ++i) {
    const auto summary = world.start();
    EXPECT_EQ(summary.offline.size(), 1u);
    EXPECT_EQ(world.log().failure(), make_error_code(StorageErrc::unsupported_format));
    EXPECT_EQ(world.files->content(world.segment(0)), content);
    world.kill();
  }
}

TEST(Recovery, EpochStartsAreRebuiltFromTheLog) {
  StorageWorld world;
  world.start();
  fill(world, 3, 1);
  ASSERT_TRUE(world.log().start_epoch(model::LeaderEpoch(7)));
  fill(world, 3, 1);
  ASSERT_TRUE(world.log().start_epoch(model::LeaderEpoch(9)));
  fill(world, 2, 2);
  world.epoch = 10;
  const auto expected = world.log().epoch_starts();
  ASSERT_EQ(expected.size(), 3u);
  world.kill();
  world.start();
  auto found = world.log().epoch_starts();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found.back(), (storage::EpochStart{model::LeaderEpoch(11), Offset(10)}));
  found.pop_back();
  EXPECT_EQ(found, expected);
  ASSERT_TRUE(world.stop());
  world.start();
  found = world.log().epoch_starts();
  found.pop_back();
  EXPECT_EQ(found, expected);
}

TEST(Recovery, NewBootWithoutCleanStopIsSuspect) {
  StorageWorld world;
  EXPECT_FALSE(world.start().lossy_suspect);
  fill(world, 3, 1);
  ASSERT_TRUE(world.stop());
  world.config.boot_id = "boot-2";
  EXPECT_FALSE(world.start().lossy_suspect);  // stopped cleanly
  world.crash();
  EXPECT_TRUE(world.start().lossy_suspect);
}

// The file system was unmounted under a broker that was killed: its page cache may be gone.
TEST(Recovery, AnotherMountWithoutCleanStopIsSuspect) {
  StorageWorld world;
  world.start();
  fill(world, 3, 1);
  world.config.mount_id = "71";
  world.kill();
  EXPECT_FALSE(world.start().lossy_suspect);  // the run before did not know its mount
  world.kill();
  EXPECT_FALSE(world.start().lossy_suspect);
  world.config.mount_id = "72";
  ASSERT_TRUE(world.stop());
  EXPECT_FALSE(world.start().lossy_suspect);  // stopped cleanly
  world.config.mount_id = "73";
  world.kill();
  EXPECT_TRUE(world.start().lossy_suspect);
  world.config.mount_id.clear();
  world.kill();
  EXPECT_FALSE(world.start().lossy_suspect);  // this one does not know
}

/// After a power cut a start is broken off, at every step, and the next one is of the same boot.
/// Returns the first step at which that one takes the disk for whole; 0: it never does.
std::uint64_t forgets_a_suspicion() {
  bool whole = false;
  for (std::uint64_t step = 1; !whole; ++step) {
    StorageWorld world(step);
    world.settings.durability = model::Durability::memory;
    world.start();
    fill(world, 3, 1);
    world.crash();
    world.dies_at_change = step;
    const auto begun = world.try_start();
    whole = begun && !world.process->dead();
    if (world.disk) world.kill();
    world.start();
    if (world.disk->intact_since().memory <= 1) return step;
  }
  return 0;
}

// REC-10
TEST(Recovery, ASuspectStaysOneThroughAStartThatIsBrokenOff) {
  EXPECT_EQ(forgets_a_suspicion(), 0U);
}

TEST(Recovery, ASuspicionThatIsForgottenIsNoticed) {
  const base::EnabledMutant enabled("suspicion_forgotten");
  EXPECT_NE(forgets_a_suspicion(), 0U);
}

// REC-11: the metadata names the process that registered the broker last, with this disk.
TEST(Recovery, ADiskThatDoesNotKnowOfTheLastRegistrationIsAnOlderCopy) {
  const auto incarnation = [](std::uint64_t run) { return base::Uuid::from_random(run, 5); };
  using storage::IntactSince;
  StorageWorld world;
  std::optional<base::Uuid> registered;
  std::uint64_t run = 0;
  const auto note = [&] {
    const auto noted =
        storage::note_registration(*world.files, "data", incarnation(++run), registered);
    EXPECT_TRUE(noted);
    return noted && *noted == storage::CopyAge::older;
  };
  EXPECT_FALSE(world.start().lossy_suspect);
  fill(world, 3, 1);
  ASSERT_TRUE(world.stop());
  EXPECT_FALSE(note());
  registered = incarnation(1);
  EXPECT_FALSE(note());
  EXPECT_FALSE(world.start().lossy_suspect);
  ASSERT_TRUE(world.stop());
  // The process before did not get so far as to register.
  EXPECT_FALSE(note());
  EXPECT_FALSE(world.start().lossy_suspect);
  ASSERT_TRUE(world.stop());
  registered = incarnation(99);
  EXPECT_TRUE(note());
  // The process that found it did not get so far as to recover.
  registered = incarnation(4);
  EXPECT_FALSE(note());
  EXPECT_TRUE(world.start().lossy_suspect) << "although it was stopped cleanly";
  EXPECT_EQ(world.disk->intact_since(), (IntactSince{4, 4}));
  world.kill();
  EXPECT_FALSE(note());
  EXPECT_FALSE(world.start().lossy_suspect);
  EXPECT_EQ(world.disk->intact_since(), (IntactSince{4, 4}));
}

TEST(Recovery, ManyPartitionsWithProgress) {
  StorageWorld world;
  world.start(30);
  for (int i = 0; i < 30; ++i) world.append(i + 1, 50, i);
  world.kill();
  world.start(30);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(world.log(i).log_end_offset(), Offset(i + 1));
}

}  // namespace
}  // namespace mq::testing
