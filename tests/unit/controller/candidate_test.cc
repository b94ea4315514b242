// Of all brokers one is the controller, and only it changes anything (CTL-1).
#include "controller/candidate.h"

#include "base/mutants.h"
#include "controller/error.h"
#include "controller/fenced_writer.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::MetadataErrc;
using metadata::StoreFault;
using protocol::WireError;

class CandidateTest : public mq::testing::Cluster {
 protected:
  std::int32_t epoch() const {
    return state_->nodes.at(std::string(layout::kControllerEpoch)).version;
  }
  std::size_t controllers() const {
    std::size_t count = 0;
    for (const auto& broker : brokers_) count += broker->candidate.controller() != nullptr ? 1 : 0;
    return count;
  }
  /// Everybody knows who leads.
  bool agreed() {
    auto* const leader = controlling();
    if (leader == nullptr) return false;
    for (const auto& broker : brokers_) {
      if (!broker->reachable()) continue;
      const auto& known = broker->candidate.leader();
      if (!known || known->broker.value() != leader->id) return false;
    }
    return true;
  }
};

TEST_F(CandidateTest, ExactlyOneOfThreeIsElectedAndAllKnowIt) {
  start(3);
  ASSERT_TRUE(wait_until([this] { return agreed(); }));
  EXPECT_EQ(controllers(), 1u);
  EXPECT_EQ(epoch(), controlling()->candidate.controller()->controller_epoch());
  EXPECT_EQ(broker(3).candidate.leader()->advertised.text(),
            "broker-" + std::to_string(controlling()->id) + ":9500");
}

TEST_F(CandidateTest, ACleanLeaveHandsOverAtOnce) {
  start(3);
  const auto before = epoch();
  auto* const first = controlling();
  const auto began = runtime_.now();
  first->stop();
  ASSERT_TRUE(wait_until([&] { return controlling() != nullptr && controlling() != first; }));
  EXPECT_LT(runtime_.now() - began, std::chrono::seconds(1));
  EXPECT_GT(epoch(), before);
}

// CTL-6
TEST_F(CandidateTest, AControllerThatDiesIsFollowedWithinASecondAfterItsSession) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  auto* const first = controlling();
  const auto version = first->candidate.controller()->image()->version();
  const auto began = runtime_.now();
  first->kill();
  ASSERT_TRUE(wait_until([&] { return controlling() != nullptr; }));
  EXPECT_LT(runtime_.now() - began, kSessionTime + std::chrono::seconds(1));
  EXPECT_GT(controlling()->candidate.controller()->image()->version(), version);
  EXPECT_NE(topic("orders"), nullptr);
  ASSERT_TRUE(wait_until([this] { return agreed(); }));
}

// CTL-3
TEST_F(CandidateTest, WhatIsRebuiltFromTheStoreIsWhatThereWas) {
  start(3);
  ASSERT_TRUE(create("orders", 6).status.ok());
  ASSERT_TRUE(create("billing", 2).status.ok());
  wait_until_settled();
  const auto before = controlling()->candidate.controller()->image();
  metadata::expire_session(*state_, controlling()->store->session());
  ASSERT_TRUE(wait_until([&] {
    return controlling() != nullptr &&
           controlling()->candidate.controller()->image()->version() > before->version();
  }));
  wait_until_settled();
  const auto after = controlling()->candidate.controller()->image();
  ASSERT_EQ(after->topics().size(), before->topics().size());
  for (const auto& [name, topic] : before->topics()) {
    const auto again = after->find_topic(name);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(again->id, topic->id);
    ASSERT_EQ(again->partitions.size(), topic->partitions.size());
    for (const auto& partition : topic->partitions)
      EXPECT_EQ(again->find(partition.id.partition)->replicas, partition.replicas);
  }
}

TEST_F(CandidateTest, ALostSessionEndsTheOfficeAtOnce) {
  start(2);
  auto* const first = controlling();
  auto* const controller = first->candidate.controller();
  const auto told = std::make_shared<std::vector<bool>>();
  first->candidate.on_controller([told](Controller* one) { told->push_back(one != nullptr); });
  metadata::expire_session(*state_, first->store->session());
  wait_until([&] { return controller->resigned(); }, std::chrono::milliseconds(100));
  EXPECT_TRUE(controller->resigned());
  ASSERT_TRUE(wait_until([&] { return !told->empty(); }, std::chrono::seconds(1)));
  EXPECT_FALSE(told->front());
  ASSERT_TRUE(wait_until([this] { return agreed(); }));
  EXPECT_EQ(controllers(), 1u);
}

// CTL-1: its session was ended while it could not reach the store, and it does not know.
TEST_F(CandidateTest, ADeposedControllerThatComesBackChangesNothing) {
  start(2);
  ASSERT_TRUE(create("orders", 4).status.ok());
  auto* const zombie = controlling();
  auto* const controller = zombie->candidate.controller();
  zombie->cut_off();
  simulator_.run_for(kSessionTime);
  metadata::expire_session(*state_, zombie->store->session());
  ASSERT_TRUE(wait_until([&] { return controlling() != nullptr; }));
  ASSERT_EQ(zombie->candidate.controller(), controller) << "it believes that it leads";
  auto before = state_->nodes;
  zombie->reconnect();
  protocol::NewTopic topic;
  topic.name = "late";
  topic.partitions = 1;
  const auto refused =
      run(controller->create_topic(topic, false, in(std::chrono::milliseconds(1))));
  EXPECT_FALSE(refused.status.ok());
  EXPECT_TRUE(paths("/topics/late").empty());
  EXPECT_TRUE(wait_until([this] { return controllers() == 1 && agreed(); }));
  EXPECT_TRUE(paths("/topics/late").empty());
}

/// A write of a controller that was deposed, sent in a session that lives. Whether it took effect.
class LateWrite : public CandidateTest {
 protected:
  bool takes_effect() {
    start(2);
    const auto old_epoch = epoch();
    metadata::expire_session(*state_, controlling()->store->session());
    wait_until([&] { return controlling() != nullptr && epoch() > old_epoch; });
    int deposed = 0;
    FencedWriter writer(*broker(1).store, runtime_, old_epoch, [&] { ++deposed; });
    const auto tag = writer.next_tag();
    std::vector<metadata::Operation> operations;
    operations.emplace_back(metadata::Create(
        "/topics/late", metadata::encode(metadata::TopicValue{tag, base::Uuid(), "late", {}, {}})));
    wait_until([&] { return broker(1).store->online(); });
    const auto done = run(writer.commit(std::move(operations), "/topics/late", tag));
    if (!done) {
      EXPECT_EQ(done.error(), make_error_code(ControllerErrc::not_controller));
      EXPECT_EQ(deposed, 1);
      EXPECT_TRUE(writer.resigned());
    }
    return state_->nodes.contains("/topics/late");
  }
};

// CTL-1
TEST_F(LateWrite, IsRefused) { EXPECT_FALSE(takes_effect()); }

TEST_F(LateWrite, WouldTakeEffectWithoutTheFence) {
  const base::EnabledMutant mutant("controller_writes_unfenced");
  EXPECT_TRUE(takes_effect());
}

/// A broker that could not be reached while the controller changed.
class MissedElection : public CandidateTest {
 protected:
  bool is_noticed() {
    start(3);
    wait_until([this] { return agreed(); });
    auto* const first = controlling();
    auto& away = broker(first->id == 3 ? 2 : 3);
    away.cut_off();
    simulator_.run_for(std::chrono::seconds(1));
    first->stop();
    wait_until([&] { return controlling() != nullptr; });
    simulator_.run_for(std::chrono::seconds(1));
    away.reconnect();  // its session lived on, and its watch saw nothing
    return wait_until(
        [&] {
          return away.candidate.leader() &&
                 away.candidate.leader()->broker.value() == controlling()->id;
        },
        std::chrono::seconds(10));
  }
};

TEST_F(MissedElection, IsFoundOutOnReconnect) { EXPECT_TRUE(is_noticed()); }

// A watch is a hint, and one that fires for nothing is all that a broker may hear of a change.
TEST_F(MissedElection, WouldNotBeFoundOutWithoutReadingAgain) {
  const base::EnabledMutant mutant("no_reread_on_connect");
  EXPECT_FALSE(is_noticed());
}

/// Every store call of an election fails in one way, one after the other.
TEST_F(CandidateTest, AnElectionWithLostAnswersEndsWithOneController) {
  for (const auto fault :
       {StoreFault::lost_answer, StoreFault::lost_request, StoreFault::unavailable}) {
    for (int at = 1; at <= 8; ++at) {
      auto& one = add(10 + at);
      int calls = 0;
      ASSERT_EQ(one.start(), Error());
      state_->fault = [&, fault](bool) { return ++calls == at ? fault : StoreFault::none; };
      ASSERT_TRUE(wait_until([&] { return one.candidate.controller() != nullptr; }))
          << at << " " << static_cast<int>(fault);
      state_->fault = nullptr;
      const auto& leader = state_->nodes.at(std::string(layout::kControllerLeader));
      EXPECT_EQ(leader.ephemeral_owner, one.store->session());
      EXPECT_EQ(epoch(), one.candidate.controller()->controller_epoch());
      ASSERT_TRUE(create("after", 1).status.ok());
      ASSERT_TRUE(remove("after").status.ok());
      one.stop();
    }
  }
}

TEST_F(CandidateTest, SomebodyWhoRemovesTheNodeStartsAnElection) {
  start(2);
  const auto before = epoch();
  state_->nodes.erase(std::string(layout::kControllerLeader));
  for (const auto& [session, peer] : state_->peers)
    peer.changed({metadata::Remove(std::string(layout::kControllerLeader), -1)});
  ASSERT_TRUE(wait_until([&] { return epoch() > before && agreed(); }));
  EXPECT_EQ(controllers(), 1u);
  EXPECT_TRUE(create("orders", 2).status.ok());
}

/// The store has forgotten how many elections there were.
class LostEpoch : public CandidateTest {
 protected:
  LostEpoch() {
    start(3);
    for (int elections = 0; elections < 4; ++elections) elect_anew();
    EXPECT_GE(epoch(), 4);
  }
  void elect_anew() {
    const auto before = controlling()->candidate.controller()->controller_epoch();
    metadata::expire_session(*state_, controlling()->store->session());
    EXPECT_TRUE(wait_until([&] {
      return controlling() != nullptr &&
             controlling()->candidate.controller()->controller_epoch() != before && agreed();
    }));
  }
};

// CTL-1: no broker takes an image of an earlier epoch.
TEST_F(LostEpoch, IsRaisedAboveTheImagesThatBrokersHave) {
  ASSERT_TRUE(create("orders", 6).status.ok());
  wait_until_settled();
  const auto shown = controlling()->candidate.controller()->image()->version();
  state_->nodes.erase(std::string(layout::kControllerEpoch));
  metadata::expire_session(*state_, controlling()->store->session());
  ASSERT_TRUE(wait_until([&] {
    return controlling() != nullptr && agreed() &&
           controlling()->candidate.controller()->image()->version() > shown;
  }));
  wait_until_settled();
  EXPECT_EQ(epoch(), controlling()->candidate.controller()->controller_epoch());
  EXPECT_TRUE(create("billing", 2).status.ok());
}

TEST_F(LostEpoch, IsRaisedByABrokerThatKnowsItAlready) {
  const auto before = epoch();
  for (const auto& one : brokers_) {
    one->candidate.on_known_epoch([before] { return before; });
    one->pulling = false;
  }
  auto* const old = controlling()->candidate.controller();
  state_->nodes.at(std::string(layout::kControllerEpoch)).version = 1;
  metadata::expire_session(*state_, controlling()->store->session());
  ASSERT_TRUE(wait_until([&] {
    return controlling() != nullptr && controlling()->candidate.controller() != old && agreed();
  }));
  EXPECT_EQ(epoch(), before + 1) << "in one election";
}

/// What every controller has to read is not there.
class Unloadable : public CandidateTest {
 protected:
  void damage() {
    start(3);
    folder_ = state_->nodes.extract(std::string(layout::kTopics));
    remove_leader();
  }
  void mend() { state_->nodes.insert(std::move(folder_)); }
  void remove_leader() {
    state_->nodes.erase(std::string(layout::kControllerLeader));
    for (const auto& [session, peer] : state_->peers)
      peer.changed({metadata::Remove(std::string(layout::kControllerLeader), -1)});
  }
  std::map<std::string, metadata::Node>::node_type folder_;
};

TEST_F(Unloadable, MetadataLeadsToFewElections) {
  damage();
  simulator_.run_for(std::chrono::minutes(1));
  const auto before = epoch();
  simulator_.run_for(std::chrono::minutes(2));
  EXPECT_EQ(controlling(), nullptr);
  // One broker every ten seconds each, although every election wakes all of them.
  EXPECT_LE(epoch() - before, 40);
  EXPECT_GE(epoch() - before, 20);
  for (const auto& broker : brokers_) {
    EXPECT_NE(broker->candidate.trouble().find("cannot load the metadata"), std::string::npos)
        << broker->candidate.trouble();
  }
}

TEST_F(Unloadable, MetadataThatIsMendedLeavesNoTrouble) {
  damage();
  simulator_.run_for(std::chrono::minutes(1));
  mend();
  ASSERT_TRUE(wait_until([this] { return agreed(); }, std::chrono::seconds(11)));
  EXPECT_TRUE(wait_until(
      [this] {
        return std::ranges::all_of(
            brokers_, [](const auto& broker) { return broker->candidate.trouble().empty(); });
      },
      std::chrono::seconds(3)));
  EXPECT_TRUE(create("orders", 2).status.ok());
}

}  // namespace
}  // namespace mq::controller
