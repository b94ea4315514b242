#include "protocol/alter_topics.h"

#include "protocol/partition_codec.h"
#include "protocol/proto/alter_topics.pb.h"
#include "protocol/topics_codec.h"

namespace mq::protocol {
namespace {

bool read_topic(const wire::AlterTopic& from, AlterTopic& to) {
  return static_cast<std::size_t>(from.unset().size()) <= codec::kSettingsMax &&
         codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_settings(from.set(), to.set) && codec::read_names(from.unset(), to.unset);
}

void write_topic(const AlterTopic& from, wire::AlterTopic& to) {
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  codec::write_settings(from.set, *to.mutable_set());
  codec::write_names(from.unset, *to.mutable_unset());
}

bool read_request(const wire::AlterTopicsRequest& from, AlterTopicsRequest& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.topics(), to.topics, read_topic);
}

void write_request(const AlterTopicsRequest& from, wire::AlterTopicsRequest& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.topics, *to.mutable_topics(), write_topic);
}

}  // namespace

std::string encode(const AlterTopicsRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const AlterTopicsResponse& response) {
  return codec::encode(response,
                       codec::write_results<AlterTopicsResponse, wire::AlterTopicsResponse>);
}
base::Result<AlterTopicsRequest> decode_alter_topics_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<AlterTopicsResponse> decode_alter_topics_response(base::Bytes header) {
  return codec::decode(header, codec::read_results<wire::AlterTopicsResponse, AlterTopicsResponse>);
}

}  // namespace mq::protocol
