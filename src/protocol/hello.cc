#include "protocol/hello.h"

#include "protocol/codec.h"
#include "protocol/proto/hello.pb.h"

namespace mq::protocol {
namespace {

constexpr std::size_t kVersionBytesMax = 128;
constexpr std::size_t kApisMax = 1024;

bool read_request(const wire::HelloRequest& from, HelloRequest& to) {
  to.client_instance = from.client_instance();
  to.connection_number = from.connection_number();
  return codec::read_envelope(from, to.envelope) &&
         codec::read_text(from.client_version(), to.client_version, kVersionBytesMax) &&
         codec::read_optional_uuid(from.cluster_id(), to.cluster_id);
}

void write_request(const HelloRequest& from, wire::HelloRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_client_version(codec::sendable_text(from.client_version, kVersionBytesMax));
  to.set_client_instance(from.client_instance);
  to.set_connection_number(from.connection_number);
  to.set_cluster_id(codec::optional_uuid(from.cluster_id));
}

bool read_api(const wire::ApiVersions& from, ApiVersions& to) {
  std::uint16_t key = 0;
  if (!codec::read_integer(from.key(), key)) return false;
  to.key = static_cast<ApiKey>(key);
  return codec::read_integer(from.min(), to.min) && codec::read_integer(from.max(), to.max) &&
         to.min <= to.max;
}

void write_api(const ApiVersions& from, wire::ApiVersions& to) {
  to.set_key(static_cast<std::uint16_t>(from.key));
  to.set_min(from.min);
  to.set_max(from.max);
}

bool read_response(const wire::HelloResponse& from, HelloResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_text(from.broker_version(), to.broker_version, kVersionBytesMax) &&
         codec::read_integer(from.broker_id(), to.broker_id) &&
         codec::read_optional_uuid(from.cluster_id(), to.cluster_id) &&
         codec::read_all(from.apis(), to.apis, read_api, kApisMax) &&
         codec::read_integer(from.frame_bytes_max(), to.frame_bytes_max) &&
         codec::read_integer(from.batch_bytes_max(), to.batch_bytes_max);
}

void write_response(const HelloResponse& from, wire::HelloResponse& to) {
  codec::write_envelope(from.envelope, to);
  to.set_broker_version(codec::sendable_text(from.broker_version, kVersionBytesMax));
  to.set_broker_id(from.broker_id);
  to.set_cluster_id(codec::optional_uuid(from.cluster_id));
  codec::write_all(from.apis, *to.mutable_apis(), write_api);
  to.set_frame_bytes_max(from.frame_bytes_max);
  to.set_batch_bytes_max(from.batch_bytes_max);
}

bool read_bare(const wire::ResponseEnvelope& from, ResponseEnvelope& to) {
  return codec::read_envelope(from, to);
}

void write_bare(const ResponseEnvelope& from, wire::ResponseEnvelope& to) {
  codec::write_envelope(from, to);
}

}  // namespace

std::string encode(const HelloRequest& request) { return codec::encode(request, write_request); }
std::string encode(const HelloResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<HelloRequest> decode_hello_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<HelloResponse> decode_hello_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

std::string encode(const ResponseEnvelope& envelope) { return codec::encode(envelope, write_bare); }
base::Result<ResponseEnvelope> decode_envelope(base::Bytes header) {
  return codec::decode(header, read_bare);
}

}  // namespace mq::protocol
