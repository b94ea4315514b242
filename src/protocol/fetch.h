#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/ids.h"
#include "protocol/status.h"

namespace mq::protocol {

struct FetchEntry {
  model::PartitionId partition;
  model::Offset offset;         ///< first wanted; the first batch may begin below it
  std::uint32_t bytes_max = 0;  ///< the first batch is sent whatever this says
  bool of_leader = false;       ///< no other replica will do, whatever the rack
  friend bool operator==(const FetchEntry&, const FetchEntry&) = default;
};
struct FetchRequest {
  RequestEnvelope envelope;
  std::uint32_t wait_ms = 0;  ///< held until min_bytes are there or this long
  std::uint32_t bytes_min = 1;
  std::uint32_t bytes_max = 0;  ///< over all entries
  std::vector<FetchEntry> entries;
  /// Where the client is. Replicas that are in sync serve it, and a leader names one of that rack.
  /// Empty: leaders only.
  std::string rack;
  friend bool operator==(const FetchRequest&, const FetchRequest&) = default;
};
struct FetchResult {
  model::PartitionId partition;
  Status status;
  model::Offset high_watermark;
  model::Offset log_start_offset;
  model::LeaderEpoch leader_epoch;
  std::uint32_t payload_bytes = 0;   ///< whole batches, in the order of the results
  std::int32_t nearer_replica = -1;  ///< a broker in the client's rack that has this too; -1: none
  friend bool operator==(const FetchResult&, const FetchResult&) = default;
};
struct FetchResponse {
  ResponseEnvelope envelope;
  std::vector<FetchResult> results;  ///< one per entry, same order; an answer of several frames has
                                     ///< each entry in one of them
  friend bool operator==(const FetchResponse&, const FetchResponse&) = default;
};

std::string encode(const FetchRequest&);
std::string encode(const FetchResponse&);
base::Result<FetchRequest> decode_fetch_request(base::Bytes header);
base::Result<FetchResponse> decode_fetch_response(base::Bytes header);

}  // namespace mq::protocol
