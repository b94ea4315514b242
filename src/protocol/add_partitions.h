#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/topics.h"

namespace mq::protocol {

/// Gives a topic more partitions. It names how many there are to be, not how many come, so that a
/// repeat changes nothing.
struct PartitionTotal {
  std::string name;
  std::int32_t total = 0;  ///< at least what there is
  friend bool operator==(const PartitionTotal&, const PartitionTotal&) = default;
};
struct AddPartitionsRequest {
  RequestEnvelope envelope;
  std::vector<PartitionTotal> topics;
  friend bool operator==(const AddPartitionsRequest&, const AddPartitionsRequest&) = default;
};
struct AddPartitionsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicResult> results;  ///< with the number of partitions there are now
  friend bool operator==(const AddPartitionsResponse&, const AddPartitionsResponse&) = default;
};

std::string encode(const AddPartitionsRequest&);
std::string encode(const AddPartitionsResponse&);
base::Result<AddPartitionsRequest> decode_add_partitions_request(base::Bytes header);
base::Result<AddPartitionsResponse> decode_add_partitions_response(base::Bytes header);

}  // namespace mq::protocol
