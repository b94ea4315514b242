#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/status.h"

namespace mq::protocol {

/// Asks for a producer id that nobody had before.
struct InitProducerRequest {
  RequestEnvelope envelope;
  friend bool operator==(const InitProducerRequest&, const InitProducerRequest&) = default;
};
struct InitProducerResponse {
  ResponseEnvelope envelope;
  std::int64_t producer_id = -1;     ///< -1 with an error
  std::int32_t producer_epoch = -1;  ///< the first one to use
  friend bool operator==(const InitProducerResponse&, const InitProducerResponse&) = default;
};

std::string encode(const InitProducerRequest&);
std::string encode(const InitProducerResponse&);
base::Result<InitProducerRequest> decode_init_producer_request(base::Bytes header);
base::Result<InitProducerResponse> decode_init_producer_response(base::Bytes header);

}  // namespace mq::protocol
