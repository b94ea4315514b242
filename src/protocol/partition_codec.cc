#include "protocol/partition_codec.h"

#include "protocol/codec.h"

namespace mq::protocol::codec {
namespace {

bool read_one(const wire::PartitionMetadata& from, PartitionMetadata& to) {
  return read_integer(from.partition(), to.partition, 0) &&
         read_integer(from.leader(), to.leader) &&
         read_integer(from.leader_epoch(), to.leader_epoch) &&
         read_integer(from.partition_version(), to.partition_version) &&
         read_brokers(from.replicas(), to.replicas) && read_brokers(from.in_sync(), to.in_sync) &&
         read_integer(from.min_isr(), to.min_isr);
}

void write_one(const PartitionMetadata& from, wire::PartitionMetadata& to) {
  to.set_partition(from.partition);
  to.set_leader(from.leader);
  to.set_leader_epoch(from.leader_epoch);
  to.set_partition_version(from.partition_version);
  write_brokers(from.replicas, *to.mutable_replicas());
  write_brokers(from.in_sync, *to.mutable_in_sync());
  to.set_min_isr(from.min_isr);
}

}  // namespace

bool read_partitions(const google::protobuf::RepeatedPtrField<wire::PartitionMetadata>& from,
                     std::vector<PartitionMetadata>& to) {
  return read_all(from, to, read_one) && rising(to);
}

void write_partitions(const std::vector<PartitionMetadata>& from,
                      google::protobuf::RepeatedPtrField<wire::PartitionMetadata>& to) {
  write_all(from, to, write_one);
}

bool read_settings(const google::protobuf::RepeatedPtrField<wire::TextSetting>& from,
                   std::map<std::string, std::string>& to) {
  if (static_cast<std::size_t>(from.size()) > kSettingsMax) return false;
  for (const auto& setting : from) {
    std::string name;
    std::string value;
    if (!read_text(setting.name(), name, kNameBytesMax) ||
        !read_text(setting.value(), value, kNameBytesMax))
      return false;
    if (!to.emplace(std::move(name), std::move(value)).second) return false;  // given twice
  }
  return true;
}

void write_settings(const std::map<std::string, std::string>& from,
                    google::protobuf::RepeatedPtrField<wire::TextSetting>& to) {
  for (const auto& [name, value] : from) {
    auto& setting = *to.Add();
    setting.set_name(sendable_text(name, kNameBytesMax));
    setting.set_value(sendable_text(value, kNameBytesMax));
  }
}

}  // namespace mq::protocol::codec
