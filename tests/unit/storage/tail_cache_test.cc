#include "storage/tail_cache.h"

#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using storage::ReadResult;
using storage::TailBudget;
using storage::TailCache;

base::SharedBytes stamped(std::int64_t base, std::size_t value_bytes) {
  auto batch = make_batch(static_cast<std::uint64_t>(base), 2, value_bytes);
  model::stamp({const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size()}, Offset(base),
               model::LeaderEpoch(1), 1);
  return batch;
}

void add(TailCache& cache, std::int64_t base, std::size_t value_bytes) {
  const auto batch = stamped(base, value_bytes);
  cache.add(batch.owner, batch.bytes, Offset(base), Offset(base + 2));
}

TEST(TailCache, OldestPiecesGoFirstOverAllLogs) {
  TailBudget budget(100'000);
  TailCache one(budget);
  TailCache two(budget);
  ReadResult result;
  for (int i = 0; i < 10; ++i) {
    add(one, i * 2, 20'000);
    add(two, i * 2, 20'000);
    EXPECT_LE(budget.bytes(), 130'000u);
  }
  EXPECT_FALSE(one.read(Offset(0), Offset(20), 1, result));
  EXPECT_TRUE(one.read(Offset(18), Offset(20), 1, result));
  EXPECT_TRUE(two.read(Offset(19), Offset(20), 1, result));
}

TEST(TailCache, ClearedCacheGivesItsMemoryBack) {
  TailBudget budget(1'000'000);
  TailCache other(budget);
  add(other, 0, 20'000);
  const auto before = budget.bytes();
  {
    TailCache cache(budget);
    for (int i = 0; i < 10; ++i) add(cache, i * 2, 20'000);
  }
  EXPECT_EQ(budget.bytes(), before);
  for (int i = 1; i < 100; ++i) add(other, i * 2, 20'000);  // the gap it left is passed over
  EXPECT_LE(budget.bytes(), 1'050'000u);
}

TEST(TailCache, SmallBatchesShareChunksAndEveryOffsetIsFound) {
  TailBudget budget(10'000'000);
  TailCache cache(budget);
  for (int i = 0; i < 500; ++i) add(cache, i * 2, static_cast<std::size_t>(i % 90));
  for (int from = 999; from >= 0; --from) {
    ReadResult result;
    result.end_offset = Offset(from);
    ASSERT_TRUE(cache.read(Offset(from), Offset(1'000), 1, result));
    const auto view = model::RecordBatchView::parse(result.batches.at(0).bytes);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->base_offset(), Offset(from / 2 * 2));
  }
  ReadResult all;
  ASSERT_TRUE(cache.read(Offset(0), Offset(1'000), 10'000'000, all));
  EXPECT_EQ(all.end_offset, Offset(1'000));
  EXPECT_LT(all.batches.size(), 12u);
}

TEST(TailCache, ReaderKeepsWhatWasDropped) {
  TailBudget budget(30'000);
  TailCache cache(budget);
  add(cache, 0, 20'000);
  ReadResult result;
  ASSERT_TRUE(cache.read(Offset(0), Offset(2), 1, result));
  for (int i = 1; i < 20; ++i) add(cache, i * 2, 20'000);
  EXPECT_TRUE(model::RecordBatchView::parse(result.batches[0].bytes));
}

}  // namespace
}  // namespace mq::testing
