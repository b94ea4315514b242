#include "controller/node_writer.h"

#include <gtest/gtest.h>

#include "base/mutants.h"
#include "metadata/memory_store.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::controller {
namespace {

using metadata::MetadataErrc;
using metadata::StoreFault;

class NodeWriterTest : public ::testing::Test {
 protected:
  /// Sets /a to a value with a tag of its own.
  base::Error write() {
    const auto tag = writer_.next_tag();
    const metadata::BrokerEpochValue value{tag, incarnation_, {}};
    std::vector<metadata::Operation> operations;
    operations.emplace_back(
        metadata::SetValue("/a", metadata::encode(value), metadata::kAnyVersion));
    const auto result =
        mq::testing::run(simulator_, writer_.commit(std::move(operations), "/a", tag));
    return result ? result->first_error() : result.error();
  }
  /// The next write behaves so; then `reads` reads fail.
  void fail_next(StoreFault fault, int reads = 0) {
    state_->fault = [fault, reads](bool write) mutable {
      if (write) return std::exchange(fault, StoreFault::none);
      return reads-- > 0 ? StoreFault::unavailable : StoreFault::none;
    };
  }
  std::uint64_t sequence() {
    return metadata::decode_writer(state_->nodes.at("/a").value)->sequence;
  }

  mq::testing::Simulator simulator_{3};
  mq::testing::SimRuntime runtime_{simulator_};
  std::shared_ptr<metadata::MemoryStoreState> state_ = [] {
    auto state = std::make_shared<metadata::MemoryStoreState>();
    state->nodes["/a"] = metadata::Node{};
    return state;
  }();
  std::unique_ptr<metadata::MetadataStore> store_ = metadata::open_memory_store(state_, runtime_);
  const base::Uuid incarnation_ = base::Uuid::from_random(1, 2);
  NodeWriter writer_{*store_, runtime_, incarnation_};
};

TEST_F(NodeWriterTest, EachWriteHasATagOfItsOwn) {
  EXPECT_FALSE(write());
  const auto first = sequence();
  EXPECT_FALSE(write());
  EXPECT_GT(sequence(), first);
}

// MET-1: an unknown outcome is neither success nor failure until the node has been read.
TEST_F(NodeWriterTest, LostAnswerOfAnAppliedWriteIsSuccess) {
  fail_next(StoreFault::lost_answer);
  EXPECT_FALSE(write());
}

TEST_F(NodeWriterTest, LostRequestIsKnownNotToBeApplied) {
  EXPECT_FALSE(write());
  const auto before = sequence();
  fail_next(StoreFault::lost_request);
  EXPECT_EQ(write(), make_error_code(MetadataErrc::unavailable));
  EXPECT_EQ(sequence(), before);
}

// Too rare in whole histories: it takes a lost request of just the write that somebody relies on.
TEST_F(NodeWriterTest, AnUnknownOutcomeTakenForSuccessIsCaught) {
  EXPECT_FALSE(write());
  const auto before = sequence();
  const base::EnabledMutant enabled("unknown_outcome_counts_as_applied");
  fail_next(StoreFault::lost_request);
  EXPECT_FALSE(write()) << "the mistake is not made: LostRequestIsKnownNotToBeApplied is no check";
  EXPECT_EQ(sequence(), before);
}

TEST_F(NodeWriterTest, AnUnknownOutcomeTakenForFailureIsCaught) {
  const base::EnabledMutant enabled("unknown_outcome_counts_as_failed");
  EXPECT_FALSE(write());
  const auto before = sequence();
  fail_next(StoreFault::lost_answer);
  EXPECT_TRUE(write())
      << "the mistake is not made: LostAnswerOfAnAppliedWriteIsSuccess is no check";
  EXPECT_GT(sequence(), before);
}

TEST_F(NodeWriterTest, ReadingIsTriedSomeTimes) {
  fail_next(StoreFault::lost_answer, 3);
  EXPECT_FALSE(write());
}

TEST_F(NodeWriterTest, OutcomeStaysUnknownWhenNothingCanBeRead) {
  fail_next(StoreFault::lost_answer, 1000);
  EXPECT_EQ(write(), make_error_code(MetadataErrc::outcome_unknown));
}

TEST_F(NodeWriterTest, WriteOfAnotherProcessIsNotOurs) {
  NodeWriter other(*store_, runtime_, base::Uuid::from_random(8, 8));
  const metadata::BrokerEpochValue value{other.next_tag(), incarnation_, {}};
  state_->nodes["/a"].value = metadata::encode(value);
  fail_next(StoreFault::lost_request);
  EXPECT_EQ(write(), make_error_code(MetadataErrc::unavailable));
}

}  // namespace
}  // namespace mq::controller
