#include <gtest/gtest.h>

#include "base/mutants.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::LeaderEpoch;
using model::Offset;
using std::chrono::milliseconds;

base::Result<void> truncate(StorageWorld& world, Offset to, int partition = 0) {
  auto& log = world.log(partition);
  auto cutting = log.truncate(to, log.leader_epoch());
  return run(world.simulator, std::move(cutting));
}

asio::awaitable<void> ignore(asio::awaitable<base::Result<void>> task) {
  static_cast<void>(co_await std::move(task));
}

/// What the log holds from `from` on.
std::vector<std::byte> bytes_from(StorageWorld& world, Offset from) {
  std::vector<std::byte> bytes;
  while (from < world.log().log_end_offset()) {
    const auto read = world.read(from);
    if (!read || read->end_offset <= from) break;
    for (const auto& piece : read->batches)
      bytes.insert(bytes.end(), piece.bytes.begin(), piece.bytes.end());
    from = read->end_offset;
  }
  return bytes;
}

TEST(Truncate, LogGoesOnWhereItWasCut) {
  StorageWorld world;
  world.start(1);
  for (int i = 0; i < 10; ++i) world.append(2);
  ASSERT_TRUE(world.settle());
  ASSERT_TRUE(truncate(world, Offset(6)));
  auto& log = world.log();
  EXPECT_EQ(log.log_end_offset(), Offset(6));
  EXPECT_EQ(log.durable_offset(), Offset(6));
  EXPECT_EQ(log.confirmed_end(), Offset(6));
  EXPECT_EQ(world.append(1).base_offset, Offset(6));
  ASSERT_TRUE(world.settle());
  const auto all = world.read_all();
  ASSERT_TRUE(world.stop());
  EXPECT_TRUE(world.start(1).clean);
  EXPECT_EQ(world.log().log_end_offset(), Offset(7));
  EXPECT_EQ(world.read_all(), all);
}

TEST(Truncate, GoesBackOverSegments) {
  StorageWorld world;
  world.start(1);
  for (int i = 0; i < 40; ++i) world.append(1, 10'000);
  ASSERT_TRUE(world.settle());
  ASSERT_GT(world.log().segments(), 4U);
  const auto kept = world.read(Offset(0))->bytes;
  ASSERT_TRUE(truncate(world, Offset(9)));
  EXPECT_EQ(world.log().segments(), 2U);
  EXPECT_EQ(world.log().bytes_on_disk(), kept / 40 * 9);
  EXPECT_FALSE(*world.files->exists(world.segment(36)));
  for (int i = 0; i < 20; ++i) world.append(1, 9'000);
  ASSERT_TRUE(world.settle());
  EXPECT_FALSE(world.read_all().empty());
  world.crash();
  EXPECT_TRUE(world.start(1).offline.empty());
  EXPECT_EQ(world.log().log_end_offset(), Offset(29));
  EXPECT_FALSE(world.read_all().empty());
}

TEST(Truncate, ToTheBeginningOfASegment) {
  StorageWorld world;
  world.start(1);
  for (int i = 0; i < 20; ++i) world.append(1, 10'000);
  ASSERT_TRUE(world.settle());
  const auto segment = world.files->exists(world.segment(6));
  ASSERT_TRUE(segment && *segment);
  ASSERT_TRUE(truncate(world, Offset(6)));
  EXPECT_EQ(world.append(1).base_offset, Offset(6));
  ASSERT_TRUE(world.settle());
  world.kill();
  world.start(1);
  EXPECT_EQ(world.log().log_end_offset(), Offset(7));
  ASSERT_TRUE(truncate(world, Offset(0)));
  EXPECT_EQ(world.append(1).base_offset, Offset(0));
}

TEST(Truncate, ASnapshotOfProducersThatFoundNoSpaceIsNotMissed) {
  StorageWorld world;
  world.settings.segment_bytes = 16u << 10;
  world.start(1);
  world.files->inject({.operation = FileOperation::write,
                       .path_part = ".producers",
                       .error = base::make_error_code(base::BaseErrc::no_space),
                       .times = -1});
  for (int i = 0; i < 12; ++i) world.append(1, 3'000);
  ASSERT_TRUE(world.settle());
  ASSERT_GT(world.files->faults_struck(), 0u);
  ASSERT_TRUE(truncate(world, Offset(1)));
  EXPECT_FALSE(world.log().failure());
  EXPECT_EQ(world.append(1).base_offset, Offset(1));
}

TEST(Truncate, RefusesWhatIsNoEndOfTheLog) {
  StorageWorld world;
  world.start(1);
  for (int i = 0; i < 4; ++i) world.append(2);
  ASSERT_TRUE(world.settle());
  ASSERT_TRUE(world.trim(Offset(2)));
  const auto outside = make_error_code(StorageErrc::offset_out_of_range);
  EXPECT_EQ(truncate(world, Offset(5)).error(), outside);  // inside a batch
  EXPECT_EQ(truncate(world, Offset(9)).error(), outside);
  EXPECT_EQ(truncate(world, Offset(1)).error(), outside);  // below the log start
  auto cutting = world.log().truncate(Offset(4), LeaderEpoch(0));
  EXPECT_EQ(run(world.simulator, std::move(cutting)).error(),
            make_error_code(StorageErrc::stale_leader_epoch));
  EXPECT_TRUE(truncate(world, Offset(8)));  // there already
  EXPECT_EQ(world.log().log_end_offset(), Offset(8));
}

TEST(Truncate, TimesAndEpochsAreCutToo) {
  StorageWorld world;
  world.start(1);
  for (int i = 0; i < 6; ++i) {
    world.append(1);
    world.pass(std::chrono::seconds(1));
  }
  const auto epoch = world.log().leader_epoch();
  ASSERT_TRUE(world.log().start_epoch(LeaderEpoch(epoch.value() + 1)));
  world.append(1);
  ASSERT_TRUE(world.settle());
  ASSERT_TRUE(truncate(world, Offset(3)));
  ASSERT_EQ(world.log().epoch_starts().size(), 2U);
  EXPECT_EQ(world.log().epoch_starts().back().start_offset, Offset(3));
  const auto none = world.find_time(world.runtime.wall_clock_ms() - 2'000);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->offset, Offset(3));
  EXPECT_EQ(none->append_time_ms, -1);
}

/// LOG-12: a cut, other batches behind it, and a power cut at every stage of what happens to the
/// files.
bool survives_power_cuts() {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    StorageWorld world(seed);
    world.settings.segment_bytes = 16u << 10;
    world.start(1);
    for (int i = 0; i < 12; ++i) world.append(1, 3'000);
    EXPECT_TRUE(world.settle());
    const auto below = bytes_from(world, Offset(0));
    auto cutting = world.log().truncate(Offset(4), world.log().leader_epoch());
    auto done = std::make_shared<bool>(false);
    const auto watch = [](asio::awaitable<base::Result<void>> task,
                          std::shared_ptr<bool> ended) -> asio::awaitable<void> {
      const auto result = co_await std::move(task);
      *ended = result.has_value();
    };
    world.runtime.spawn("cut", watch(std::move(cutting), done));
    world.pass(std::chrono::microseconds(seed * 1'000));
    if (seed % 3 == 0) world.simulator.run_until([&] { return *done; }, std::chrono::minutes(1));
    const bool ended = *done;
    if (ended) {
      for (int i = 0; i < 2; ++i) world.append(1, 2'000);
      EXPECT_TRUE(world.settle());
    }
    const auto before = ended ? bytes_from(world, Offset(4)) : std::vector<std::byte>();
    if (seed % 2 == 0) {
      world.crash();
    } else {
      world.kill();
    }
    const auto summary = world.try_start(1);
    const auto wrong = [&](const char* what) {
      std::cout << "seed " << seed << ": " << what << "\n";
      for (const auto& line : world.lines) std::cout << "  " << line << "\n";
      return false;
    };
    if (!summary || !summary->offline.empty()) return wrong("not served");
    const auto end = world.log().log_end_offset();
    if (ended && (end != Offset(6) || bytes_from(world, Offset(4)) != before))
      return wrong("not what was appended behind the cut");
    if (end < Offset(4) || (!ended && end != Offset(4) && end != Offset(12)))
      return wrong("neither the old end nor the new one");
    const auto all = bytes_from(world, Offset(0));
    if (!ended && !std::equal(all.begin(), all.end(), below.begin())) return wrong("other bytes");
  }
  return true;
}

TEST(Truncate, SurvivesPowerCutsAtEveryStage) { EXPECT_TRUE(survives_power_cuts()); }

/// What is appended behind a cut that a start has finished is not cut off by the next one.
TEST(Truncate, IsDoneWhenTheLogIsServedAgain) {
  int broken_off = 0;
  for (std::uint64_t step = 1; step <= 25; ++step) {
    StorageWorld world(step);
    world.settings.durability = model::Durability::memory;
    world.start(1);
    for (int i = 0; i < 6; ++i) world.append(1);
    world.process->kill_after(step, [] {});
    auto cutting = world.log().truncate(Offset(3), world.log().leader_epoch());
    world.runtime.spawn("cut", ignore(std::move(cutting)));
    world.simulator.run_until([&] { return world.process->dead(); }, std::chrono::seconds(2));
    world.kill();
    world.start(1);
    if (world.log().log_end_offset() != Offset(3)) continue;
    ++broken_off;
    world.append(1);
    world.kill();
    world.start(1);
    EXPECT_EQ(world.log().log_end_offset(), Offset(4)) << "killed at step " << step;
  }
  EXPECT_GT(broken_off, 0);
}

/// The journal is as small as it can be and waits for recovery points, of the log that is cut, too.
TEST(Truncate, EndsWhileTheJournalWaitsForItsRecoveryPoint) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    StorageWorld world(seed);
    world.config.journal_files_max = 2;
    world.config.journal_file_bytes_min = world.config.journal_file_bytes_max = 64u << 10;
    world.config.journal_bypass_bytes = 8u << 10;
    world.start(3);
    for (int i = 0; i < 6; ++i) world.append(1, 1'000, 0);
    EXPECT_TRUE(world.settle());
    EXPECT_TRUE(
        world.trim(Offset(3)));  // the recovery point is above, and need not move for the cut
    for (int i = 0; i < 10; ++i) {
      for (int partition = 0; partition < 3; ++partition) world.append(1, 1'500, partition);
      world.pass(std::chrono::microseconds(seed * 100));
    }
    auto cutting = world.log().truncate(Offset(4), world.log().leader_epoch());
    auto done = std::make_shared<bool>(false);
    const auto watch = [](asio::awaitable<base::Result<void>> task,
                          std::shared_ptr<bool> over) -> asio::awaitable<void> {
      const auto result = co_await std::move(task);
      *over = result.has_value();
    };
    world.runtime.spawn("cut", watch(std::move(cutting), done));
    for (int i = 0; i < 100; ++i) {
      for (int partition = 1; partition < 3; ++partition) world.append(1, 1'500, partition);
      world.pass(std::chrono::microseconds(seed * 50));
    }
    world.pass(std::chrono::minutes(5));
    ASSERT_TRUE(*done) << "seed " << seed;
    ASSERT_EQ(world.log(1).durable_offset(), world.log(1).log_end_offset()) << "seed " << seed;
  }
}

TEST(TruncateMutants, ReplayWithoutCutsIsCaught) {
  const base::EnabledMutant enabled("journal_replay_without_cuts");
  EXPECT_FALSE(survives_power_cuts());
}

TEST(Truncate, FailedDiskEndsIt) {
  for (const char* operation : {".journal", ".log"}) {
    StorageWorld world;
    world.start(1);
    for (int i = 0; i < 4; ++i) world.append(2);
    ASSERT_TRUE(world.settle());
    world.pass(std::chrono::seconds(70));
    world.files->inject({.operation = FileOperation::sync, .path_part = operation});
    EXPECT_FALSE(truncate(world, Offset(2)));
    EXPECT_TRUE(world.disk->failed());
  }
}

}  // namespace
}  // namespace mq::testing
