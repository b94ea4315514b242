#include "protocol/report_replicas.h"

#include "protocol/codec.h"
#include "protocol/proto/report_replicas.pb.h"

namespace mq::protocol {
namespace {

bool read_state(std::uint64_t from, ReplicaState& to) noexcept {
  if (from > static_cast<std::uint64_t>(ReplicaState::needs_epoch)) return false;
  to = static_cast<ReplicaState>(from);
  return true;
}

bool read_place(const wire::DamagedPlace& from, model::DamagedPlace& to) {
  to.position = from.position();
  return codec::read_id(from.segment(), to.segment) && codec::read_id(from.offset(), to.offset) &&
         codec::read_id(from.end(), to.end);
}

void write_place(const model::DamagedPlace& from, wire::DamagedPlace& to) {
  to.set_segment(from.segment.value());
  to.set_position(from.position);
  to.set_offset(from.offset.value());
  to.set_end(from.end.value());
}

bool read_replica(const wire::ReplicaReport& from, ReplicaReport& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         read_state(from.state(), to.state) &&
         codec::read_id(from.last_leader_epoch(), to.last_leader_epoch) &&
         codec::read_id(from.log_end_offset(), to.log_end_offset) &&
         codec::read_id(from.high_watermark(), to.high_watermark) &&
         codec::read_id(from.intact_since(), to.intact_since) &&
         codec::read_all(from.damage(), to.damage, read_place, kDamagedPlacesMax) &&
         (!from.has_reason() || codec::read_status(from.reason(), to.reason));
}

void write_replica(const ReplicaReport& from, wire::ReplicaReport& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_state(static_cast<std::uint64_t>(from.state));
  to.set_last_leader_epoch(from.last_leader_epoch.value());
  to.set_log_end_offset(from.log_end_offset.value());
  to.set_high_watermark(from.high_watermark.value());
  to.set_intact_since(from.intact_since.value());
  codec::write_all(from.damage, *to.mutable_damage(), write_place);
  if (from.reason != Status{}) codec::write_status(from.reason, *to.mutable_reason());
}

bool read_request(const wire::ReportReplicasRequest& from, ReportReplicasRequest& to) {
  return codec::read_envelope(from, to.envelope) && codec::read_integer(from.broker(), to.broker) &&
         codec::read_integer(from.broker_epoch(), to.broker_epoch) &&
         codec::read_all(from.replicas(), to.replicas, read_replica, kReportsMax) &&
         codec::read_uuids(from.deleted(), to.deleted, kReportsMax);
}

void write_request(const ReportReplicasRequest& from, wire::ReportReplicasRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_broker(from.broker);
  to.set_broker_epoch(from.broker_epoch);
  codec::write_all(from.replicas, *to.mutable_replicas(), write_replica);
  codec::write_uuids(from.deleted, *to.mutable_deleted());
}

bool read_response(const wire::ReportReplicasResponse& from, ReportReplicasResponse& to) {
  return codec::read_envelope(from, to.envelope);
}

void write_response(const ReportReplicasResponse& from, wire::ReportReplicasResponse& to) {
  codec::write_envelope(from.envelope, to);
}

}  // namespace

std::string encode(const ReportReplicasRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const ReportReplicasResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<ReportReplicasRequest> decode_report_replicas_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<ReportReplicasResponse> decode_report_replicas_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
