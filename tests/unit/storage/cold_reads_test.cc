#include "storage/cold_reads.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "storage/read_ahead.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using std::chrono::milliseconds;
using storage::ColdReads;
using storage::ReadAhead;
using storage::ReadResult;

/// Threads that work only when the test says so.
class HeldThreads final : public base::DiskExecutor {
 public:
  void submit(std::function<void()> work) override { works.push_back(std::move(work)); }
  void run_one() {
    const auto work = std::move(works.front());
    works.pop_front();
    work();
  }
  std::deque<std::function<void()>> works;
};

struct ColdReadsTest : ::testing::Test {
  Simulator simulator{1};
  SimRuntime home{simulator};
  HeldThreads threads;
  std::shared_ptr<ColdReads> reads = std::make_shared<ColdReads>(threads, home, true);
  std::string seen;

  std::function<void()> note(char what) {
    return [this, what] { seen += what; };
  }
  /// A turn of so many steps, each of which leaves a letter.
  void spawn_turn(char what, int steps) {
    ColdReads::Step step = [this, what, left = std::make_shared<int>(steps)] {
      seen += what;
      return --*left > 0;
    };
    auto turn = reads->take_turn(std::move(step));
    home.spawn("turn", std::move(turn));
    simulator.run_for(milliseconds(1));
  }
  /// As on a turning disk.
  void let_groups_be_slow() {
    for (int i = 0; i < 3; ++i) {
      reads->before_group([] {});
      simulator.run_for(milliseconds(20));
      reads->after_group();
    }
  }
};

TEST_F(ColdReadsTest, TwoTurnsAtOnceTheOthersInOrder) {
  for (const char what : {'a', 'b', 'c', 'd'}) reads->submit(note(what));
  EXPECT_EQ(threads.works.size(), ColdReads::kTurnsMax);
  EXPECT_EQ(reads->readers(), 4u);
  threads.run_one();
  EXPECT_EQ(threads.works.size(), ColdReads::kTurnsMax);
  while (!threads.works.empty()) threads.run_one();
  EXPECT_EQ(seen, "abcd");
  EXPECT_EQ(reads->readers(), 0u);
}

TEST_F(ColdReadsTest, TheBackgroundComesBehindAllReaders) {
  reads->submit(note('a'));
  reads->submit(note('b'));
  reads->background().submit(note('x'));
  reads->submit(note('c'));
  reads->submit(note('d'));
  while (!threads.works.empty()) threads.run_one();
  EXPECT_EQ(seen, "abcdx");
}

TEST_F(ColdReadsTest, AGroupWaitsForAStepAndReadersForTheGroup) {
  let_groups_be_slow();
  spawn_turn('r', 20);
  reads->before_group(note('G'));
  EXPECT_EQ(seen, "");
  threads.run_one();
  // A step; then the group has the head, and the turn goes on behind it.
  EXPECT_EQ(seen, "rG");
  EXPECT_TRUE(threads.works.empty());
  reads->submit(note('n'));
  EXPECT_TRUE(threads.works.empty());
  reads->after_group();
  reads->before_group(note('G'));
  threads.run_one();
  threads.run_one();
  EXPECT_EQ(seen, "rGrnG");
}

/// A step that takes 40 ms leaves the head to groups for 20 ms, as long as they come.
TEST_F(ColdReadsTest, GroupsHaveTheHeadForHalfAsLongAsAStep) {
  let_groups_be_slow();
  for (int i = 0; i < 8; ++i) {  // until that is how long steps take
    reads->submit([this] { simulator.run_for(milliseconds(40)); });
    threads.run_one();
  }
  ColdReads::Step step = [this] {
    seen += 'r';
    simulator.run_for(milliseconds(40));
    return true;
  };
  auto turn = reads->take_turn(std::move(step));
  home.spawn("turn", std::move(turn));
  simulator.run_for(milliseconds(1));
  const auto group = [this] {
    reads->before_group(note('G'));
    if (!threads.works.empty()) threads.run_one();
    simulator.run_for(milliseconds(8));
    reads->after_group();
    simulator.run_for(milliseconds(1));
  };
  for (int i = 0; i < 6; ++i) group();
  EXPECT_EQ(seen, "rGGGrGGG");
  // A slot in which no group comes any more ends early.
  group();
  EXPECT_EQ(seen, "rGGGrGGGrG");
  EXPECT_TRUE(threads.works.empty());
  simulator.run_for(milliseconds(15));
  EXPECT_EQ(threads.works.size(), 1u);
  threads.works.clear();
}

TEST_F(ColdReadsTest, StridesHaveTheirTurnsAmongReaders) {
  EXPECT_FALSE(reads->takes_turns());
  let_groups_be_slow();
  EXPECT_TRUE(reads->takes_turns());
  reads->submit(note('a'));
  reads->submit(note('b'));
  reads->strides().submit(note('W'));
  reads->submit(note('c'));
  EXPECT_EQ(reads->readers(), 3u);
  while (!threads.works.empty()) threads.run_one();
  EXPECT_EQ(seen, "abWc");
  reads->submit(note('d'));
  EXPECT_TRUE(reads->takes_turns());
  simulator.run_for(std::chrono::seconds(2));  // no group comes any more
  EXPECT_FALSE(reads->takes_turns());
  threads.run_one();
}

TEST_F(ColdReadsTest, AGroupDoesNotWaitForAReaderThatHangs) {
  let_groups_be_slow();
  spawn_turn('r', 2);
  reads->before_group(note('G'));
  EXPECT_EQ(seen, "");
  simulator.run_for(milliseconds(200));
  EXPECT_EQ(seen, "");
  simulator.run_for(milliseconds(100));
  EXPECT_EQ(seen, "G");
}

TEST_F(ColdReadsTest, GroupsOfAFastDiskOrOfAnotherDiskDoNotWait) {
  spawn_turn('r', 2);
  reads->before_group(note('G'));
  EXPECT_EQ(seen, "G");
  reads->after_group();
  reads = std::make_shared<ColdReads>(threads, home, false);
  let_groups_be_slow();
  spawn_turn('s', 2);
  reads->before_group(note('H'));
  EXPECT_EQ(seen, "GH");
}

/// Batches of two records each from offset 0 on, one behind the other.
base::SharedBytes piece(int batches, std::size_t value_bytes) {
  std::vector<std::byte> all;
  for (int i = 0; i < batches; ++i) {
    auto batch = make_batch(static_cast<std::uint64_t>(i), 2, value_bytes);
    model::stamp({const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size()}, Offset(i * 2),
                 model::LeaderEpoch(1), 1);
    all.insert(all.end(), batch.bytes.begin(), batch.bytes.end());
  }
  base::SharedBytes piece{base::BufferPool::shared().take(all.size()), {}};
  std::ranges::copy(all, piece.owner.data());
  piece.bytes = base::Bytes(piece.owner.bytes()).first(all.size());
  return piece;
}

struct ReadAheadTest : ::testing::Test {
  base::TimePoint now{std::chrono::hours(1)};
  int one = 0;
  int two = 0;  // stand for logs
};

TEST_F(ReadAheadTest, TheRestIsServedOnceAndThenGone) {
  ReadAhead ahead(1 << 20);
  const auto all = piece(10, 1'000);
  const std::size_t batch = all.bytes.size() / 10;
  ReadResult result;
  ahead.split(&one, Offset(1), Offset(20), all, Offset(20), batch * 3, now, result);
  EXPECT_EQ(result.end_offset, Offset(6));
  EXPECT_EQ(result.bytes, batch * 3);
  std::vector<std::byte> got(result.batches.at(0).bytes.begin(), result.batches.at(0).bytes.end());
  for (std::int64_t at = 6; at < 20;) {
    ReadResult more;
    ASSERT_TRUE(ahead.read(&one, Offset(at), Offset(20), batch * 4, now, more));
    ASSERT_GT(more.end_offset, Offset(at));
    const auto bytes = more.batches.at(0).bytes;
    got.insert(got.end(), bytes.begin(), bytes.end());
    at = more.end_offset.value();
  }
  EXPECT_TRUE(std::ranges::equal(got, all.bytes));
  EXPECT_EQ(ahead.bytes(), 0u);
  ReadResult gone;
  EXPECT_FALSE(ahead.read(&one, Offset(6), Offset(20), batch, now, gone));
}

// PAR-3
TEST_F(ReadAheadTest, NothingAboveTheLimitComes) {
  ReadAhead ahead(1 << 20);
  ReadResult result;
  ahead.split(&one, Offset(0), Offset(20), piece(10, 100), Offset(5), 1 << 20, now, result);
  EXPECT_EQ(result.end_offset, Offset(4));
  ReadResult nothing;
  ASSERT_TRUE(ahead.read(&one, Offset(4), Offset(5), 1 << 20, now, nothing));
  EXPECT_TRUE(nothing.batches.empty());
  EXPECT_EQ(nothing.end_offset, Offset(4));
}

TEST_F(ReadAheadTest, StaysWithinItsBytesAndLetsTheUnusedGo) {
  ReadAhead ahead(64 << 10);
  const auto keep = [&](const void* log) {
    ReadResult result;
    ahead.split(log, Offset(0), Offset(20), piece(10, 1'000), Offset(20), 1, now, result);
  };
  keep(&one);
  const auto each = ahead.bytes();
  for (int i = 0; i < 8; ++i) keep(&two);
  EXPECT_LE(ahead.bytes(), 64u << 10);
  EXPECT_GE(ahead.bytes(), each);
  ReadResult result;
  EXPECT_FALSE(ahead.read(&one, Offset(2), Offset(20), 1, now, result));
  now += std::chrono::seconds(3);
  ASSERT_TRUE(ahead.read(&two, Offset(2), Offset(20), 1, now, result));
  ahead.drop_unused_since(now - std::chrono::seconds(1));
  EXPECT_EQ(ahead.bytes(), each);
  ahead.forget(&two);
  EXPECT_EQ(ahead.bytes(), 0u);
}

/// A log whose data is on the disk alone.
struct ColdLogTest : ::testing::Test {
  StorageWorld world;
  std::vector<std::byte> sent;
  void start() {
    world.config.tail_cache_bytes = 1;
    world.settings.segment_bytes = 16u << 20;
    world.start();
    for (int i = 0; i < 200; ++i) {
      auto batch = make_batch(static_cast<std::uint64_t>(i), 2, 10'000);
      ASSERT_TRUE(world.append_batch(batch));
      sent.insert(sent.end(), batch.bytes.begin(), batch.bytes.end());
    }
    world.settle();
    world.files->set_cold_share(1.0);
  }
  std::int64_t turns() { return world.counters.snapshot()["storage_cold_reads_total"]; }
};

TEST_F(ColdLogTest, ManyFetchesCostOneTurn) {
  start();
  EXPECT_EQ(world.read_all(0, 100'000), sent);  // 4 MiB
  EXPECT_EQ(turns(), 1);
}

TEST_F(ColdLogTest, NothingIsReadAheadAboveWhatMayBeRead) {
  start();
  auto reading = world.log().read_from_disk(Offset(0), Offset(100), 1);
  ASSERT_TRUE(run(world.simulator, std::move(reading)));
  // What the reader may not have yet must come from the log itself when it may.
  const auto more = world.log().read(Offset(98), Offset(400), 1 << 20);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->end_offset, Offset(100));
  EXPECT_EQ(world.log().read(Offset(100), Offset(400), 1).error(),
            make_error_code(StorageErrc::not_cached));
}

TEST_F(ColdLogTest, AClosedLogLeavesNothingToItsSuccessor) {
  start();
  auto reading = world.log().read_from_disk(Offset(0), Offset(400), 1);
  ASSERT_TRUE(run(world.simulator, std::move(reading)));
  auto deleting = world.disk->delete_log(world.id());
  ASSERT_TRUE(run(world.simulator, std::move(deleting)));
  auto creating = world.disk->create_log(world.spec());
  const auto made = run(world.simulator, std::move(creating));
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->read(Offset(2), Offset(400), 1).error(),
            make_error_code(StorageErrc::offset_out_of_range));
}

TEST_F(ColdLogTest, DamageBehindWhatWasAskedForIsNotGivenOut) {
  start();
  const std::size_t batch = sent.size() / 200;
  world.files->flip(world.segment(0), batch * 50 + 500, std::byte{1});
  std::int64_t at = 0;
  while (true) {
    const auto result = world.read(Offset(at), 100'000);
    if (!result) {
      EXPECT_EQ(result.error(), make_error_code(StorageErrc::partition_corrupt));
      break;
    }
    ASSERT_GT(result->end_offset, Offset(at));
    at = result->end_offset.value();
  }
  EXPECT_EQ(at, 100);
  EXPECT_TRUE(world.read(Offset(120), 100'000));
}

}  // namespace
}  // namespace mq::testing
