#include "protocol/metadata.h"

#include "protocol/codec.h"
#include "protocol/partition_codec.h"
#include "protocol/proto/metadata.pb.h"

namespace mq::protocol {
namespace {

bool read_request(const wire::MetadataRequest& from, MetadataRequest& to) {
  to.all_topics = from.all_topics();
  to.newer_than = from.newer_than();
  return codec::read_envelope(from, to.envelope) && codec::read_names(from.topics(), to.topics);
}

void write_request(const MetadataRequest& from, wire::MetadataRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_all_topics(from.all_topics);
  codec::write_names(from.topics, *to.mutable_topics());
  to.set_newer_than(from.newer_than);
}

bool read_broker(const wire::BrokerAddress& from, BrokerAddress& to) {
  to.away = from.away();
  return codec::read_integer(from.id(), to.id) &&
         codec::read_text(from.host(), to.host, codec::kNameBytesMax) &&
         codec::read_integer(from.port(), to.port) && to.port <= 65'535 &&
         codec::read_text(from.rack(), to.rack, codec::kNameBytesMax);
}

void write_broker(const BrokerAddress& from, wire::BrokerAddress& to) {
  to.set_id(from.id);
  to.set_host(codec::sendable_text(from.host, codec::kNameBytesMax));
  to.set_port(from.port);
  to.set_away(from.away);
  to.set_rack(codec::sendable_text(from.rack, codec::kNameBytesMax));
}

bool read_topic(const wire::TopicMetadata& from, TopicMetadata& to) {
  return codec::read_entry_status(from, to.status) &&
         codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_optional_uuid(from.id(), to.id) &&
         codec::read_integer(from.batch_bytes_max(), to.batch_bytes_max) &&
         codec::read_partitions(from.partitions(), to.partitions);
}

void write_topic(const TopicMetadata& from, wire::TopicMetadata& to) {
  codec::write_entry_status(from.status, to);
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  to.set_id(codec::optional_uuid(from.id));
  to.set_batch_bytes_max(from.batch_bytes_max);
  codec::write_partitions(from.partitions, *to.mutable_partitions());
}

bool read_response(const wire::MetadataResponse& from, MetadataResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_optional_uuid(from.cluster_id(), to.cluster_id) &&
         codec::read_integer(from.controller(), to.controller) &&
         codec::read_all(from.brokers(), to.brokers, read_broker) &&
         codec::read_all(from.topics(), to.topics, read_topic);
}

void write_response(const MetadataResponse& from, wire::MetadataResponse& to) {
  codec::write_envelope(from.envelope, to);
  to.set_cluster_id(codec::optional_uuid(from.cluster_id));
  to.set_controller(from.controller);
  codec::write_all(from.brokers, *to.mutable_brokers(), write_broker);
  codec::write_all(from.topics, *to.mutable_topics(), write_topic);
}

}  // namespace

std::string encode(const MetadataRequest& request) { return codec::encode(request, write_request); }
std::string encode(const MetadataResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<MetadataRequest> decode_metadata_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<MetadataResponse> decode_metadata_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
