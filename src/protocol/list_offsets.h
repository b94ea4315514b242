#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/ids.h"
#include "protocol/status.h"

namespace mq::protocol {

enum class OffsetPoint : std::uint8_t {
  earliest,  ///< log start
  latest,    ///< high watermark: the next record a consumer will see
};
struct ListOffsetsEntry {
  model::PartitionId partition;
  OffsetPoint point = OffsetPoint::earliest;
  friend bool operator==(const ListOffsetsEntry&, const ListOffsetsEntry&) = default;
};
struct ListOffsetsRequest {
  RequestEnvelope envelope;
  std::vector<ListOffsetsEntry> entries;
  friend bool operator==(const ListOffsetsRequest&, const ListOffsetsRequest&) = default;
};
struct ListOffsetsResult {
  model::PartitionId partition;
  Status status;
  model::Offset offset;
  model::LeaderEpoch leader_epoch;
  friend bool operator==(const ListOffsetsResult&, const ListOffsetsResult&) = default;
};
struct ListOffsetsResponse {
  ResponseEnvelope envelope;
  std::vector<ListOffsetsResult> results;
  friend bool operator==(const ListOffsetsResponse&, const ListOffsetsResponse&) = default;
};

std::string encode(const ListOffsetsRequest&);
std::string encode(const ListOffsetsResponse&);
base::Result<ListOffsetsRequest> decode_list_offsets_request(base::Bytes header);
base::Result<ListOffsetsResponse> decode_list_offsets_response(base::Bytes header);

}  // namespace mq::protocol
