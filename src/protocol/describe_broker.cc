#include "protocol/describe_broker.h"

#include "protocol/codec.h"
#include "protocol/proto/describe_broker.pb.h"

namespace mq::protocol {
namespace {

bool read_request(const wire::DescribeBrokerRequest& from, DescribeBrokerRequest& to) {
  return codec::read_envelope(from, to.envelope);
}

void write_request(const DescribeBrokerRequest& from, wire::DescribeBrokerRequest& to) {
  codec::write_envelope(from.envelope, to);
}

bool read_disk(const wire::DiskDescription& from, DiskDescription& to) {
  to.bytes_used = from.bytes_used();
  to.bytes_free = from.bytes_free();
  to.bytes_total = from.bytes_total();
  to.write_rate = from.write_rate();
  to.scrubbed_bytes = from.scrubbed_bytes();
  to.intact_since_disk = from.intact_since_disk();
  to.intact_since_memory = from.intact_since_memory();
  to.aside_bytes = from.aside_bytes();
  return codec::read_text(from.path(), to.path, codec::kTextBytesMax) &&
         codec::read_text(from.state(), to.state, codec::kNameBytesMax) &&
         codec::read_optional_uuid(from.disk(), to.disk) &&
         codec::read_text(from.reason(), to.reason, codec::kTextBytesMax) &&
         codec::read_integer(from.partitions(), to.partitions) &&
         codec::read_integer(from.scrub_damaged_segments(), to.scrub_damaged_segments) &&
         codec::read_integer(from.aside_logs(), to.aside_logs);
}

void write_disk(const DiskDescription& from, wire::DiskDescription& to) {
  to.set_path(codec::sendable_text(from.path, codec::kTextBytesMax));
  to.set_state(codec::sendable_text(from.state, codec::kNameBytesMax));
  to.set_bytes_used(from.bytes_used);
  to.set_bytes_free(from.bytes_free);
  to.set_bytes_total(from.bytes_total);
  to.set_partitions(from.partitions);
  to.set_disk(codec::optional_uuid(from.disk));
  to.set_reason(codec::sendable_text(from.reason, codec::kTextBytesMax));
  to.set_write_rate(from.write_rate);
  to.set_scrubbed_bytes(from.scrubbed_bytes);
  to.set_scrub_damaged_segments(from.scrub_damaged_segments);
  to.set_intact_since_disk(from.intact_since_disk);
  to.set_intact_since_memory(from.intact_since_memory);
  to.set_aside_bytes(from.aside_bytes);
  to.set_aside_logs(from.aside_logs);
}

bool read_counters(const google::protobuf::RepeatedPtrField<wire::Counter>& from,
                   std::map<std::string, std::int64_t>& to) {
  for (const auto& counter : from) {
    std::string name;
    if (!codec::read_text(counter.name(), name, codec::kNameBytesMax)) return false;
    to[std::move(name)] = counter.value();
  }
  return true;
}

void write_counters(const std::map<std::string, std::int64_t>& from,
                    google::protobuf::RepeatedPtrField<wire::Counter>& to) {
  for (const auto& [name, value] : from) {
    auto& counter = *to.Add();
    counter.set_name(codec::sendable_text(name, codec::kNameBytesMax));
    counter.set_value(value);
  }
}

bool read_alert(const wire::BrokerAlert& from, BrokerAlert& to) {
  return codec::read_text(from.check(), to.check, codec::kNameBytesMax) &&
         codec::read_integer(from.level(), to.level) &&
         codec::read_text(from.text(), to.text, codec::kTextBytesMax);
}

void write_alert(const BrokerAlert& from, wire::BrokerAlert& to) {
  to.set_check(codec::sendable_text(from.check, codec::kNameBytesMax));
  to.set_level(from.level);
  to.set_text(codec::sendable_text(from.text, codec::kTextBytesMax));
}

bool read_numbers(const wire::DescribeBrokerResponse& from, DescribeBrokerResponse& to) {
  to.resident_bytes = from.resident_bytes();
  to.recovery_bytes_read = from.recovery_bytes_read();
  to.lease_lost = from.lease_lost();
  if (from.clock_compared()) to.clock_ahead_ms = from.clock_ahead_ms();
  return codec::read_integer(from.uptime_ms(), to.uptime_ms) &&
         codec::read_integer(from.process_id(), to.process_id) &&
         codec::read_integer(from.cpu_user_ms(), to.cpu_user_ms) &&
         codec::read_integer(from.cpu_system_ms(), to.cpu_system_ms) &&
         codec::read_integer(from.workers(), to.workers) &&
         codec::read_integer(from.connections(), to.connections) &&
         codec::read_integer(from.topics(), to.topics) &&
         codec::read_integer(from.partitions(), to.partitions) &&
         codec::read_integer(from.partitions_not_serving(), to.partitions_not_serving) &&
         codec::read_integer(from.partitions_damaged(), to.partitions_damaged) &&
         codec::read_integer(from.partitions_recovering(), to.partitions_recovering) &&
         codec::read_integer(from.partitions_led(), to.partitions_led) &&
         codec::read_integer(from.controller(), to.controller) &&
         codec::read_integer(from.broker_epoch(), to.broker_epoch);
}

void write_numbers(const DescribeBrokerResponse& from, wire::DescribeBrokerResponse& to) {
  to.set_uptime_ms(static_cast<std::uint64_t>(from.uptime_ms));
  to.set_process_id(static_cast<std::uint64_t>(from.process_id));
  to.set_resident_bytes(from.resident_bytes);
  to.set_cpu_user_ms(static_cast<std::uint64_t>(from.cpu_user_ms));
  to.set_cpu_system_ms(static_cast<std::uint64_t>(from.cpu_system_ms));
  to.set_workers(from.workers);
  to.set_connections(from.connections);
  to.set_topics(from.topics);
  to.set_partitions(from.partitions);
  to.set_partitions_not_serving(from.partitions_not_serving);
  to.set_partitions_damaged(from.partitions_damaged);
  to.set_partitions_recovering(from.partitions_recovering);
  to.set_recovery_bytes_read(from.recovery_bytes_read);
  to.set_partitions_led(from.partitions_led);
  to.set_controller(from.controller);
  to.set_broker_epoch(from.broker_epoch);
  to.set_lease_lost(from.lease_lost);
  to.set_clock_compared(from.clock_ahead_ms.has_value());
  to.set_clock_ahead_ms(from.clock_ahead_ms.value_or(0));
}

bool read_response(const wire::DescribeBrokerResponse& from, DescribeBrokerResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_integer(from.broker_id(), to.broker_id) &&
         codec::read_text(from.version(), to.version, codec::kNameBytesMax) &&
         codec::read_optional_uuid(from.cluster_id(), to.cluster_id) &&
         codec::read_text(from.metadata_kind(), to.metadata_kind, codec::kNameBytesMax) &&
         read_numbers(from, to) && codec::read_all(from.disks(), to.disks, read_disk) &&
         read_counters(from.counters(), to.counters) &&
         codec::read_text(from.metadata_trouble(), to.metadata_trouble, codec::kTextBytesMax) &&
         codec::read_names(from.warnings(), to.warnings, codec::kTextBytesMax) &&
         codec::read_all(from.alerts(), to.alerts, read_alert) &&
         codec::read_text(from.rack(), to.rack, codec::kNameBytesMax);
}

void write_response(const DescribeBrokerResponse& from, wire::DescribeBrokerResponse& to) {
  codec::write_envelope(from.envelope, to);
  to.set_broker_id(from.broker_id);
  to.set_version(codec::sendable_text(from.version, codec::kNameBytesMax));
  to.set_cluster_id(codec::optional_uuid(from.cluster_id));
  to.set_metadata_kind(codec::sendable_text(from.metadata_kind, codec::kNameBytesMax));
  write_numbers(from, to);
  codec::write_all(from.disks, *to.mutable_disks(), write_disk);
  write_counters(from.counters, *to.mutable_counters());
  to.set_metadata_trouble(codec::sendable_text(from.metadata_trouble, codec::kTextBytesMax));
  codec::write_names(from.warnings, *to.mutable_warnings(), codec::kTextBytesMax);
  codec::write_all(from.alerts, *to.mutable_alerts(), write_alert);
  to.set_rack(codec::sendable_text(from.rack, codec::kNameBytesMax));
}

}  // namespace

std::string encode(const DescribeBrokerRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const DescribeBrokerResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<DescribeBrokerRequest> decode_describe_broker_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<DescribeBrokerResponse> decode_describe_broker_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
