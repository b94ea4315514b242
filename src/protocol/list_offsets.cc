#include "protocol/list_offsets.h"

#include "protocol/codec.h"
#include "protocol/proto/list_offsets.pb.h"

namespace mq::protocol {
namespace {

bool read_entry(const wire::ListOffsetsEntry& from, ListOffsetsEntry& to) {
  if (from.point() > static_cast<std::uint64_t>(OffsetPoint::at_time)) return false;
  to.point = static_cast<OffsetPoint>(from.point());
  to.time_ms = from.time_ms();
  if (to.time_ms < 0 || (to.time_ms > 0 && to.point != OffsetPoint::at_time)) return false;
  return codec::read_partition(from.partition(), to.partition);
}

void write_entry(const ListOffsetsEntry& from, wire::ListOffsetsEntry& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_point(static_cast<std::uint64_t>(from.point));
  to.set_time_ms(from.time_ms);
}

bool read_request(const wire::ListOffsetsRequest& from, ListOffsetsRequest& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.entries(), to.entries, read_entry);
}

void write_request(const ListOffsetsRequest& from, wire::ListOffsetsRequest& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.entries, *to.mutable_entries(), write_entry);
}

bool read_result(const wire::ListOffsetsResult& from, ListOffsetsResult& to) {
  if (from.has_append_time_ms() && from.append_time_ms() < 0) return false;
  to.append_time_ms = from.has_append_time_ms() ? from.append_time_ms() : -1;
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_entry_status(from, to.status) && codec::read_id(from.offset(), to.offset) &&
         codec::read_id(from.leader_epoch(), to.leader_epoch);
}

void write_result(const ListOffsetsResult& from, wire::ListOffsetsResult& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  codec::write_entry_status(from.status, to);
  to.set_offset(from.offset.value());
  to.set_leader_epoch(from.leader_epoch.value());
  if (from.append_time_ms >= 0) to.set_append_time_ms(from.append_time_ms);
}

bool read_response(const wire::ListOffsetsResponse& from, ListOffsetsResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.results(), to.results, read_result);
}

void write_response(const ListOffsetsResponse& from, wire::ListOffsetsResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.results, *to.mutable_results(), write_result);
}

}  // namespace

std::string encode(const ListOffsetsRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const ListOffsetsResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<ListOffsetsRequest> decode_list_offsets_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<ListOffsetsResponse> decode_list_offsets_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
