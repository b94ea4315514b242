// A process that is known to be dead is not waited for until its session ends (CTL-9).
#include "base/mutants.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using model::BrokerId;

class ClusterDeaths : public mq::testing::Cluster {
 protected:
  ClusterDeaths() { looks_for_the_dead_ = true; }

  void start_with_topic() {
    start(3);
    ASSERT_TRUE(create_replicated("orders", 6, 3).status.ok());
    wait_until_settled();
  }
  static std::string host(int id) { return "broker-" + std::to_string(id); }
  int other_than_controller() { return controlling()->id == 1 ? 2 : 1; }
  /// As its kernel does it: connections end, and nobody listens any more.
  void die(int id) {
    auto& dead = broker(id);
    const bool leads = controlling() == &dead;
    const auto epoch = dead.member.epoch();
    network_.refusing.insert(host(id));
    dead.kill();
    if (!leads) return controlling()->candidate.controller()->lost_connection(BrokerId(id), epoch);
    for (const auto& other : brokers_) {
      if (other->reachable()) other->candidate.lost_controller();
    }
  }
  bool leads_nothing(int id) {
    if (controlling() == nullptr) return false;
    const auto found = controlling()->candidate.controller()->image()->find_topic("orders");
    return found && std::ranges::all_of(found->partitions, [&](const auto& one) {
             return one.leader != BrokerId() && one.leader.value() != id;
           });
  }
  bool registered(int id) const {
    return state_->nodes.contains(layout::broker_live(BrokerId(id)));
  }
};

TEST_F(ClusterDeaths, WhatADeadProcessLedIsLedElsewhereBeforeItsSessionEnds) {
  start_with_topic();
  const int id = other_than_controller();
  const auto began = runtime_.now();
  die(id);
  ASSERT_TRUE(wait_until([&] { return leads_nothing(id); }));
  EXPECT_LT(runtime_.now() - began, std::chrono::milliseconds(500));
  EXPECT_FALSE(registered(id));

  // Its next process need not wait for the end of that session.
  network_.refusing.clear();
  const auto restarted = runtime_.now();
  ASSERT_EQ(add(id).start(), base::Error());
  EXPECT_LT(runtime_.now() - restarted, std::chrono::seconds(1));
  wait_until_settled();
}

// The kernel closes what a killed process had one after the other.
TEST_F(ClusterDeaths, TheSocketOnWhichAProcessListensMayOutliveItsConnections) {
  start_with_topic();
  const int id = other_than_controller();
  const auto epoch = broker(id).member.epoch();
  const auto began = runtime_.now();
  broker(id).kill();
  controlling()->candidate.controller()->lost_connection(BrokerId(id), epoch);
  simulator_.run_for(std::chrono::milliseconds(150));
  EXPECT_TRUE(registered(id));
  network_.refusing.insert(host(id));
  ASSERT_TRUE(wait_until([&] { return leads_nothing(id); }));
  EXPECT_LT(runtime_.now() - began, std::chrono::seconds(1));

  const int controller = controlling()->id;
  const auto again = runtime_.now();
  broker(controller).kill();
  for (const auto& other : brokers_) {
    if (other->reachable()) other->candidate.lost_controller();
  }
  simulator_.run_for(std::chrono::milliseconds(150));
  network_.refusing.insert(host(controller));
  ASSERT_TRUE(wait_until([&] { return controlling() != nullptr; }));
  EXPECT_LT(runtime_.now() - again, std::chrono::seconds(1));
}

TEST_F(ClusterDeaths, AHostThatDoesNotAnswerProvesNothing) {
  start_with_topic();
  const int id = other_than_controller();
  network_.silent.insert(host(id));
  const auto began = runtime_.now();
  die(id);
  ASSERT_TRUE(wait_until([&] { return leads_nothing(id); }));
  EXPECT_GT(runtime_.now() - began, kSessionTime - std::chrono::seconds(1));
}

TEST_F(ClusterDeaths, AProcessThatListensIsNotTakenForDead) {
  start_with_topic();
  const int id = other_than_controller();
  const auto epoch = broker(id).member.epoch();
  controlling()->candidate.controller()->lost_connection(BrokerId(id), epoch);
  simulator_.run_for(std::chrono::seconds(3));
  EXPECT_EQ(network_.connects > 0, true);
  EXPECT_EQ(broker(id).member.epoch(), epoch);
}

// A firewall that refuses: the other way is open, and the broker goes on asking.
TEST_F(ClusterDeaths, AProcessThatAsksForImagesIsNotTakenForDead) {
  start_with_topic();
  const int id = other_than_controller();
  const auto epoch = broker(id).member.epoch();
  network_.refusing.insert(host(id));
  for (int i = 0; i < 20; ++i) {
    controlling()->candidate.controller()->lost_connection(BrokerId(id), epoch);
    // As a broker does that has lost its connection.
    protocol::PullImageRequest request;
    request.broker = id;
    request.broker_epoch = epoch.value();
    (void)run(
        controlling()->candidate.controller()->pull(request, in(std::chrono::milliseconds(200))));
  }
  EXPECT_EQ(broker(id).member.epoch(), epoch);
  EXPECT_TRUE(registered(id));
}

// Refused both ways, and alive: it is told through the store, and never mistaken again.
TEST_F(ClusterDeaths, WhoIsTakenForDeadAndLivesLosesItsLeaseAtOnceAndComesBack) {
  start_with_topic();
  const int id = other_than_controller();
  auto& mistaken = broker(id);
  const auto epoch = mistaken.member.epoch();
  mistaken.pulling = false;
  simulator_.run_for(std::chrono::seconds(3));  // its last pull has ended
  network_.refusing.insert(host(id));
  ASSERT_TRUE(mistaken.member.has_lease(runtime_.now()));
  controlling()->candidate.controller()->lost_connection(BrokerId(id), epoch);
  ASSERT_TRUE(wait_until([&] { return !registered(id); }, std::chrono::seconds(1)));
  const auto ended = runtime_.now();
  ASSERT_TRUE(wait_until([&] {
    return !mistaken.member.has_lease(runtime_.now()) || mistaken.member.epoch() != epoch;
  }));
  EXPECT_LT(runtime_.now() - ended, std::chrono::milliseconds(100));
  ASSERT_TRUE(wait_until([&] { return mistaken.member.epoch() > epoch && registered(id); }));

  const auto next = mistaken.member.epoch();
  simulator_.run_for(std::chrono::seconds(1));
  controlling()->candidate.controller()->lost_connection(BrokerId(id), next);
  simulator_.run_for(std::chrono::seconds(3));
  EXPECT_EQ(mistaken.member.epoch(), next);
  {
    const base::EnabledMutant mutant("mistaken_again");
    controlling()->candidate.controller()->lost_connection(BrokerId(id), next);
    EXPECT_TRUE(wait_until([&] { return mistaken.member.epoch() > next && registered(id); }));
  }
  mistaken.pulling = true;
  wait_until_settled();
}

TEST_F(ClusterDeaths, ADeadControllerIsFollowedAndWhatItLedIsLedElsewhere) {
  start_with_topic();
  const int id = controlling()->id;
  const auto began = runtime_.now();
  die(id);
  ASSERT_TRUE(wait_until([&] { return controlling() != nullptr; }));
  EXPECT_LT(runtime_.now() - began, std::chrono::milliseconds(500));
  ASSERT_TRUE(wait_until([&] { return leads_nothing(id); }));
  EXPECT_LT(runtime_.now() - began, std::chrono::seconds(1));
  wait_until_settled();
}

TEST_F(ClusterDeaths, AControllerThatIsMistakenForDeadCostsAnElectionAndNothingElse) {
  start_with_topic();
  const auto path = std::string(layout::kControllerEpoch);
  const auto before = state_->nodes.at(path).version;
  const int id = controlling()->id;
  network_.refusing.insert(host(id));
  for (const auto& other : brokers_) {
    if (other->id != id) other->candidate.lost_controller();
  }
  ASSERT_TRUE(wait_until([&] { return state_->nodes.at(path).version > before; }));
  network_.refusing.clear();
  simulator_.run_for(std::chrono::seconds(5));
  EXPECT_LE(state_->nodes.at(path).version, before + 2);
  wait_until_settled();
}

}  // namespace
}  // namespace mq::controller
