#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/ids.h"
#include "protocol/status.h"

namespace mq::protocol {

/// Removes records from the old end of a partition.
struct TrimEntry {
  model::PartitionId partition;
  model::Offset to{0};  ///< the first offset that stays; at most the high watermark
  friend bool operator==(const TrimEntry&, const TrimEntry&) = default;
};
struct TrimPartitionsRequest {
  RequestEnvelope envelope;
  std::vector<TrimEntry> entries;
  friend bool operator==(const TrimPartitionsRequest&, const TrimPartitionsRequest&) = default;
};
struct TrimResult {
  model::PartitionId partition;
  Status status;
  model::Offset log_start_offset;  ///< durable
  friend bool operator==(const TrimResult&, const TrimResult&) = default;
};
struct TrimPartitionsResponse {
  ResponseEnvelope envelope;
  std::vector<TrimResult> results;
  friend bool operator==(const TrimPartitionsResponse&, const TrimPartitionsResponse&) = default;
};

std::string encode(const TrimPartitionsRequest&);
std::string encode(const TrimPartitionsResponse&);
base::Result<TrimPartitionsRequest> decode_trim_partitions_request(base::Bytes header);
base::Result<TrimPartitionsResponse> decode_trim_partitions_response(base::Bytes header);

}  // namespace mq::protocol
