#include "protocol/replica_fetch.h"

#include "protocol/codec.h"
#include "protocol/proto/replica_fetch.pb.h"

namespace mq::protocol {
namespace {

/// An offset in a request is a place in a log.
bool read_place(std::int64_t from, model::Offset& to) noexcept {
  return codec::read_id(from, to) && to.value() >= 0;
}

bool read_subscribe(const wire::ReplicaSubscribe& from, ReplicaSubscribe& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_integer(from.number(), to.number) &&
         codec::read_id(from.leader_epoch(), to.leader_epoch) &&
         codec::read_id(from.last_epoch(), to.last_epoch) &&
         read_place(from.log_start(), to.log_start) && read_place(from.appended(), to.appended) &&
         read_place(from.durable(), to.durable);
}

void write_subscribe(const ReplicaSubscribe& from, wire::ReplicaSubscribe& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_number(from.number);
  to.set_leader_epoch(from.leader_epoch.value());
  to.set_last_epoch(from.last_epoch.value());
  to.set_log_start(from.log_start.value());
  to.set_appended(from.appended.value());
  to.set_durable(from.durable.value());
}

bool read_position(const wire::ReplicaPosition& from, ReplicaPosition& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_integer(from.number(), to.number) &&
         read_place(from.appended(), to.appended) && read_place(from.durable(), to.durable) &&
         read_place(from.log_start(), to.log_start);
}

void write_position(const ReplicaPosition& from, wire::ReplicaPosition& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_number(from.number);
  to.set_appended(from.appended.value());
  to.set_durable(from.durable.value());
  to.set_log_start(from.log_start.value());
}

bool read_request(const wire::ReplicaFetchRequest& from, ReplicaFetchRequest& to) {
  return codec::read_envelope(from, to.envelope) && codec::read_integer(from.broker(), to.broker) &&
         codec::read_integer(from.broker_epoch(), to.broker_epoch) &&
         codec::read_integer(from.wait_ms(), to.wait_ms) &&
         codec::read_integer(from.bytes_max(), to.bytes_max) &&
         codec::read_all(from.unsubscribe(), to.unsubscribe, codec::read_partition,
                         kReplicaFetchEntriesMax) &&
         codec::read_all(from.subscribe(), to.subscribe, read_subscribe, kReplicaFetchEntriesMax) &&
         codec::read_all(from.positions(), to.positions, read_position, kReplicaFetchEntriesMax);
}

void write_request(const ReplicaFetchRequest& from, wire::ReplicaFetchRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_broker(from.broker);
  to.set_broker_epoch(from.broker_epoch);
  to.set_wait_ms(from.wait_ms);
  to.set_bytes_max(from.bytes_max);
  codec::write_all(from.unsubscribe, *to.mutable_unsubscribe(), codec::write_partition);
  codec::write_all(from.subscribe, *to.mutable_subscribe(), write_subscribe);
  codec::write_all(from.positions, *to.mutable_positions(), write_position);
}

bool read_divergence(const wire::ReplicaFetchResult& from, std::optional<Divergence>& to) {
  if (!from.has_diverging()) return true;
  to.emplace();
  return codec::read_id(from.diverging().epoch(), to->epoch) &&
         codec::read_id(from.diverging().end_offset(), to->end_offset);
}

bool read_result(const wire::ReplicaFetchResult& from, ReplicaFetchResult& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_integer(from.number(), to.number) &&
         codec::read_entry_status(from, to.status) &&
         codec::read_id(from.leader_epoch(), to.leader_epoch) &&
         codec::read_id(from.high_watermark(), to.high_watermark) &&
         codec::read_id(from.log_start(), to.log_start) && read_divergence(from, to.diverging) &&
         codec::read_integer(from.payload_bytes(), to.payload_bytes);
}

void write_result(const ReplicaFetchResult& from, wire::ReplicaFetchResult& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_number(from.number);
  codec::write_entry_status(from.status, to);
  to.set_leader_epoch(from.leader_epoch.value());
  to.set_high_watermark(from.high_watermark.value());
  to.set_log_start(from.log_start.value());
  if (from.diverging) {
    to.mutable_diverging()->set_epoch(from.diverging->epoch.value());
    to.mutable_diverging()->set_end_offset(from.diverging->end_offset.value());
  }
  to.set_payload_bytes(from.payload_bytes);
}

bool read_response(const wire::ReplicaFetchResponse& from, ReplicaFetchResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.results(), to.results, read_result, kReplicaFetchEntriesMax);
}

void write_response(const ReplicaFetchResponse& from, wire::ReplicaFetchResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.results, *to.mutable_results(), write_result);
}

}  // namespace

std::string encode(const ReplicaFetchRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const ReplicaFetchResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<ReplicaFetchRequest> decode_replica_fetch_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<ReplicaFetchResponse> decode_replica_fetch_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
