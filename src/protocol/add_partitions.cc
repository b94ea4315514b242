#include "protocol/add_partitions.h"

#include "protocol/proto/add_partitions.pb.h"
#include "protocol/topics_codec.h"

namespace mq::protocol {
namespace {

bool read_topic(const wire::PartitionTotal& from, PartitionTotal& to) {
  return codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_integer(from.total(), to.total, 0);
}

void write_topic(const PartitionTotal& from, wire::PartitionTotal& to) {
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  to.set_total(from.total);
}

bool read_request(const wire::AddPartitionsRequest& from, AddPartitionsRequest& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.topics(), to.topics, read_topic);
}

void write_request(const AddPartitionsRequest& from, wire::AddPartitionsRequest& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.topics, *to.mutable_topics(), write_topic);
}

}  // namespace

std::string encode(const AddPartitionsRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const AddPartitionsResponse& response) {
  return codec::encode(response,
                       codec::write_results<AddPartitionsResponse, wire::AddPartitionsResponse>);
}
base::Result<AddPartitionsRequest> decode_add_partitions_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<AddPartitionsResponse> decode_add_partitions_response(base::Bytes header) {
  return codec::decode(header,
                       codec::read_results<wire::AddPartitionsResponse, AddPartitionsResponse>);
}

}  // namespace mq::protocol
