#include "protocol/describe_config.h"

#include "protocol/codec.h"
#include "protocol/proto/describe_config.pb.h"

namespace mq::protocol {
namespace {

bool read_request(const wire::DescribeConfigRequest& from, DescribeConfigRequest& to) {
  return codec::read_envelope(from, to.envelope);
}

void write_request(const DescribeConfigRequest& from, wire::DescribeConfigRequest& to) {
  codec::write_envelope(from.envelope, to);
}

bool read_setting(const wire::ConfigSetting& from, ConfigSetting& to) {
  return codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_text(from.value(), to.value, codec::kTextBytesMax) &&
         codec::read_text(from.origin(), to.origin, codec::kTextBytesMax);
}

void write_setting(const ConfigSetting& from, wire::ConfigSetting& to) {
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  to.set_value(codec::sendable_text(from.value, codec::kTextBytesMax));
  to.set_origin(codec::sendable_text(from.origin, codec::kTextBytesMax));
}

bool read_response(const wire::DescribeConfigResponse& from, DescribeConfigResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.settings(), to.settings, read_setting);
}

void write_response(const DescribeConfigResponse& from, wire::DescribeConfigResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.settings, *to.mutable_settings(), write_setting);
}

}  // namespace

std::string encode(const DescribeConfigRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const DescribeConfigResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<DescribeConfigRequest> decode_describe_config_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<DescribeConfigResponse> decode_describe_config_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
