#include "metadata/node_values.h"

#include <limits>

#include "metadata/proto/nodes.pb.h"

namespace mq::metadata {
namespace {

template <class Message>
Result<Message> parse(std::string_view bytes) {
  Message message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return make_error_code(MetadataErrc::damaged);
  return message;
}

void put_writer(proto::WriterTag* to, const WriterTag& writer) {
  to->set_incarnation(writer.incarnation.raw());
  to->set_sequence(writer.sequence);
}

Result<base::Uuid> uuid_of(const std::string& raw) {
  const auto id = base::Uuid::from_bytes(base::as_bytes(raw));
  if (!id) return make_error_code(MetadataErrc::damaged);
  return *id;
}

template <class Message>
Result<WriterTag> writer_of(const Message& message) {
  MQ_TRY(const auto incarnation, uuid_of(message.writer().incarnation()));
  return WriterTag{incarnation, message.writer().sequence()};
}

template <class Message>
Result<base::Endpoint> endpoint_of(const Message& message) {
  if (message.port() > 65535) return make_error_code(MetadataErrc::damaged);
  return base::Endpoint{message.host(), static_cast<std::uint16_t>(message.port())};
}

bool fits_int32(std::uint32_t value) noexcept {
  return value <= static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
}

void put_members(google::protobuf::RepeatedPtrField<proto::IsrMember>& to,
                 const std::vector<IsrMember>& members) {
  for (const auto& member : members) {
    auto* one = to.Add();
    one->set_broker(member.broker.value());
    one->set_broker_epoch(member.epoch.value());
  }
}

std::vector<IsrMember> members_of(
    const google::protobuf::RepeatedPtrField<proto::IsrMember>& members) {
  std::vector<IsrMember> all;
  for (const auto& member : members)
    all.push_back({model::BrokerId(member.broker()), model::BrokerEpoch(member.broker_epoch())});
  return all;
}

Result<std::vector<TopicPartition>> partitions_of(const proto::TopicNode& node) {
  std::vector<TopicPartition> partitions;
  for (const auto& one : node.partitions()) {
    const bool rises =
        partitions.empty() || one.number() > static_cast<std::uint32_t>(partitions.back().number);
    if (!rises || one.number() >= node.next_partition() || one.replicas().empty())
      return make_error_code(MetadataErrc::damaged);
    auto& partition = partitions.emplace_back();
    partition.number = static_cast<std::int32_t>(one.number());
    for (const auto replica : one.replicas()) partition.replicas.emplace_back(replica);
  }
  return partitions;
}

}  // namespace

std::string encode(const ClusterValue& value) {
  proto::ClusterNode node;
  put_writer(node.mutable_writer(), value.writer);
  node.set_id(value.id.raw());
  node.set_layout_version(value.layout_version);
  node.set_feature_level(value.feature_level);
  return node.SerializeAsString();
}

Result<ClusterValue> decode_cluster(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::ClusterNode>(bytes));
  ClusterValue value;
  MQ_TRY(value.writer, writer_of(node));
  MQ_TRY(value.id, uuid_of(node.id()));
  value.layout_version = node.layout_version();
  value.feature_level = node.feature_level();
  return value;
}

std::string encode(const BrokerEpochValue& value) {
  proto::BrokerEpochNode node;
  put_writer(node.mutable_writer(), value.writer);
  node.set_incarnation(value.incarnation.raw());
  for (const auto& disk : value.disks) node.add_disks(disk.raw());
  node.set_host(value.advertised.host);
  node.set_port(value.advertised.port);
  node.set_rack(value.rack);
  return node.SerializeAsString();
}

Result<BrokerEpochValue> decode_broker_epoch(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::BrokerEpochNode>(bytes));
  BrokerEpochValue value;
  MQ_TRY(value.writer, writer_of(node));
  MQ_TRY(value.incarnation, uuid_of(node.incarnation()));
  for (const auto& raw : node.disks()) {
    MQ_TRY(const auto disk, uuid_of(raw));
    value.disks.push_back(disk);
  }
  MQ_TRY(value.advertised, endpoint_of(node));
  value.rack = node.rack();
  return value;
}

std::string encode(const BrokerLiveValue& value) {
  proto::BrokerLiveNode node;
  put_writer(node.mutable_writer(), value.writer);
  node.set_incarnation(value.incarnation.raw());
  node.set_host(value.advertised.host);
  node.set_port(value.advertised.port);
  return node.SerializeAsString();
}

Result<BrokerLiveValue> decode_broker_live(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::BrokerLiveNode>(bytes));
  BrokerLiveValue value;
  MQ_TRY(value.writer, writer_of(node));
  MQ_TRY(value.incarnation, uuid_of(node.incarnation()));
  MQ_TRY(value.advertised, endpoint_of(node));
  return value;
}

std::string encode(const ControllerValue& value) {
  proto::ControllerNode node;
  put_writer(node.mutable_writer(), value.writer);
  node.set_broker(value.broker.value());
  node.set_host(value.advertised.host);
  node.set_port(value.advertised.port);
  return node.SerializeAsString();
}

Result<ControllerValue> decode_controller(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::ControllerNode>(bytes));
  ControllerValue value;
  MQ_TRY(value.writer, writer_of(node));
  value.broker = model::BrokerId(node.broker());
  MQ_TRY(value.advertised, endpoint_of(node));
  return value;
}

std::string encode(const ControllerEpochValue& value) {
  proto::ControllerEpochNode node;
  put_writer(node.mutable_writer(), value.writer);
  node.set_broker(value.broker.value());
  return node.SerializeAsString();
}

Result<ControllerEpochValue> decode_controller_epoch(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::ControllerEpochNode>(bytes));
  ControllerEpochValue value;
  MQ_TRY(value.writer, writer_of(node));
  value.broker = model::BrokerId(node.broker());
  return value;
}

std::string encode(const HeartbeatValue& value) {
  proto::HeartbeatNode node;
  put_writer(node.mutable_writer(), value.writer);
  return node.SerializeAsString();
}

std::string encode(const TopicValue& value) {
  proto::TopicNode node;
  put_writer(node.mutable_writer(), value.writer);
  node.set_id(value.id.raw());
  node.set_name(value.name);
  for (const auto& [name, text] : value.overrides) {
    auto* setting = node.add_overrides();
    setting->set_name(name);
    setting->set_value(text);
  }
  for (const auto& partition : value.partitions) {
    auto* one = node.add_partitions();
    one->set_number(static_cast<std::uint32_t>(partition.number));
    for (const auto replica : partition.replicas) one->add_replicas(replica.value());
  }
  node.set_next_partition(static_cast<std::uint32_t>(value.next_partition));
  node.set_partition_count_epoch(value.partition_count_epoch);
  return node.SerializeAsString();
}

Result<TopicValue> decode_topic(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::TopicNode>(bytes));
  TopicValue value;
  MQ_TRY(value.writer, writer_of(node));
  MQ_TRY(value.id, uuid_of(node.id()));
  if (!fits_int32(node.next_partition())) return make_error_code(MetadataErrc::damaged);
  MQ_TRY(value.partitions, partitions_of(node));
  value.name = node.name();
  for (const auto& setting : node.overrides())
    value.overrides.emplace(setting.name(), setting.value());
  value.next_partition = static_cast<std::int32_t>(node.next_partition());
  value.partition_count_epoch = node.partition_count_epoch();
  return value;
}

std::string encode(const PartitionStateValue& value) {
  proto::PartitionStateNode node;
  put_writer(node.mutable_writer(), value.writer);
  node.set_leader(value.leader.value());
  node.set_leader_epoch(value.leader_epoch.value());
  put_members(*node.mutable_isr(), value.isr);
  put_members(*node.mutable_elr(), value.elr);
  put_members(*node.mutable_last_known_elr(), value.last_known_elr);
  node.set_min_isr(value.min_isr);
  node.set_loss_epoch_plus_one(
      static_cast<std::uint32_t>(std::int64_t{value.loss_epoch.value()} + 1));
  node.set_loss_start_plus_one(value.loss_start.value() + 1);
  node.set_loss_end_plus_one(value.loss_end.value() + 1);
  return node.SerializeAsString();
}

Result<PartitionStateValue> decode_partition_state(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::PartitionStateNode>(bytes));
  PartitionStateValue value;
  MQ_TRY(value.writer, writer_of(node));
  if (node.leader_epoch() < 0) return make_error_code(MetadataErrc::damaged);
  value.leader = model::BrokerId(node.leader());
  value.leader_epoch = model::LeaderEpoch(node.leader_epoch());
  value.isr = members_of(node.isr());
  value.elr = members_of(node.elr());
  value.last_known_elr = members_of(node.last_known_elr());
  value.min_isr = node.min_isr();
  if (node.loss_epoch_plus_one() > std::uint32_t{1} << 31)
    return make_error_code(MetadataErrc::damaged);
  value.loss_epoch =
      model::LeaderEpoch(static_cast<std::int32_t>(std::int64_t{node.loss_epoch_plus_one()} - 1));
  if (node.loss_start_plus_one() < 0 || node.loss_end_plus_one() < 0)
    return make_error_code(MetadataErrc::damaged);
  value.loss_start = model::Offset(node.loss_start_plus_one() - 1);
  value.loss_end = model::Offset(node.loss_end_plus_one() - 1);
  return value;
}

std::string encode(const ProducerIdsValue& value) {
  proto::ProducerIdsNode node;
  put_writer(node.mutable_writer(), value.writer);
  node.set_next_id(value.next_id);
  return node.SerializeAsString();
}

Result<ProducerIdsValue> decode_producer_ids(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::ProducerIdsNode>(bytes));
  ProducerIdsValue value;
  MQ_TRY(value.writer, writer_of(node));
  // Never so near the end that a block could pass it.
  constexpr std::int64_t kNextMax = std::numeric_limits<std::int64_t>::max() - (1 << 30);
  if (node.next_id() < 0 || node.next_id() > kNextMax)
    return make_error_code(MetadataErrc::damaged);
  value.next_id = node.next_id();
  return value;
}

Result<WriterTag> decode_writer(std::string_view bytes) {
  MQ_TRY(const auto node, parse<proto::AnyNode>(bytes));
  return writer_of(node);
}

}  // namespace mq::metadata
