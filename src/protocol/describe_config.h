#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/status.h"

namespace mq::protocol {

struct DescribeConfigRequest {
  RequestEnvelope envelope;
  friend bool operator==(const DescribeConfigRequest&, const DescribeConfigRequest&) = default;
};
/// One key of broker.toml with the value in force, as it would stand there.
struct ConfigSetting {
  std::string name;
  std::string value;
  std::string origin;  ///< "built-in", "/etc/mq/broker.toml:4", "--set", an environment variable
  friend bool operator==(const ConfigSetting&, const ConfigSetting&) = default;
};
struct DescribeConfigResponse {
  ResponseEnvelope envelope;
  std::vector<ConfigSetting> settings;  ///< every known key, in the order of the sections
  friend bool operator==(const DescribeConfigResponse&, const DescribeConfigResponse&) = default;
};

std::string encode(const DescribeConfigRequest&);
std::string encode(const DescribeConfigResponse&);
base::Result<DescribeConfigRequest> decode_describe_config_request(base::Bytes header);
base::Result<DescribeConfigResponse> decode_describe_config_response(base::Bytes header);

}  // namespace mq::protocol
