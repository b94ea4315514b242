#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/ids.h"
#include "protocol/status.h"

namespace mq::protocol {

enum class Acks : std::uint8_t { none, leader, all };

/// One batch for one partition; the payload holds the batches in the order of the entries.
struct ProduceEntry {
  model::PartitionId partition;
  std::uint32_t batch_bytes = 0;
  /// Per connection and partition: 0 starts anew, else exactly one above the batch before it
  /// (PROTOCOL.md, Order).
  std::uint64_t sequence = 0;
  friend bool operator==(const ProduceEntry&, const ProduceEntry&) = default;
};
struct ProduceRequest {
  RequestEnvelope envelope;
  Acks acks = Acks::all;
  std::vector<ProduceEntry> entries;
  friend bool operator==(const ProduceRequest&, const ProduceRequest&) = default;
};
struct ProduceResult {
  model::PartitionId partition;
  Status status;
  model::Offset base_offset;
  std::int64_t append_time_ms = -1;
  model::LeaderEpoch leader_epoch;
  friend bool operator==(const ProduceResult&, const ProduceResult&) = default;
};
struct ProduceResponse {
  ResponseEnvelope envelope;
  std::vector<ProduceResult> results;  ///< one per entry, same order
  friend bool operator==(const ProduceResponse&, const ProduceResponse&) = default;
};

std::string encode(const ProduceRequest&);
std::string encode(const ProduceResponse&);
base::Result<ProduceRequest> decode_produce_request(base::Bytes header);
base::Result<ProduceResponse> decode_produce_response(base::Bytes header);

}  // namespace mq::protocol
