#include "metadata/memory_store.h"

#include <gtest/gtest.h>

#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::metadata {
namespace {

class MemoryStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<MetadataStore> open(MemoryStoreOptions options = {}) {
    return open_memory_store(state_, runtime_, options);
  }
  template <class T>
  T run(asio::awaitable<T> task) {
    return mq::testing::run(simulator_, std::move(task));
  }
  mq::testing::Simulator simulator_{7};
  mq::testing::SimRuntime runtime_{simulator_};
  std::shared_ptr<MemoryStoreState> state_ = std::make_shared<MemoryStoreState>();
};

TEST_F(MemoryStoreTest, FaultsAnswerAsARealStoreWould) {
  const auto store = open();
  auto next = StoreFault::unavailable;
  state_->fault = [&](bool) { return next; };
  EXPECT_EQ(run(store->create("/a", "")).error(), make_error_code(MetadataErrc::unavailable));
  EXPECT_FALSE(state_->nodes.contains("/a"));
  next = StoreFault::lost_request;
  EXPECT_EQ(run(store->create("/a", "")).error(), make_error_code(MetadataErrc::outcome_unknown));
  EXPECT_FALSE(state_->nodes.contains("/a"));
  next = StoreFault::lost_answer;
  EXPECT_EQ(run(store->create("/a", "")).error(), make_error_code(MetadataErrc::outcome_unknown));
  EXPECT_TRUE(state_->nodes.contains("/a"));
  EXPECT_EQ(run(store->get("/a")).error(), make_error_code(MetadataErrc::unavailable));
}

TEST_F(MemoryStoreTest, LatencyIsTheRuntimesTime) {
  const auto store = open({.latency_max = std::chrono::milliseconds(50)});
  const auto before = runtime_.now();
  EXPECT_TRUE(run(store->create("/a", "")));
  EXPECT_LE(runtime_.now() - before, std::chrono::milliseconds(100));
  EXPECT_GT(runtime_.now(), before);
}

TEST_F(MemoryStoreTest, NextProcessEndsTheSessionOfTheOneBefore) {
  const auto first = open();
  EXPECT_TRUE(run(first->create("/e", "", CreateMode::ephemeral)));
  const auto second = open();
  EXPECT_FALSE(state_->nodes.contains("/e"));
  EXPECT_FALSE(first->online());
  EXPECT_EQ(run(first->create("/b", "")).error(), make_error_code(MetadataErrc::session_lost));
  EXPECT_TRUE(second->online());
}

TEST_F(MemoryStoreTest, SeveralProcessesKeepTheirOwnSessions) {
  const auto first = open({.single_process = false});
  const auto second = open({.single_process = false});
  EXPECT_TRUE(run(first->create("/1", "", CreateMode::ephemeral)));
  EXPECT_TRUE(run(second->create("/2", "", CreateMode::ephemeral)));
  expire_session(*state_, first->session());
  EXPECT_FALSE(state_->nodes.contains("/1"));
  EXPECT_TRUE(state_->nodes.contains("/2"));
  EXPECT_TRUE(second->online());
}

TEST_F(MemoryStoreTest, WatchesFireForChangesOfOthersAndForTheEndOfTheirSessions) {
  const auto first = open({.single_process = false});
  const auto second = open({.single_process = false});
  int fired = 0;
  ASSERT_TRUE(run(first->watch("/e", WatchKind::data, [&] { ++fired; })));
  ASSERT_TRUE(run(second->create("/e", "", CreateMode::ephemeral)));
  simulator_.run_for(std::chrono::seconds(1));
  EXPECT_EQ(fired, 1);
  ASSERT_TRUE(run(first->watch("/", WatchKind::children, [&] { ++fired; })));
  expire_session(*state_, second->session());
  simulator_.run_for(std::chrono::seconds(1));
  EXPECT_EQ(fired, 2);
}

TEST_F(MemoryStoreTest, AProcessThatIsCutOffHearsNothingUntilItIsBack) {
  const auto first = open({.single_process = false});
  const auto second = open({.single_process = false});
  int fired = 0;
  int lost = 0;
  first->on_session_lost([&] { ++lost; });
  ASSERT_TRUE(run(first->watch("/a", WatchKind::data, [&] { ++fired; })));
  cut_off(*state_, first->session());
  ASSERT_TRUE(run(second->create("/a", "")));
  EXPECT_EQ(run(first->get("/a")).error(), make_error_code(MetadataErrc::unavailable));
  simulator_.run_for(std::chrono::seconds(1));
  EXPECT_EQ(fired, 0);
  reconnect(*state_, first->session());
  simulator_.run_for(std::chrono::seconds(1));
  EXPECT_EQ(fired, 1);
  cut_off(*state_, first->session());
  expire_session(*state_, first->session());
  simulator_.run_for(std::chrono::seconds(1));
  EXPECT_EQ(lost, 0);
  EXPECT_TRUE(first->online());
  reconnect(*state_, first->session());
  simulator_.run_for(std::chrono::seconds(1));
  EXPECT_EQ(lost, 1);
  EXPECT_FALSE(first->online());
}

}  // namespace
}  // namespace mq::metadata
