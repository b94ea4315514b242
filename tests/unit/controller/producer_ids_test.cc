#include "controller/producer_ids.h"

#include <gtest/gtest.h>

#include <set>

#include "metadata/memory_store.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::controller {
namespace {

using metadata::MetadataErrc;
using metadata::StoreFault;

constexpr auto kNode = metadata::layout::kProducerIds;

/// One process that gives out ids.
struct Process {
  Process(base::Runtime& runtime, const std::shared_ptr<metadata::MemoryStoreState>& state,
          bool keep_stock)
      : store(metadata::open_memory_store(state, runtime, {.single_process = false})),
        ids(*store, runtime, keep_stock) {}
  std::unique_ptr<metadata::MetadataStore> store;
  ProducerIds ids;
};

class ProducerIdsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Process> process(bool keep_stock = false) {
    return std::make_unique<Process>(runtime_, state_, keep_stock);
  }
  base::Result<std::int64_t> next(Process& process) {
    return mq::testing::run(simulator_, process.ids.next());
  }
  /// The next write behaves so; then `reads` reads fail.
  void fail_next(StoreFault fault, int reads = 0) {
    state_->fault = [fault, reads](bool write) mutable {
      if (write) return std::exchange(fault, StoreFault::none);
      return reads-- > 0 ? StoreFault::unavailable : StoreFault::none;
    };
  }

  mq::testing::Simulator simulator_{3};
  mq::testing::SimRuntime runtime_{simulator_};
  std::shared_ptr<metadata::MemoryStoreState> state_ = [] {
    auto state = std::make_shared<metadata::MemoryStoreState>();
    state->nodes[std::string(metadata::layout::kProducers)] = metadata::Node{};
    return state;
  }();
};

// IDM-5
TEST_F(ProducerIdsTest, NoIdIsGivenOutTwiceByAnyProcess) {
  std::set<std::int64_t> given;
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 3; ++i) processes.push_back(process());
  for (int i = 0; i < 5000; ++i) {
    if (i % 700 == 699) processes[static_cast<std::size_t>(i) % 3] = process();
    const auto id = next(*processes[static_cast<std::size_t>(i) % 3]);
    ASSERT_TRUE(id);
    EXPECT_TRUE(given.insert(*id).second) << *id;
  }
  const auto value = metadata::decode_producer_ids(state_->nodes.at(std::string(kNode)).value);
  ASSERT_TRUE(value);
  EXPECT_GT(value->next_id, *given.rbegin());
}

TEST_F(ProducerIdsTest, ABlockCostsOneWrite) {
  auto one = process();
  int writes = 0;
  state_->fault = [&](bool write) {
    writes += write;
    return StoreFault::none;
  };
  for (std::int64_t i = 0; i < ProducerIds::kBlock; ++i) EXPECT_EQ(*next(*one), i);
  EXPECT_EQ(writes, 1);
  EXPECT_EQ(*next(*one), ProducerIds::kBlock);
  EXPECT_EQ(writes, 2);
}

TEST_F(ProducerIdsTest, WhatAsksAtOnceSharesABlock) {
  auto one = process();
  std::set<std::int64_t> given;
  for (int i = 0; i < 50; ++i) {
    runtime_.spawn("ask", [](Process& from, std::set<std::int64_t>& to) -> asio::awaitable<void> {
      const auto id = co_await from.ids.next();
      if (id) to.insert(*id);
    }(*one, given));
  }
  while (simulator_.step()) {
  }
  EXPECT_EQ(given.size(), 50u);
  EXPECT_EQ(*given.rbegin(), 49);
}

TEST_F(ProducerIdsTest, ALostAnswerLosesNoBlockAndGivesNoneTwice) {
  auto one = process();
  fail_next(StoreFault::lost_answer);
  EXPECT_EQ(*next(*one), 0);
  auto other = process();
  EXPECT_EQ(*next(*other), 1000);
}

TEST_F(ProducerIdsTest, AStoreThatIsAwayIsAnErrorAndTheNextTryWorks) {
  auto one = process();
  fail_next(StoreFault::unavailable);
  EXPECT_EQ(next(*one).error(), make_error_code(MetadataErrc::unavailable));
  EXPECT_EQ(*next(*one), 0);
  // What the block still has needs no store.
  state_->fault = [](bool) { return StoreFault::unavailable; };
  EXPECT_EQ(*next(*one), 1);
}

TEST_F(ProducerIdsTest, AnUnknownOutcomeGivesNothingOut) {
  auto one = process();
  fail_next(StoreFault::lost_answer, 100);
  // The first read, of the node, is before the write.
  state_->fault = [reads = 0](bool write) mutable {
    if (write) return StoreFault::lost_answer;
    return reads++ == 0 ? StoreFault::none : StoreFault::unavailable;
  };
  EXPECT_EQ(next(*one).error(), make_error_code(MetadataErrc::outcome_unknown));
  state_->fault = {};
  EXPECT_EQ(*next(*one), 1000);  // the block was taken, and nobody has it
}

// New producers are let in while the store is away, thousands of them.
TEST_F(ProducerIdsTest, ABlockIsKeptInStock) {
  static_assert(ProducerIds::kStockBlock >= 100'000);
  const auto one = process(true);
  one->ids.start();
  simulator_.run_for(std::chrono::seconds(1));
  state_->fault = [](bool) { return StoreFault::unavailable; };
  std::set<std::int64_t> ids;
  for (std::int64_t i = 0; i < ProducerIds::kStockBlock; ++i) {
    const auto id = next(*one);
    ASSERT_TRUE(id) << i;
    EXPECT_TRUE(ids.insert(*id).second);
  }
  // It is bounded: two blocks at most are lost with a process.
  const auto value = metadata::decode_producer_ids(state_->nodes.at(std::string(kNode)).value);
  EXPECT_LE(value->next_id, 2 * ProducerIds::kStockBlock);
  state_->fault = nullptr;
  simulator_.run_for(std::chrono::seconds(3));
  state_->fault = [](bool) { return StoreFault::unavailable; };
  EXPECT_TRUE(next(*one));
  mq::testing::run(simulator_, one->ids.stop());
}

TEST_F(ProducerIdsTest, ADamagedNodeIsNotOverwritten) {
  auto one = process();
  state_->nodes[std::string(kNode)].value = "\xff\xff";
  EXPECT_EQ(next(*one).error(), make_error_code(MetadataErrc::damaged));
  EXPECT_EQ(state_->nodes.at(std::string(kNode)).value, "\xff\xff");
}

}  // namespace
}  // namespace mq::controller
