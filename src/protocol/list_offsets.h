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
  at_time,   ///< the first record appended at `time_ms` or later; latest when there is none
};
/// The first version of ListOffsets that knows at_time.
inline constexpr std::uint8_t kListOffsetsByTime = 1;

struct ListOffsetsEntry {
  model::PartitionId partition;
  OffsetPoint point = OffsetPoint::earliest;
  std::int64_t time_ms = 0;  ///< of at_time: by the broker's clock, since 1970, from 0 on
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
  std::int64_t append_time_ms = -1;  ///< at_time: of the record found; -1: none, or not asked for
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
