#include "protocol/fetch.h"

#include "protocol/codec.h"
#include "protocol/proto/fetch.pb.h"

namespace mq::protocol {
namespace {

bool read_entry(const wire::FetchEntry& from, FetchEntry& to) {
  std::int64_t offset = 0;
  if (!codec::read_integer(from.offset(), offset, std::int64_t{0})) return false;
  to.offset = model::Offset(offset);
  to.of_leader = from.of_leader();
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_integer(from.bytes_max(), to.bytes_max);
}

void write_entry(const FetchEntry& from, wire::FetchEntry& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_offset(static_cast<std::uint64_t>(from.offset.value()));
  to.set_bytes_max(from.bytes_max);
  to.set_of_leader(from.of_leader);
}

bool read_request(const wire::FetchRequest& from, FetchRequest& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_integer(from.wait_ms(), to.wait_ms) &&
         codec::read_integer(from.bytes_min(), to.bytes_min) &&
         codec::read_integer(from.bytes_max(), to.bytes_max) &&
         codec::read_text(from.rack(), to.rack, codec::kRackBytesMax) &&
         codec::read_all(from.entries(), to.entries, read_entry);
}

void write_request(const FetchRequest& from, wire::FetchRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_wait_ms(from.wait_ms);
  to.set_bytes_min(from.bytes_min);
  to.set_bytes_max(from.bytes_max);
  codec::write_all(from.entries, *to.mutable_entries(), write_entry);
  to.set_rack(codec::sendable_text(from.rack, codec::kRackBytesMax));
}

bool read_result(const wire::FetchResult& from, FetchResult& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_entry_status(from, to.status) &&
         codec::read_id(from.high_watermark(), to.high_watermark) &&
         codec::read_id(from.log_start_offset(), to.log_start_offset) &&
         codec::read_id(from.leader_epoch(), to.leader_epoch) &&
         codec::read_integer(from.payload_bytes(), to.payload_bytes) &&
         codec::read_plus_one(from.nearer_replica_plus_one(), to.nearer_replica);
}

void write_result(const FetchResult& from, wire::FetchResult& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  codec::write_entry_status(from.status, to);
  to.set_high_watermark(from.high_watermark.value());
  to.set_log_start_offset(from.log_start_offset.value());
  to.set_leader_epoch(from.leader_epoch.value());
  to.set_payload_bytes(from.payload_bytes);
  to.set_nearer_replica_plus_one(codec::plus_one(from.nearer_replica));
}

bool read_response(const wire::FetchResponse& from, FetchResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.results(), to.results, read_result);
}

void write_response(const FetchResponse& from, wire::FetchResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.results, *to.mutable_results(), write_result);
}

}  // namespace

std::string encode(const FetchRequest& request) { return codec::encode(request, write_request); }
std::string encode(const FetchResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<FetchRequest> decode_fetch_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<FetchResponse> decode_fetch_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
