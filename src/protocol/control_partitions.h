#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/ids.h"
#include "protocol/status.h"

namespace mq::protocol {

inline constexpr std::size_t kControlledMax = 10'000;  ///< entries of one request

/// What an operator wants of the controller for some partitions.
enum class PartitionAction : std::uint8_t {
  elect_leader = 1,      ///< led by `broker`, or by the first of its replicas that can be
  acknowledge_loss = 2,  ///< somebody knows that records may be lost: no more alarm for that
  /// Nobody leads, and `broker` is to, with what it has; what it lacks may be lost.
  elect_with_loss = 3,
  check_loss = 4,  ///< nothing is changed: whether elect_with_loss would be refused
};
struct ControlPartitionsRequest {
  RequestEnvelope envelope;
  PartitionAction action = PartitionAction::elect_leader;
  std::int32_t broker = -1;
  std::vector<model::PartitionId> partitions;
  friend bool operator==(const ControlPartitionsRequest&,
                         const ControlPartitionsRequest&) = default;
};
/// OK also for one that was so already.
struct ControlResult {
  model::PartitionId partition;
  Status status;
  bool changed = false;      ///< false: it was so already
  std::int32_t leader = -1;  ///< who leads it now; -1: nobody
  friend bool operator==(const ControlResult&, const ControlResult&) = default;
};
struct ControlPartitionsResponse {
  ResponseEnvelope envelope;
  std::vector<ControlResult> results;  ///< in the order asked
  friend bool operator==(const ControlPartitionsResponse&,
                         const ControlPartitionsResponse&) = default;
};

std::string encode(const ControlPartitionsRequest&);
std::string encode(const ControlPartitionsResponse&);
base::Result<ControlPartitionsRequest> decode_control_partitions_request(base::Bytes header);
base::Result<ControlPartitionsResponse> decode_control_partitions_response(base::Bytes header);

}  // namespace mq::protocol
