#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct TrimWorld : StorageWorld {
  explicit TrimWorld(std::uint64_t seed = 1, model::Durability durability = model::Durability::disk)
      : StorageWorld(seed) {
    settings.retention_age = milliseconds(0);
    settings.durability = durability;
    start();
    for (int i = 0; i < 60; ++i) append(2, 2'500);
    if (durability == model::Durability::disk) settle();
  }
  [[nodiscard]] int segment_files() const {
    int n = 0;
    for (const auto& file : files->files_below(directory())) n += file.ends_with(".log");
    return n;
  }
};

TEST(Trim, StartRisesIntoTheMiddleOfASegmentAndWholeSegmentsGo) {
  for (const auto durability : {model::Durability::disk, model::Durability::memory}) {
    TrimWorld world(1, durability);
    const auto segments = world.log().segments();
    ASSERT_GE(segments, 4u);
    ASSERT_TRUE(world.trim(Offset(71)));
    EXPECT_EQ(world.log().log_start_offset(), Offset(71));
    world.pass(seconds(1));
    EXPECT_LT(world.log().segments(), segments);
    EXPECT_EQ(world.segment_files(), static_cast<int>(world.log().segments()));
    EXPECT_EQ(world.read(Offset(70)).error(), make_error_code(StorageErrc::offset_out_of_range));
    const auto first = world.read(Offset(71), 1);
    ASSERT_TRUE(first);
    EXPECT_EQ(model::RecordBatchView::parse_first(first->batches[0].bytes)->base_offset(),
              Offset(70));
    // The same after each kind of end.
    world.kill();
    world.start();
    EXPECT_EQ(world.log().log_start_offset(), Offset(71));
    world.crash();
    ASSERT_TRUE(world.start().offline.empty());
    EXPECT_EQ(world.log().log_start_offset(), Offset(71));
    EXPECT_EQ(world.log().log_end_offset(), Offset(120));
    ASSERT_TRUE(world.stop());
    ASSERT_TRUE(world.start().clean);
    EXPECT_EQ(world.log().log_start_offset(), Offset(71));
    EXPECT_TRUE(world.read(Offset(119)));
  }
}

TEST(Trim, ToTheEndLeavesNoRecordAndTheNextOffset) {
  for (const auto durability : {model::Durability::disk, model::Durability::memory}) {
    TrimWorld world(1, durability);
    world.settle();
    ASSERT_TRUE(world.trim(Offset(120)));
    world.pass(seconds(1));
    EXPECT_EQ(world.log().log_start_offset(), Offset(120));
    EXPECT_EQ(world.segment_files(), 1);
    EXPECT_EQ(world.log().bytes_on_disk(), 0u);
    world.crash();
    world.start();
    EXPECT_EQ(world.log().log_start_offset(), Offset(120));
    EXPECT_EQ(world.append(1).base_offset, Offset(120));
  }
}

TEST(Trim, ToTheEndHasTheNextFileMadeByAThread) {
  TrimWorld world;
  world.settle();
  world.executor->stall(seconds(10));
  auto trimming = world.log().trim(Offset(120));
  const auto trimmed = start_for_outcome(world.simulator.executor(), std::move(trimming), [] {});
  world.pass(seconds(1));
  EXPECT_FALSE(*world.files->exists(world.segment(120)));
  EXPECT_FALSE(world.log().appends_inline());
  // Who does not ask goes first.
  EXPECT_EQ(world.append(1).base_offset, Offset(120));
  EXPECT_TRUE(*world.files->exists(world.segment(120)));
  world.pass(seconds(20));
  ASSERT_TRUE(trimmed->value && *trimmed->value);
  EXPECT_EQ(world.log().log_start_offset(), Offset(120));
  EXPECT_EQ(world.segment_files(), 1);
  EXPECT_TRUE(world.read(Offset(120)));
}

TEST(Trim, ToTheEndLeavesABatchInPeaceThatIsBeingWritten) {
  TrimWorld world(1, model::Durability::memory);
  world.files->on_write([&] { world.simulator.pass(milliseconds(30)); });
  world.append(1, 100);
  world.files->on_write({});
  ASSERT_FALSE(world.log().appends_inline());  // through a thread, that is
  const auto end = world.log().log_end_offset();
  auto batch = make_batch(1'000, 1, 100);
  const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
  auto appending =
      world.log().append_later(batch.owner, bytes, *model::parse_produced(bytes, 1u << 20));
  auto trimming = world.log().trim(end);
  world.executor->stall(seconds(2));
  const auto appended = start_for_outcome(world.simulator.executor(), std::move(appending), [] {});
  const auto trimmed = start_for_outcome(world.simulator.executor(), std::move(trimming), [] {});
  world.pass(seconds(20));
  ASSERT_TRUE(appended->value && *appended->value);
  EXPECT_EQ((*appended->value)->base_offset, end);
  ASSERT_TRUE(trimmed->value && *trimmed->value);
  EXPECT_EQ(world.log().log_start_offset(), end);
  ASSERT_TRUE(world.stop());
  EXPECT_TRUE(world.start().offline.empty());
  EXPECT_EQ(world.log().log_end_offset(), model::advance(end, 1));
  EXPECT_FALSE(world.read_all().empty());
}

TEST(Trim, NeverAboveTheConfirmedEndAndNeverBackwards) {
  TrimWorld world;
  world.settle();
  const auto info = world.append();
  ASSERT_LT(world.log().confirmed_end(), info.end_offset);
  EXPECT_EQ(world.trim(info.end_offset).error(), make_error_code(StorageErrc::offset_out_of_range));
  EXPECT_EQ(world.log().log_start_offset(), Offset(0));
  ASSERT_TRUE(world.trim(Offset(50)));
  ASSERT_TRUE(world.trim(Offset(20)));
  EXPECT_EQ(world.log().log_start_offset(), Offset(50));
  EXPECT_EQ(world.counters.get("invariant_violations").value(), 0);
}

/// LOG-10: what was answered is kept, what is readable is whole, whenever the power goes.
TEST(Trim, CrashAtAnyMomentKeepsAnAnsweredTrim) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto durability = seed % 3 == 0 ? model::Durability::memory : model::Durability::disk;
    TrimWorld world(seed, durability);
    world.settle();
    const Offset to(static_cast<std::int64_t>(world.simulator.random().between(1, 120)));
    const auto outcome = std::make_shared<RunOutcome<base::Result<void>>>();
    world.runtime.spawn("trim", store_outcome(world.log().trim(to), outcome));
    world.pass(std::chrono::microseconds(seed * 250));
    const bool answered = outcome->value.has_value() && outcome->value->has_value();
    const auto seen = world.log().log_start_offset();
    if (seed % 2) {
      world.crash();
    } else {
      world.kill();
    }
    const auto summary = world.start();
    ASSERT_TRUE(summary.offline.empty()) << seed;
    const auto start = world.log().log_start_offset();
    EXPECT_GE(start, seen) << seed;
    EXPECT_TRUE(start == Offset(0) || start == to) << seed << " starts at " << start.value();
    EXPECT_TRUE(!answered || start == to) << seed;
    EXPECT_EQ(world.log().log_end_offset(), Offset(120)) << seed;
    EXPECT_TRUE(world.read(start)) << seed;
  }
}

TEST(Trim, FullDiskRefusesByNameAndTheStartRisesOnceThereIsSpace) {
  TrimWorld world;
  world.settle();
  world.files->inject({.operation = FileOperation::write,
                       .path_part = "checkpoint",
                       .error = base::make_error_code(base::BaseErrc::no_space),
                       .times = -1});
  EXPECT_EQ(world.trim(Offset(40)).error(), make_error_code(StorageErrc::storage_full));
  EXPECT_EQ(world.log().log_start_offset(), Offset(0));
  EXPECT_TRUE(world.read(Offset(0)));
  world.files->clear_faults();
  world.pass(3 * world.config.retention_interval);
  EXPECT_EQ(world.log().log_start_offset(), Offset(40));
}

TEST(Trim, TwoAtOnceBothEnd) {
  TrimWorld world;
  world.settle();
  const auto first = std::make_shared<RunOutcome<base::Result<void>>>();
  world.runtime.spawn("trim", store_outcome(world.log().trim(Offset(60)), first));
  ASSERT_TRUE(world.trim(Offset(30)));
  ASSERT_TRUE(first->value && *first->value);
  EXPECT_EQ(world.log().log_start_offset(), Offset(60));
}

TEST(Trim, StopAndDeleteDoNotWaitForIt) {
  for (const bool deleted : {false, true}) {
    TrimWorld world(3, model::Durability::memory);
    const auto outcome = std::make_shared<RunOutcome<base::Result<void>>>();
    world.runtime.spawn("trim", store_outcome(world.log().trim(Offset(60)), outcome));
    world.pass(std::chrono::microseconds(10));
    if (deleted) {
      auto deleting = world.disk->delete_log(world.id());
      const auto gone = run(world.simulator, std::move(deleting));
      ASSERT_TRUE(gone) << gone.error().message() << world.files->files_below("data").back();
    }
    ASSERT_TRUE(world.stop());
    EXPECT_TRUE(outcome->value.has_value());
  }
}

// LOG-10: what the first one had let go in the books must not be missed by the next start.
TEST(Trim, OneThatFoundNoSpaceAndALowerOneBehindItLeaveAWholeLog) {
  TrimWorld world;
  world.files->inject({.operation = FileOperation::write,
                       .path_part = "checkpoint",
                       .error = base::make_error_code(base::BaseErrc::no_space),
                       .times = -1});
  EXPECT_FALSE(world.trim(Offset(80)));
  EXPECT_EQ(world.log().log_start_offset(), Offset(0));
  world.files->clear_faults();
  ASSERT_TRUE(world.trim(Offset(30)));
  world.pass(seconds(11));  // a checkpoint
  world.crash();
  EXPECT_TRUE(world.start().offline.empty());
  EXPECT_GE(world.log().log_start_offset(), Offset(30));
  EXPECT_EQ(world.log().log_end_offset(), Offset(120));
  world.read_all();
}

TEST(Trim, ConsumersAreToldThatTheStartMoved) {
  TrimWorld world;
  world.settle();
  Offset told;
  world.log().on_changed([&] { told = world.log().log_start_offset(); });
  ASSERT_TRUE(world.trim(Offset(10)));
  EXPECT_EQ(told, Offset(10));
  world.log().on_changed({});
}

}  // namespace
}  // namespace mq::testing
