#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "protocol/api.h"
#include "protocol/status.h"

namespace mq::protocol {

/// First request of every connection. Version 0 never changes.
struct HelloRequest {
  RequestEnvelope envelope;
  std::string client_version;
  std::uint64_t client_instance = 0;    ///< random, one per client object
  std::uint64_t connection_number = 0;  ///< rises with every connection of the instance
  base::Uuid cluster_id;                ///< zero: not known yet
  friend bool operator==(const HelloRequest&, const HelloRequest&) = default;
};
struct HelloResponse {
  ResponseEnvelope envelope;
  std::string broker_version;
  std::int32_t broker_id = -1;
  base::Uuid cluster_id;
  std::vector<ApiVersions> apis;
  std::uint32_t frame_bytes_max = 0;
  std::uint32_t batch_bytes_max = 0;  ///< largest batch any topic of this broker takes
  friend bool operator==(const HelloResponse&, const HelloResponse&) = default;
};

std::string encode(const HelloRequest&);
std::string encode(const HelloResponse&);
base::Result<HelloRequest> decode_hello_request(base::Bytes header);
base::Result<HelloResponse> decode_hello_response(base::Bytes header);

/// A response header that carries only the envelope: what every refused request is answered with,
/// whatever its API.
std::string encode(const ResponseEnvelope&);
/// Reads the envelope of any response.
base::Result<ResponseEnvelope> decode_envelope(base::Bytes header);

}  // namespace mq::protocol
