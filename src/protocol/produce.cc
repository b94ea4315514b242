#include "protocol/produce.h"

#include "protocol/codec.h"
#include "protocol/proto/produce.pb.h"

namespace mq::protocol {
namespace {

bool read_entry(const wire::ProduceEntry& from, ProduceEntry& to) {
  to.sequence = from.sequence();
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_integer(from.batch_bytes(), to.batch_bytes);
}

void write_entry(const ProduceEntry& from, wire::ProduceEntry& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_batch_bytes(from.batch_bytes);
  to.set_sequence(from.sequence);
}

bool read_request(const wire::ProduceRequest& from, ProduceRequest& to) {
  if (from.acks() > static_cast<std::uint64_t>(Acks::all)) return false;
  to.acks = static_cast<Acks>(from.acks());
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.entries(), to.entries, read_entry);
}

void write_request(const ProduceRequest& from, wire::ProduceRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_acks(static_cast<std::uint64_t>(from.acks));
  codec::write_all(from.entries, *to.mutable_entries(), write_entry);
}

bool read_result(const wire::ProduceResult& from, ProduceResult& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_entry_status(from, to.status) &&
         codec::read_id(from.base_offset(), to.base_offset) &&
         codec::read_integer(from.append_time_ms(), to.append_time_ms) &&
         codec::read_id(from.leader_epoch(), to.leader_epoch);
}

void write_result(const ProduceResult& from, wire::ProduceResult& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  codec::write_entry_status(from.status, to);
  to.set_base_offset(from.base_offset.value());
  to.set_append_time_ms(from.append_time_ms);
  to.set_leader_epoch(from.leader_epoch.value());
}

bool read_response(const wire::ProduceResponse& from, ProduceResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.results(), to.results, read_result);
}

void write_response(const ProduceResponse& from, wire::ProduceResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.results, *to.mutable_results(), write_result);
}

}  // namespace

std::string encode(const ProduceRequest& request) { return codec::encode(request, write_request); }
std::string encode(const ProduceResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<ProduceRequest> decode_produce_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<ProduceResponse> decode_produce_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
