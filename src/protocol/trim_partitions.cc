#include "protocol/trim_partitions.h"

#include "protocol/codec.h"
#include "protocol/proto/trim_partitions.pb.h"

namespace mq::protocol {
namespace {

bool read_entry(const wire::TrimEntry& from, TrimEntry& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_id(from.to(), to.to) && to.to >= model::Offset(0);
}

void write_entry(const TrimEntry& from, wire::TrimEntry& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_to(from.to.value());
}

bool read_request(const wire::TrimPartitionsRequest& from, TrimPartitionsRequest& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.entries(), to.entries, read_entry);
}

void write_request(const TrimPartitionsRequest& from, wire::TrimPartitionsRequest& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.entries, *to.mutable_entries(), write_entry);
}

bool read_result(const wire::TrimResult& from, TrimResult& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_entry_status(from, to.status) &&
         codec::read_id(from.log_start_offset(), to.log_start_offset);
}

void write_result(const TrimResult& from, wire::TrimResult& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  codec::write_entry_status(from.status, to);
  to.set_log_start_offset(from.log_start_offset.value());
}

bool read_response(const wire::TrimPartitionsResponse& from, TrimPartitionsResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.results(), to.results, read_result);
}

void write_response(const TrimPartitionsResponse& from, wire::TrimPartitionsResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.results, *to.mutable_results(), write_result);
}

}  // namespace

std::string encode(const TrimPartitionsRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const TrimPartitionsResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<TrimPartitionsRequest> decode_trim_partitions_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<TrimPartitionsResponse> decode_trim_partitions_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
