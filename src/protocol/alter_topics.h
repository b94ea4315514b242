#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/topics.h"

namespace mq::protocol {

/// Changes settings of a topic that exists; what is not named stays.
struct AlterTopic {
  std::string name;
  std::map<std::string, std::string> set;  ///< as text: "retention.age" = "14d"
  std::vector<std::string> unset;          ///< back to what the broker's defaults say
  friend bool operator==(const AlterTopic&, const AlterTopic&) = default;
};
struct AlterTopicsRequest {
  RequestEnvelope envelope;
  std::vector<AlterTopic> topics;
  friend bool operator==(const AlterTopicsRequest&, const AlterTopicsRequest&) = default;
};
struct AlterTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicResult> results;
  friend bool operator==(const AlterTopicsResponse&, const AlterTopicsResponse&) = default;
};

std::string encode(const AlterTopicsRequest&);
std::string encode(const AlterTopicsResponse&);
base::Result<AlterTopicsRequest> decode_alter_topics_request(base::Bytes header);
base::Result<AlterTopicsResponse> decode_alter_topics_response(base::Bytes header);

}  // namespace mq::protocol
