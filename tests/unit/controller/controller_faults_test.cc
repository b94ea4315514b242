// MET-2 under failures: at every write of the metadata store the process dies or the store fails,
// and afterwards every topic is there or not, never half, and what was answered is true.
#include "unit/controller/controller_fixture.h"

namespace mq::controller {
namespace {

using metadata::StoreFault;
using protocol::TopicResult;

/// What the callers have been told about one name.
struct Expected {
  bool may_exist = false;
  bool may_be_missing = true;
};

class ControllerFaults : public mq::testing::ControllerFixture {
 protected:
  void told_of_create(const std::string& name, const TopicResult& result) {
    if (result.status.ok())
      expected_[name] = {true, false};
    else if (result.status.advice.maybe_applied)
      expected_[name].may_exist = true;
  }
  void told_of_delete(const std::string& name, const TopicResult& result) {
    if (result.status.ok())
      expected_[name] = {false, true};
    else if (result.status.advice.maybe_applied)
      expected_[name].may_be_missing = true;
  }
  /// Creates, deletes and creates again; whatever fails is remembered.
  void scenario() {
    told_of_create("orders", create("orders", 3));
    told_of_create("billing", create("billing", 1));
    told_of_delete("orders", remove("orders"));
    told_of_create("orders", create("orders", 2));
    told_of_delete("billing", remove("billing"));
  }
  void expect_as_told(const std::string& where) {
    for (const auto& [name, told] : expected_) {
      const bool exists = controller().image()->find_topic(name) != nullptr;
      EXPECT_TRUE(exists ? told.may_exist : told.may_be_missing)
          << name << (exists ? " exists " : " is missing ") << where;
    }
  }
  /// From the `first`-th write on, once or for ever, the store behaves so.
  void fail_at(int first, StoreFault fault, bool once) {
    state_->fault = [this, first, fault, once](bool write) {
      if (write) ++writes_;
      const bool hit = once ? write && writes_ == first : writes_ >= first;
      return hit ? fault : StoreFault::none;
    };
  }
  int writes_of_scenario() {
    fail_at(1'000'000, StoreFault::none, true);
    EXPECT_FALSE(start());
    writes_ = 0;
    scenario();
    return writes_;
  }
  void fresh() {
    state_->fault = nullptr;
    stop();
    *state_ = metadata::MemoryStoreState();
    disk_ = mq::testing::FakeDisk();
    expected_.clear();
    writes_ = 0;
  }

  std::map<std::string, Expected> expected_;
  int writes_ = 0;
};

TEST_F(ControllerFaults, ProcessThatDiesBeforeAnyWriteLeavesTopicsDoneOrNotDone) {
  const int writes = writes_of_scenario();
  ASSERT_GT(writes, 10);
  for (int at = 1; at <= writes; ++at) {
    fresh();
    ASSERT_FALSE(start());
    fail_at(at, StoreFault::unavailable, false);
    scenario();
    stop();
    state_->fault = nullptr;
    ASSERT_FALSE(start()) << at;
    expect_consistent();
    expect_as_told("after dying before write " + std::to_string(at));
  }
}

TEST_F(ControllerFaults, ProcessThatDiesAfterAnyWriteLeavesTopicsDoneOrNotDone) {
  const int writes = writes_of_scenario();
  for (int at = 1; at <= writes; ++at) {
    fresh();
    ASSERT_FALSE(start());
    // The answer of that write is lost, and nothing is answered from then on.
    state_->fault = [this, at](bool write) {
      if (write) ++writes_;
      if (write && writes_ == at) return StoreFault::lost_answer;
      return writes_ >= at ? StoreFault::unavailable : StoreFault::none;
    };
    scenario();
    stop();
    state_->fault = nullptr;
    ASSERT_FALSE(start()) << at;
    expect_consistent();
    expect_as_told("after dying behind write " + std::to_string(at));
  }
}

TEST_F(ControllerFaults, StoreThatFailsOnceIsWorkedAround) {
  for (const auto fault :
       {StoreFault::unavailable, StoreFault::lost_request, StoreFault::lost_answer}) {
    fresh();
    const int writes = writes_of_scenario();
    for (int at = 1; at <= writes + 2; ++at) {
      fresh();
      ASSERT_FALSE(start());
      fail_at(at, fault, true);
      scenario();
      simulator_.run_for(std::chrono::minutes(5));
      expect_consistent();
      expect_as_told("after a failure of write " + std::to_string(at));
      const auto image = controller().image();
      state_->fault = nullptr;
      ASSERT_FALSE(start());
      EXPECT_EQ(controller().image()->topics().size(), image->topics().size());
      expect_consistent();
    }
  }
}

TEST_F(ControllerFaults, StoreThatIsAwayForAWhileIsWorkedAround) {
  const int writes = writes_of_scenario();
  for (int at = 1; at <= writes; ++at) {
    fresh();
    ASSERT_FALSE(start());
    const auto back = runtime_.now() + std::chrono::seconds(30);
    state_->fault = [this, at, back](bool write) {
      if (write) ++writes_;
      if (writes_ < at || runtime_.now() >= back) return StoreFault::none;
      return write && writes_ == at ? StoreFault::lost_answer : StoreFault::unavailable;
    };
    scenario();
    simulator_.run_for(std::chrono::minutes(5));
    expect_consistent();
    expect_as_told("after an outage from write " + std::to_string(at));
  }
}

TEST_F(ControllerFaults, StopDuringACreateLeavesTheCleaningToTheNextStart) {
  ASSERT_FALSE(start());
  disk_.open_error = make_error_code(base::BaseErrc::closed);
  disk_.delete_error = make_error_code(base::BaseErrc::io_failed);
  disk_.on_open = [this] { runtime_.spawn("stop", controller().stop()); };
  EXPECT_FALSE(create("orders", 3).status.ok());
  EXPECT_EQ(disk_.deletes, 0);
  stop();
  disk_ = mq::testing::FakeDisk();
  ASSERT_FALSE(start());
  EXPECT_EQ(topic("orders"), nullptr);
  expect_consistent();
  EXPECT_TRUE(create("orders", 3).status.ok());
}

TEST_F(ControllerFaults, CrashDuringStartNeverReusesALeaderEpoch) {
  ASSERT_FALSE(start());
  ASSERT_TRUE(create("orders", 5).status.ok());
  std::int32_t newest = 0;
  for (const auto fault :
       {StoreFault::unavailable, StoreFault::lost_request, StoreFault::lost_answer}) {
    stop();
    writes_ = 0;
    fail_at(1, fault, false);
    EXPECT_TRUE(start());
    stop();
    state_->fault = nullptr;
    ASSERT_FALSE(start());
    const auto epoch = topic("orders")->partitions[4].leader_epoch.value();
    EXPECT_GT(epoch, newest);
    newest = epoch;
    expect_consistent();
  }
}

}  // namespace
}  // namespace mq::controller
