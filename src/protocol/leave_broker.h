#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/status.h"

namespace mq::protocol {

/// A broker that is going to stop asks the controller to have its partitions led elsewhere.
struct LeaveBrokerRequest {
  RequestEnvelope envelope;
  std::int32_t broker = -1;
  std::int64_t broker_epoch = -1;  ///< of its registration; another one is STALE_BROKER_EPOCH
  friend bool operator==(const LeaveBrokerRequest&, const LeaveBrokerRequest&) = default;
};
/// OK: under this registration it is in no ISR any more but those it is alone in, and leads nothing
/// that another one can lead. It is not taken into any again.
struct LeaveBrokerResponse {
  ResponseEnvelope envelope;
  /// Partitions that it still leads, for people; empty: none. Those of `waiting` have a replica
  /// that lives and is not in sync yet: who asks again later may find them led elsewhere. Those of
  /// `only_here` have none.
  std::string waiting;
  std::string only_here;
  friend bool operator==(const LeaveBrokerResponse&, const LeaveBrokerResponse&) = default;
};

std::string encode(const LeaveBrokerRequest&);
std::string encode(const LeaveBrokerResponse&);
base::Result<LeaveBrokerRequest> decode_leave_broker_request(base::Bytes header);
base::Result<LeaveBrokerResponse> decode_leave_broker_response(base::Bytes header);

}  // namespace mq::protocol
