#include "protocol/control_partitions.h"

#include "protocol/codec.h"
#include "protocol/proto/control_partitions.pb.h"

namespace mq::protocol {
namespace {

bool read_action(std::uint64_t from, PartitionAction& to) {
  to = static_cast<PartitionAction>(from);
  return from >= 1 && from <= 4;
}

bool read_request(const wire::ControlPartitionsRequest& from, ControlPartitionsRequest& to) {
  return codec::read_envelope(from, to.envelope) && read_action(from.action(), to.action) &&
         codec::read_integer(from.broker(), to.broker) &&
         codec::read_all(from.partitions(), to.partitions, codec::read_partition, kControlledMax);
}

void write_request(const ControlPartitionsRequest& from, wire::ControlPartitionsRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_action(static_cast<std::uint64_t>(from.action));
  to.set_broker(from.broker);
  codec::write_all(from.partitions, *to.mutable_partitions(), codec::write_partition);
}

bool read_result(const wire::ControlResult& from, ControlResult& to) {
  to.changed = from.changed();
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_entry_status(from, to.status) &&
         codec::read_plus_one(from.leader_plus_one(), to.leader);
}

void write_result(const ControlResult& from, wire::ControlResult& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  codec::write_entry_status(from.status, to);
  to.set_changed(from.changed);
  to.set_leader_plus_one(static_cast<std::uint64_t>(std::int64_t{from.leader} + 1));
}

bool read_response(const wire::ControlPartitionsResponse& from, ControlPartitionsResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.results(), to.results, read_result, kControlledMax);
}

void write_response(const ControlPartitionsResponse& from, wire::ControlPartitionsResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.results, *to.mutable_results(), write_result);
}

}  // namespace

std::string encode(const ControlPartitionsRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const ControlPartitionsResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<ControlPartitionsRequest> decode_control_partitions_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<ControlPartitionsResponse> decode_control_partitions_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
