// What the images want of a partition that several brokers keep, played to one broker.
#include "broker/replica_keeper.h"

#include <gtest/gtest.h>

#include "base/run_on.h"
#include "broker/membership.h"
#include "data_client.h"
#include "protocol/control_partitions.h"
#include "protocol/describe_broker.h"
#include "protocol/trim_partitions.h"
#include "started_broker.h"

namespace mq::broker {
namespace {

using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using model::LeaderEpoch;
using model::Offset;
using model::PartitionId;
using protocol::WireError;
using std::chrono::milliseconds;

constexpr BrokerId kOther{2};

struct ReplicaKeeperTest : testing::StartedBroker {
  void SetUp() override {
    StartedBroker::SetUp();
    id = PartitionId{world.create_topic("orders"), 0};
  }

  const Core& core() const { return world.broker->core(); }
  Worker& worker() const { return core().worker_of(id); }
  replication::Partition* led() const { return worker().partitions().find(id); }
  replication::FollowedPartition* followed() const {
    return worker().partitions().find_followed(id);
  }
  LeaderEpoch log_epoch() const { return core().disks->find(id)->leader_epoch(); }

  /// The next image: `leader` leads, in `epoch`.
  void show(BrokerId leader, LeaderEpoch epoch, int version = 1, bool in_isr = true,
            const std::function<void(metadata::PartitionAssignment&)>& adjust = {}) {
    const auto image = core().image();
    metadata::ImageChange change;
    change.brokers = image->brokers();
    if (!image->find_broker(kOther))
      change.brokers->push_back({kOther, BrokerEpoch(77), {"other", 9500}, true});
    auto topic = std::make_shared<metadata::TopicInfo>(*image->find_topic(id.topic));
    auto& partition = topic->partitions.front();
    partition.leader = leader;
    partition.leader_epoch = epoch;
    partition.version = model::PartitionVersion(epoch.value() * 100 + version);
    partition.replicas = {core().id, kOther};
    partition.isr = {{kOther, BrokerEpoch(77)}};
    if (in_isr) partition.isr.push_back({core().id, core().membership->epoch()});
    partition.min_isr = 1;
    if (adjust) adjust(partition);
    change.topics = {topic};
    core().membership->view().publish(std::make_shared<metadata::ClusterImage>(
        image->with(std::move(change), image->version() + 1)));
    world.run_for(milliseconds(20));
  }
  /// The first batch of its log cannot be read any more, and somebody has seen that.
  void damage_the_log() {
    for (const auto& path : world.disk.files_below("/data")) {
      if (path.find(id.text()) == std::string::npos || !path.ends_with(".log")) continue;
      world.disk.flip(path, 100, std::byte{1});
    }
    auto* const log = core().disks->find(id);
    const auto read = testing::run(
        world.simulator,
        base::run_on(worker().runtime(), log->read_from_disk(Offset(0), Offset(3), 1000)));
    EXPECT_FALSE(read);
  }
  /// A start finds less of its log than there was.
  void lose_its_end() {
    ASSERT_TRUE(world.stop());
    for (const auto& path : world.disk.files_below("/data")) {
      if (path.find(id.text()) == std::string::npos || !path.ends_with(".log")) continue;
      world.disk.truncate_file(path, world.disk.content(path).size() - 1);
    }
    ASSERT_TRUE(world.start());
    EXPECT_EQ(core().disks->find(id)->failure(),
              make_error_code(storage::StorageErrc::partition_corrupt));
  }
  void produce_three_records() {
    id = PartitionId{world.create_topic("payments", 1, "disk"), 0};
    auto one = client();
    ASSERT_TRUE(testing::produce(one, {{id, 0, testing::make_batch(3)}})[0].status.ok());
  }

  /// In files alone: what is read is not in memory.
  void store_three_records() {
    produce_three_records();
    ASSERT_TRUE(world.stop());
    ASSERT_TRUE(world.start());
  }

  /// What health says of logs that cannot be made, or made anew.
  std::string failing(testing::RawClient& one) {
    protocol::DescribeBrokerRequest ask;
    const auto answer = one.call(protocol::ApiKey::describe_broker, protocol::encode(ask));
    const auto described = protocol::decode_describe_broker_response(answer.header_bytes());
    std::string text;
    for (const auto& alert : described->alerts) {
      if (alert.check == "replication" && alert.level == 3) text += alert.text;
    }
    return text;
  }

  /// What a consumer is told that wants the first record.
  protocol::Status read_first(testing::RawClient& one) {
    protocol::FetchRequest ask;
    ask.wait_ms = 100;
    ask.bytes_max = 1 << 20;
    ask.entries = {testing::from(id, 0)};
    const auto answer = one.call(protocol::ApiKey::fetch, protocol::encode(ask));
    return protocol::decode_fetch_response(answer.header_bytes())->results.at(0).status;
  }

  PartitionId id;
};

INSTANTIATE_TEST_SUITE_P(Workers, ReplicaKeeperTest, ::testing::Values(1, 2));

TEST_P(ReplicaKeeperTest, APartitionThatAnotherBrokerLeadsIsFollowed) {
  show(kOther, LeaderEpoch(100));
  EXPECT_EQ(led(), nullptr);
  ASSERT_NE(followed(), nullptr);
  EXPECT_EQ(followed()->following(), (replication::Following{kOther, LeaderEpoch(100)}));
}

TEST_P(ReplicaKeeperTest, ClientsOfAFollowerAreToldWhoLeads) {
  show(kOther, LeaderEpoch(100));
  auto one = client();
  const auto produced = testing::produce(one, {{id, 0}});
  EXPECT_EQ(produced[0].status.error(), WireError::not_leader);
  EXPECT_EQ(produced[0].status.text, "orders-0 is led by broker 2 in epoch 100");
  const auto fetched = testing::fetch(one, {{testing::from(id, 0)}});
  EXPECT_EQ(fetched.results[0].status.error(), WireError::not_leader);
  protocol::ListOffsetsRequest request;
  request.entries.push_back({id, protocol::OffsetPoint::latest, 0});
  const auto answer = one.call(protocol::ApiKey::list_offsets, protocol::encode(request));
  const auto offsets = protocol::decode_list_offsets_response(answer.header_bytes());
  EXPECT_EQ(offsets->results[0].status.error(), WireError::not_leader);
}

TEST_P(ReplicaKeeperTest, WhoWaitsAtALeaderThatBecomesAFollowerIsToldSo) {
  auto consumer = client();
  testing::send_fetch(consumer, {{testing::from(id, 0)}, 30'000});
  world.run_for(milliseconds(20));
  show(kOther, LeaderEpoch(100));
  const auto fetched = testing::receive_fetch(consumer, std::chrono::seconds(1));
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->results[0].status.error(), WireError::not_leader);
}

// REP-3
TEST_P(ReplicaKeeperTest, AFollowerThatIsElectedLeadsItsOwnLogInANewEpoch) {
  auto one = client();
  ASSERT_TRUE(testing::produce(one, {{id, 0, testing::make_batch(3)}})[0].status.ok());
  show(kOther, LeaderEpoch(100));
  show(core().id, LeaderEpoch(101));
  EXPECT_EQ(followed(), nullptr);
  ASSERT_NE(led(), nullptr);
  EXPECT_EQ(led()->leader_epoch(), LeaderEpoch(101));
  EXPECT_EQ(led()->log_end_offset(), Offset(3));
  EXPECT_TRUE(led()->replicated());
  EXPECT_EQ(log_epoch(), LeaderEpoch(101));
}

TEST_P(ReplicaKeeperTest, ANewEpochOfTheSameLeaderIsFollowedAnew) {
  show(kOther, LeaderEpoch(100));
  const auto* const before = followed();
  show(kOther, LeaderEpoch(100), 2);
  EXPECT_EQ(followed(), before);
  show(kOther, LeaderEpoch(102));
  ASSERT_NE(followed(), nullptr);
  EXPECT_EQ(followed()->following().leader_epoch, LeaderEpoch(102));
}

TEST_P(ReplicaKeeperTest, WithoutALeaderItIsNeitherLedNorFollowed) {
  show(kOther, LeaderEpoch(100));
  show(BrokerId(), LeaderEpoch(101));
  EXPECT_EQ(led(), nullptr);
  EXPECT_EQ(followed(), nullptr);
  auto one = client();
  EXPECT_EQ(testing::produce(one, {{id, 0}})[0].status.error(), WireError::partition_offline);
}

TEST_P(ReplicaKeeperTest, ANewerStateOfTheSameEpochReachesTheLeader) {
  show(core().id, LeaderEpoch(100));
  const auto* const before = led();
  ASSERT_NE(before, nullptr);
  show(core().id, LeaderEpoch(100), 2);
  EXPECT_EQ(led(), before);
  EXPECT_EQ(led()->isr_state().version, model::PartitionVersion(10'002));
}

// PAR-4
TEST_P(ReplicaKeeperTest, ALeaderThatIsBehindTheLogIsNotFollowed) {
  show(core().id, LeaderEpoch(100));
  show(kOther, LeaderEpoch(99));
  EXPECT_EQ(led(), nullptr);
  EXPECT_EQ(followed(), nullptr);
  show(kOther, LeaderEpoch(101));
  EXPECT_NE(followed(), nullptr);
}

// PAR-3
TEST_P(ReplicaKeeperTest, AConsumerThatSaysItsRackReadsFromAFollower) {
  auto one = client();
  ASSERT_TRUE(testing::produce(one, {{id, 0, testing::make_batch(3)}})[0].status.ok());
  show(kOther, LeaderEpoch(100));
  ASSERT_NE(followed(), nullptr);
  const auto fetch = [&](std::int64_t offset, bool of_leader = false) {
    protocol::FetchRequest ask;
    ask.wait_ms = 100;
    ask.bytes_max = 1 << 20;
    ask.rack = "a";
    ask.entries = {testing::from(id, offset)};
    ask.entries[0].of_leader = of_leader;
    const auto answer = one.call(protocol::ApiKey::fetch, protocol::encode(ask));
    return protocol::decode_fetch_response(answer.header_bytes())->results.at(0);
  };
  // It has not heard from its leader.
  EXPECT_EQ(fetch(0).status.error(), WireError::offset_not_available);
  const auto subscribe = followed()->subscribe(1);
  ASSERT_TRUE(subscribe);
  protocol::ReplicaFetchResult result;
  result.partition = id;
  result.number = 1;
  result.leader_epoch = LeaderEpoch(100);
  result.high_watermark = Offset(3);
  result.log_start = Offset(0);
  followed()->take(result, {}, {});
  const auto read = fetch(0);
  EXPECT_TRUE(read.status.ok()) << read.status.text;
  EXPECT_EQ(read.high_watermark, Offset(3));
  EXPECT_GT(read.payload_bytes, 0U);
  EXPECT_TRUE(fetch(3).status.ok());
  EXPECT_EQ(fetch(4).status.error(), WireError::offset_not_available);
  EXPECT_EQ(fetch(0, true).status.error(), WireError::not_leader);
}

// REC-10
TEST_P(ReplicaKeeperTest, ADamagedLogIsReplacedAndThatIsTriedAgain) {
  auto one = client();
  ASSERT_TRUE(testing::produce(one, {{id, 0, testing::make_batch(3)}})[0].status.ok());
  lose_its_end();
  world.disk.inject({.operation = testing::FileOperation::rename,
                     .path_part = id.text(),
                     .error = make_error_code(base::BaseErrc::no_space)});
  show(kOther, LeaderEpoch(100));
  world.run_for(std::chrono::seconds(2));
  EXPECT_EQ(world.disk.faults_struck(), 0U);  // somebody may count on it
  show(kOther, LeaderEpoch(101), 1, false);
  world.run_for(milliseconds(500));
  EXPECT_EQ(world.disk.faults_struck(), 1U);
  EXPECT_TRUE(core().disks->find(id)->failure());
  auto people = client(2);
  EXPECT_EQ(failing(people),
            "orders/0 on broker 1: its log cannot be made anew: the disk is full; this is tried "
            "again and again. make room on its disk: mqctl broker disks 1");
  world.run_for(std::chrono::seconds(2));
  EXPECT_FALSE(core().disks->find(id)->failure());
  EXPECT_EQ(core().disks->find(id)->log_end_offset(), Offset(0));
  EXPECT_NE(followed(), nullptr);
  EXPECT_EQ(failing(people), "");
}

TEST_P(ReplicaKeeperTest, ALogThatCannotBeMadeIsAnAlarmUntilItIsMade) {
  const auto image = core().image();
  auto topic = std::make_shared<metadata::TopicInfo>(*image->find_topic(id.topic));
  topic->id = base::Uuid::from_random(11, 12);
  topic->name = "refunds";
  const PartitionId refunds{topic->id, 0};
  topic->partitions.front().id = refunds;
  world.disk.inject({.operation = testing::FileOperation::make_directory,
                     .path_part = refunds.text(),
                     .error = make_error_code(base::BaseErrc::no_space)});
  metadata::ImageChange change;
  change.topics = {topic};
  core().membership->view().publish(std::make_shared<metadata::ClusterImage>(
      image->with(std::move(change), image->version() + 1)));
  world.run_for(std::chrono::seconds(1));
  ASSERT_EQ(world.disk.faults_struck(), 1U);
  auto people = client(2);
  const std::string alarm =
      "refunds/0 on broker 1: its log cannot be made: the disk is full; this is tried again and "
      "again. make room on its disk: mqctl broker disks 1";
  EXPECT_EQ(failing(people), alarm);
  // Also while that is under way.
  world.executor->stall(std::chrono::seconds(20));
  world.run_for(std::chrono::seconds(15));
  EXPECT_EQ(core().disks->find(refunds), nullptr);
  EXPECT_EQ(failing(people), alarm);
  world.run_for(std::chrono::seconds(15));
  EXPECT_NE(core().disks->find(refunds), nullptr);
  EXPECT_EQ(failing(people), "");
}

// REP-5: its leader has heard what the log had, and could let it in for that.
TEST_P(ReplicaKeeperTest, ALogThatWasFollowedIsReplacedInALaterLeaderEpoch) {
  produce_three_records();
  show(kOther, LeaderEpoch(100));
  damage_the_log();
  world.run_for(std::chrono::seconds(2));
  EXPECT_EQ(followed(), nullptr);
  const auto* const told = core().membership->reporter().last_report(id);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->state, protocol::ReplicaState::failed);
  EXPECT_EQ(told->last_leader_epoch, LeaderEpoch(100));
  show(kOther, LeaderEpoch(100), 2, false);
  world.run_for(std::chrono::seconds(2));
  EXPECT_EQ(followed(), nullptr);
  EXPECT_EQ(core().disks->find(id)->log_end_offset(), Offset(3));
  show(kOther, LeaderEpoch(101), 1, false);
  world.run_for(std::chrono::seconds(1));
  EXPECT_EQ(core().disks->find(id)->log_end_offset(), Offset(0));
  ASSERT_NE(followed(), nullptr);
  EXPECT_EQ(followed()->following().leader_epoch, LeaderEpoch(101));
}

// Where nobody leads what is left of it counts; but it is damaged still.
TEST_P(ReplicaKeeperTest, ADamagedLogThatWasOfferedAsALeadersIsToldAgain) {
  produce_three_records();
  show(kOther, LeaderEpoch(100));
  damage_the_log();
  world.run_for(std::chrono::seconds(2));
  EXPECT_EQ(followed(), nullptr);
  show(BrokerId(), LeaderEpoch(101), 1, false);
  const auto* told = core().membership->reporter().last_report(id);
  EXPECT_EQ(told->state, protocol::ReplicaState::opened);
  show(kOther, LeaderEpoch(102), 1, false);
  ASSERT_NE(followed(), nullptr);
  show(kOther, LeaderEpoch(102), 2, false, [this](auto& partition) {
    partition.isr.push_back({core().id, core().membership->epoch()});
  });
  world.run_for(std::chrono::seconds(2));
  EXPECT_EQ(followed(), nullptr);
  told = core().membership->reporter().last_report(id);
  EXPECT_EQ(told->state, protocol::ReplicaState::failed);
  EXPECT_EQ(told->last_leader_epoch, LeaderEpoch(102));
}

/// How often another broker was asked to lead instead.
struct AskedToLead {
  int times = 0;
  AskedToLead() {
    base::set_log_sink([this](base::LogLevel, std::string_view, std::string_view text) {
      times += text.find("another one that is complete is asked to lead") != text.npos ? 1 : 0;
    });
  }
  ~AskedToLead() { base::set_log_sink({}); }
  AskedToLead(const AskedToLead&) = delete;
  AskedToLead& operator=(const AskedToLead&) = delete;
};

// Whoever could lead instead is away: what is damaged here is not lost.
TEST_P(ReplicaKeeperTest, AConsumerWaitsForAReplicaThatHasWhatIsDamagedHere) {
  store_three_records();
  auto one = client();
  const AskedToLead asked;
  show(core().id, LeaderEpoch(100), 1, true, [this](auto& partition) {
    partition.isr = {{core().id, core().membership->epoch()}};
    partition.elr = {{kOther, BrokerEpoch(77)}};
  });
  damage_the_log();
  const auto wait = read_first(one);
  EXPECT_EQ(wait.error(), WireError::partition_offline);
  EXPECT_TRUE(wait.advice.retriable);
  EXPECT_NE(wait.text.find("broker 2 has it and is to lead"), std::string::npos) << wait.text;
  world.run_for(std::chrono::seconds(2));
  EXPECT_EQ(asked.times, 1);
}

// The other one has led, and people have put this one back.
TEST_P(ReplicaKeeperTest, ADamagedLeaderThatIsPutBackAsksAgainAFewTimes) {
  store_three_records();
  auto one = client();
  const AskedToLead asked;
  const auto here = [this](auto& partition) {
    partition.isr = {{core().id, core().membership->epoch()}};
    partition.elr = {{kOther, BrokerEpoch(77)}};
  };
  const auto there = [](auto& partition) { partition.min_isr = 2; };
  show(core().id, LeaderEpoch(100), 1, true, here);
  damage_the_log();
  world.run_for(std::chrono::seconds(2));
  EXPECT_EQ(asked.times, 1);
  for (int round = 1; round <= 4; ++round) {
    EXPECT_EQ(read_first(one).error(), WireError::partition_offline) << round;
    show(kOther, LeaderEpoch(100 + 2 * round - 1), 1, true, there);
    show(core().id, LeaderEpoch(100 + 2 * round), 1, true, here);
    world.run_for(std::chrono::seconds(1));
    EXPECT_EQ(asked.times, 1 + std::min(round, 3));
  }
  // Whoever gives it back so often is damaged too.
  world.run_for(std::chrono::seconds(4));
  EXPECT_EQ(read_first(one).error(), WireError::partition_corrupt);
}

// Nobody was there when the damage was seen.
TEST_P(ReplicaKeeperTest, ADamagedLeaderAsksAReplicaThatComesLater) {
  store_three_records();
  auto one = client();
  const AskedToLead asked;
  const auto held_by = [this](BrokerId other) {
    return [this, other](auto& partition) {
      partition.isr = {{core().id, core().membership->epoch()}};
      partition.elr = {{other, BrokerEpoch(77)}};
    };
  };
  show(core().id, LeaderEpoch(100), 1, true, held_by(BrokerId(3)));
  damage_the_log();
  world.run_for(std::chrono::seconds(5));
  EXPECT_EQ(asked.times, 0);
  show(core().id, LeaderEpoch(100), 2, true, held_by(kOther));
  world.run_for(std::chrono::seconds(2));
  EXPECT_EQ(asked.times, 1);
  const auto wait = read_first(one);
  EXPECT_EQ(wait.error(), WireError::partition_offline);
  EXPECT_NE(wait.text.find("broker 2 has it and is to lead"), std::string::npos) << wait.text;
  // It does not.
  world.run_for(std::chrono::seconds(4));
  EXPECT_EQ(read_first(one).error(), WireError::partition_corrupt);
}

TEST_P(ReplicaKeeperTest, AConsumerIsToldTheWayOutOfDamageThatNobodyCanMend) {
  store_three_records();
  auto one = client();
  const auto alone = [this](auto& partition) {
    partition.isr = {{core().id, core().membership->epoch()}};
  };
  show(core().id, LeaderEpoch(100), 1, true, alone);
  damage_the_log();
  EXPECT_EQ(read_first(one).error(), WireError::partition_offline) << "a follower has yet to speak";
  world.run_for(std::chrono::seconds(11));
  const auto final_word = read_first(one);
  EXPECT_EQ(final_word.error(), WireError::partition_corrupt);
  EXPECT_FALSE(final_word.advice.retriable);
  EXPECT_NE(final_word.text.find("no other replica has all of it; mqctl partition describe "
                                 "payments/0 says what can be done"),
            std::string::npos)
      << final_word.text;
}

// Who asks whether it may be given up must not hear that nobody knows of any damage.
TEST_P(ReplicaKeeperTest, DamageThatIsShownIsKnownToTheController) {
  store_three_records();
  auto one = client();
  damage_the_log();
  protocol::DescribeTopicsRequest describe;
  describe.names = {"payments"};
  const auto shown = one.call(protocol::ApiKey::describe_topics, protocol::encode(describe));
  const auto topics = protocol::decode_describe_topics_response(shown.header_bytes());
  const auto& notes = topics->topics.at(0).partitions.at(0).replica_notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_TRUE(notes[0].text.starts_with("is damaged: ")) << notes[0].text;
  protocol::ControlPartitionsRequest check;
  check.action = protocol::PartitionAction::check_loss;
  check.partitions = {id};
  check.broker = 1;
  const auto answer = one.call(protocol::ApiKey::control_partitions, protocol::encode(check));
  const auto checked = protocol::decode_control_partitions_response(answer.header_bytes());
  EXPECT_TRUE(checked->results.at(0).status.ok()) << checked->results.at(0).status.text;
}

// As whoever reads or writes it is told.
TEST_P(ReplicaKeeperTest, ATrimOfADamagedLogIsRefusedWithTheWayOut) {
  auto one = client();
  ASSERT_TRUE(testing::produce(one, {{id, 0, testing::make_batch(3)}})[0].status.ok());
  lose_its_end();
  auto people = client(2);
  protocol::TrimPartitionsRequest ask;
  ask.envelope.deadline_ms = 2'000;
  ask.entries = {{id, Offset(0)}};
  const auto answer = people.call(protocol::ApiKey::trim_partitions, protocol::encode(ask));
  const auto refused = protocol::decode_trim_partitions_response(answer.header_bytes());
  EXPECT_EQ(refused->results.at(0).status.error(), WireError::partition_corrupt);
  EXPECT_EQ(refused->results.at(0).status.text,
            "orders-0: its log is damaged on broker 1; mqctl partition describe orders/0 says what "
            "can be done");
}

// It led, and did not hear when nobody did: what it has is not what it had at its start.
TEST_P(ReplicaKeeperTest, APastLeaderSaysWhatItHasWhenAnotherLeadsWithALoss) {
  show(core().id, LeaderEpoch(100), 1, true, [this](auto& partition) {
    partition.isr = {{core().id, core().membership->epoch()}};
  });
  auto one = client();
  ASSERT_TRUE(testing::produce(one, {{id, 0, testing::make_batch(3)}})[0].status.ok());
  show(kOther, LeaderEpoch(102), 1, false, [](auto& partition) {
    partition.loss_epoch = LeaderEpoch(102);
    partition.loss_start = Offset(0);
  });
  const auto* const told = core().membership->reporter().last_report(id);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->state, protocol::ReplicaState::opened);
  EXPECT_EQ(told->log_end_offset, Offset(3));
  EXPECT_EQ(told->last_leader_epoch, LeaderEpoch(100));
  EXPECT_NE(followed(), nullptr);
}

TEST_P(ReplicaKeeperTest, AStopEndsWhatIsFollowed) {
  show(kOther, LeaderEpoch(100));
  world.run_for(std::chrono::seconds(3));  // nobody answers there
  EXPECT_TRUE(world.stop());
}

}  // namespace
}  // namespace mq::broker
