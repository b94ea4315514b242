#include "metadata/node_values.h"

#include <gtest/gtest.h>

#include "base/real/real_runtime.h"

namespace mq::metadata {
namespace {

base::Uuid uuid(std::uint64_t n) { return base::Uuid::from_random(n, n + 1); }

TopicValue sample_topic() {
  TopicValue topic;
  topic.writer = {uuid(1), 42};
  topic.id = uuid(2);
  topic.name = "orders";
  topic.overrides = {{"durability", "memory"}, {"retention.age", "3d"}};
  topic.partitions = {
      {0, {model::BrokerId(1)}}, {1, {model::BrokerId(1)}}, {4, {model::BrokerId(1)}}};
  topic.next_partition = 5;
  topic.partition_count_epoch = 2;
  return topic;
}

TEST(NodeValues, TopicComesBack) {
  const auto before = sample_topic();
  const auto after = decode_topic(encode(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->writer, before.writer);
  EXPECT_EQ(after->id, before.id);
  EXPECT_EQ(after->name, before.name);
  EXPECT_EQ(after->overrides, before.overrides);
  ASSERT_EQ(after->partitions.size(), 3u);
  EXPECT_EQ(after->partitions[2].number, 4);
  EXPECT_EQ(after->partitions[2].replicas, before.partitions[2].replicas);
  EXPECT_EQ(after->next_partition, 5);
  EXPECT_EQ(after->partition_count_epoch, 2u);
}

TEST(NodeValues, PartitionStateComesBackAlsoWithoutALeader) {
  PartitionStateValue before;
  before.writer = {uuid(1), 1};
  before.leader_epoch = model::LeaderEpoch(7);
  before.isr = {{model::BrokerId(1), model::BrokerEpoch(12)}};
  const auto after = decode_partition_state(encode(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->leader, model::BrokerId());
  EXPECT_EQ(after->leader_epoch, model::LeaderEpoch(7));
  ASSERT_EQ(after->isr.size(), 1u);
  EXPECT_EQ(after->isr[0].epoch, model::BrokerEpoch(12));
  EXPECT_EQ(after->min_isr, 1u);
  EXPECT_EQ(after->loss_epoch, model::LeaderEpoch());
  for (const std::int32_t epoch : {0, 7, std::numeric_limits<std::int32_t>::max()}) {
    before.loss_epoch = model::LeaderEpoch(epoch);
    EXPECT_EQ(decode_partition_state(encode(before))->loss_epoch, before.loss_epoch);
  }
}

TEST(NodeValues, TheElrComesBackAndAnOldValueHasNone) {
  PartitionStateValue before;
  before.writer = {uuid(1), 1};
  before.leader = model::BrokerId(1);
  before.leader_epoch = model::LeaderEpoch(7);
  before.isr = {{model::BrokerId(1), model::BrokerEpoch(12)}};
  before.min_isr = 2;
  const auto old = decode_partition_state(encode(before));
  ASSERT_TRUE(old);
  EXPECT_TRUE(old->elr.empty());
  EXPECT_TRUE(old->last_known_elr.empty());
  before.elr = {{model::BrokerId(2), model::BrokerEpoch(9)}};
  before.last_known_elr = {{model::BrokerId(3), model::BrokerEpoch(4)}};
  const auto after = decode_partition_state(encode(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->isr, before.isr);
  EXPECT_EQ(after->elr, before.elr);
  EXPECT_EQ(after->last_known_elr, before.last_known_elr);
  EXPECT_EQ(after->min_isr, 2u);
}

TEST(NodeValues, BrokerAndClusterComeBack) {
  const auto epoch =
      decode_broker_epoch(encode(BrokerEpochValue{{uuid(1), 3}, uuid(4), {uuid(5), uuid(6)}}));
  ASSERT_TRUE(epoch);
  EXPECT_EQ(epoch->incarnation, uuid(4));
  EXPECT_EQ(epoch->disks, (std::vector{uuid(5), uuid(6)}));
  const auto live =
      decode_broker_live(encode(BrokerLiveValue{{uuid(1), 3}, uuid(4), {"hdd-01", 9500}}));
  ASSERT_TRUE(live);
  EXPECT_EQ(live->advertised, (base::Endpoint{"hdd-01", 9500}));
  const auto cluster = decode_cluster(encode(ClusterValue{{uuid(1), 0}, uuid(9), 1, 1}));
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->id, uuid(9));
}

TEST(NodeValues, ControllerAndItsEpochComeBack) {
  const model::BrokerId broker(7);
  const auto leader =
      decode_controller(encode(ControllerValue{{uuid(1), 3}, broker, {"hdd-01", 9500}}));
  ASSERT_TRUE(leader);
  EXPECT_EQ(leader->writer, (WriterTag{uuid(1), 3}));
  EXPECT_EQ(leader->broker, broker);
  EXPECT_EQ(leader->advertised, (base::Endpoint{"hdd-01", 9500}));
  const auto epoch = decode_controller_epoch(encode(ControllerEpochValue{{uuid(1), 4}, broker}));
  ASSERT_TRUE(epoch);
  EXPECT_EQ(epoch->broker, broker);
  EXPECT_EQ(*decode_writer(encode(HeartbeatValue{{uuid(1), 5}})), (WriterTag{uuid(1), 5}));
}

TEST(NodeValues, ARegistrationKeepsItsAddress) {
  const auto epoch = decode_broker_epoch(
      encode(BrokerEpochValue{{uuid(1), 3}, uuid(4), {uuid(5)}, {"hdd-01", 9500}}));
  ASSERT_TRUE(epoch);
  EXPECT_EQ(epoch->advertised, (base::Endpoint{"hdd-01", 9500}));
}

TEST(NodeValues, ProducerIdsComeBackAndNeverNearTheirEnd) {
  const auto after = decode_producer_ids(encode(ProducerIdsValue{{uuid(1), 3}, 5000}));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->next_id, 5000);
  EXPECT_EQ(after->writer, (WriterTag{uuid(1), 3}));
  for (const std::int64_t next : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(decode_producer_ids(encode(ProducerIdsValue{{uuid(1), 3}, next})).error(),
              make_error_code(MetadataErrc::damaged));
  }
}

TEST(NodeValues, WriterIsReadFromAnyValue) {
  const WriterTag writer{uuid(1), 42};
  EXPECT_EQ(*decode_writer(encode(sample_topic())), writer);
  PartitionStateValue state;
  state.writer = writer;
  state.leader_epoch = model::LeaderEpoch(0);
  EXPECT_EQ(*decode_writer(encode(state)), writer);
}

TEST(NodeValues, RulesOfATopicAreChecked) {
  auto twice = sample_topic();
  twice.partitions[1].number = 0;
  EXPECT_EQ(decode_topic(encode(twice)).error(), make_error_code(MetadataErrc::damaged));
  auto beyond = sample_topic();
  beyond.next_partition = 4;
  EXPECT_EQ(decode_topic(encode(beyond)).error(), make_error_code(MetadataErrc::damaged));
  auto nowhere = sample_topic();
  nowhere.partitions[0].replicas.clear();
  EXPECT_EQ(decode_topic(encode(nowhere)).error(), make_error_code(MetadataErrc::damaged));
}

TEST(NodeValues, CutAndFlippedValuesNeverCrashAReader) {
  const auto whole = encode(sample_topic());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = std::string_view(whole).substr(0, size);
    (void)decode_topic(cut);
    (void)decode_partition_state(cut);
    (void)decode_broker_live(cut);
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x41);
    (void)decode_topic(flipped);
    (void)decode_broker_epoch(flipped);
  }
  EXPECT_EQ(decode_cluster("").error(), make_error_code(MetadataErrc::damaged));
  EXPECT_EQ(decode_topic("\xff\xff\xff").error(), make_error_code(MetadataErrc::damaged));
}

}  // namespace
}  // namespace mq::metadata
