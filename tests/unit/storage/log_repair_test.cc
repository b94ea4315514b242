#include "storage/log_repair.h"

#include "storage/journal_offline.h"
#include "storage/offset_index.h"
#include "storage/time_index.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;

/// Five segments of batches of two records; cleanly stopped.
struct Repaired : ::testing::Test {
  Repaired() {
    world.start();
    for (int i = 0; i < 100; ++i) world.append(2, 1'500);
    EXPECT_TRUE(world.stop());
  }
  /// As mqctl does: into the journal that the directory holds.
  base::Result<void> record(base::FileSystem& files, const storage::TruncatePlan& plan) {
    MQ_TRY(const auto identity, storage::read_identity(files, "data"));
    const storage::JournalOwner owner{identity->cluster, identity->broker, identity->disk,
                                      identity->journal};
    MQ_TRY(const auto replay, storage::replay_journal(files, "data/journal", owner));
    EXPECT_FALSE(replay.lost || replay.damaged) << replay.problem;
    return storage::record_cut(files, "data/journal", owner, replay, world.id(),
                               {plan.point, plan.point.leader_epoch}, 4'711);
  }
  storage::PartitionDirectory partition() {
    return *storage::list_partition_directory(*world.files, world.directory());
  }
  storage::TruncatePlan plan(std::int64_t after) {
    auto made = storage::plan_truncate(*world.files, partition(), Offset(after));
    EXPECT_TRUE(made);
    return *std::move(made);
  }
  base::Result<void> truncate(std::int64_t after) {
    EXPECT_TRUE(world.files->make_directory("data/unknown"));
    const auto made = plan(after);
    return storage::truncate_partition(*world.files, "data", partition(), made,
                                       "data/unknown/aside",
                                       [&] { return record(*world.files, made); });
  }
  int count(const std::string& suffix) const {
    int n = 0;
    for (const auto& file : world.files->files_below(world.directory()))
      n += file.ends_with(suffix);
    return n;
  }
  StorageWorld world;
};

TEST_F(Repaired, IndexesAreMadeForEverySegment) {
  for (const auto& file : world.files->files_below(world.directory()))
    if (file.ends_with(".index")) world.files->flip(file, 30, std::byte{1});
  const auto rebuilt = storage::rebuild_indexes(*world.files, partition());
  ASSERT_TRUE(rebuilt);
  EXPECT_FALSE(rebuilt->damage);
  const auto segments = partition().segments.size();
  ASSERT_GT(segments, 3u);
  EXPECT_EQ(rebuilt->segments, segments);
  EXPECT_EQ(count(".index"), static_cast<int>(segments));
  EXPECT_EQ(count(".time"), static_cast<int>(segments));
  for (const auto& segment : partition().segments) {
    const auto stem = segment.path.substr(0, segment.path.size() - 4);
    EXPECT_TRUE(storage::load_segment_index(*world.files, stem + ".index", segment.base_offset,
                                            segment.bytes));
    EXPECT_TRUE(
        storage::load_time_index(*world.files, stem + ".time", segment.base_offset, segment.bytes));
  }
  EXPECT_TRUE(world.start().clean);
  world.read_all();
}

TEST_F(Repaired, NoIndexIsMadeForASegmentThatDoesNotHold) {
  world.files->flip(world.segment(0), 20, std::byte{1});
  const auto rebuilt = storage::rebuild_indexes(*world.files, partition());
  ASSERT_TRUE(rebuilt);
  ASSERT_TRUE(rebuilt->damage);
  EXPECT_EQ(rebuilt->damage->position, 0u);
  EXPECT_EQ(count(".index"), 0);
}

TEST_F(Repaired, PlanNamesTheNearestBatchEndBelow) {
  EXPECT_EQ(plan(101).nearest, std::nullopt);
  EXPECT_EQ(plan(101).end, Offset(102));
  EXPECT_EQ(plan(101).records, 98u);
  EXPECT_EQ(plan(100).nearest, Offset(99));
  EXPECT_EQ(plan(-1).end, Offset(0));
  EXPECT_EQ(plan(-1).nearest, std::nullopt);
  EXPECT_EQ(plan(199).bytes, 0u);
  EXPECT_EQ(plan(500).nearest, Offset(199));
}

TEST_F(Repaired, CutLogStartsAtItsNewEndAndTheTailIsKept) {
  ASSERT_TRUE(truncate(101));
  const auto kept = storage::list_partition_directory(*world.files, "data/unknown/aside");
  ASSERT_TRUE(kept);
  const auto tail = storage::verify_partition(*world.files, *kept);
  ASSERT_TRUE(tail);
  EXPECT_TRUE(tail->good);
  EXPECT_EQ(tail->log_start_offset, Offset(102));
  EXPECT_EQ(tail->end_offset, Offset(200));
  EXPECT_EQ(tail->records, 98u);
  const auto summary = world.start();
  EXPECT_TRUE(summary.offline.empty());
  EXPECT_EQ(world.log().log_end_offset(), Offset(102));
  world.read_all();
  EXPECT_EQ(world.append().base_offset, Offset(102));
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start().offline.empty());
  EXPECT_EQ(world.log().log_end_offset(), Offset(103));
}

TEST_F(Repaired, CorruptLogServesAgainUpToItsLastGoodBatch) {
  const auto third = partition().segments.at(2);
  const auto content = world.files->content(third.path);
  const auto first = model::RecordBatchView::parse_first(content);
  world.files->flip(third.path, first->batch_bytes() + 500, std::byte{4});
  const auto report = storage::verify_partition(*world.files, partition());
  ASSERT_TRUE(report && report->damage);
  const auto last_good = report->damage->last_good_offset;
  EXPECT_EQ(last_good, model::advance(third.base_offset, 1));
  ASSERT_TRUE(truncate(last_good.value()));
  ASSERT_TRUE(world.start().offline.empty());
  EXPECT_EQ(world.log().log_end_offset(), model::advance(last_good, 1));
  world.read_all();
}

/// What the journal holds of the log and the segments do not is cut off too.
TEST_F(Repaired, CutBesideAJournalThatIsNotEmpty) {
  for (const bool power : {false, true}) {
    world.start();
    for (int i = 0; i < 20; ++i) world.append(2, 1'500);
    ASSERT_TRUE(world.settle());
    if (power) {
      world.crash();
    } else {
      world.kill();
    }
    if (*world.files->exists("data/unknown/aside")) world.files->remove_tree("data/unknown");
    ASSERT_TRUE(truncate(101));
    const auto summary = world.start();
    EXPECT_TRUE(summary.journal_problem.empty()) << summary.journal_problem;
    EXPECT_TRUE(summary.offline.empty());
    EXPECT_EQ(world.log().log_end_offset(), Offset(102));
    EXPECT_EQ(world.append(98).end_offset, Offset(200));
    ASSERT_TRUE(world.settle());
    ASSERT_TRUE(world.stop());
  }
}

/// A crash at any step leaves a log that can be served, at the old or at the new end.
TEST_F(Repaired, CrashInBetweenLosesNothingThatWasNotMeantToGo) {
  const auto golden = world.files->clone();
  for (int seed = 1; seed <= 60; ++seed) {
    world.files = golden->clone();
    ASSERT_TRUE(world.files->make_directory("data/unknown"));
    CrashableFileSystem process(*world.files, world.simulator.random().fork());
    process.kill_after(static_cast<std::uint64_t>(seed), [] {});
    const auto made = plan(101);
    const auto cut =
        storage::truncate_partition(process, "data", partition(), made, "data/unknown/aside",
                                    [&] { return record(process, made); });
    world.files->crash(world.simulator.random());
    ASSERT_TRUE(world.start().offline.empty()) << seed;
    const auto end = world.log().log_end_offset();
    EXPECT_GE(end, Offset(102)) << seed;
    if (cut) {
      EXPECT_EQ(end, Offset(102));
    }
    world.read_all();
    ASSERT_TRUE(world.stop());
  }
}

}  // namespace
}  // namespace mq::testing
