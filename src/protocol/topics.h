#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "protocol/status.h"

namespace mq::protocol {

struct NewTopic {
  std::string name;
  std::int32_t partitions = -1;  ///< -1: the broker's default
  std::int32_t replicas = -1;
  std::int32_t min_isr = -1;
  std::map<std::string, std::string> settings;  ///< as text: "retention.age" = "14d"
};
struct CreateTopicsRequest {
  RequestEnvelope envelope;
  std::vector<NewTopic> topics;
  bool validate_only = false;
};
/// One outcome per item of create and delete.
struct TopicResult {
  std::string name;
  Status status;
  base::Uuid id;
  std::int32_t partitions = 0;
};
struct CreateTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicResult> results;
};
struct DeleteTopicsRequest {
  RequestEnvelope envelope;
  std::vector<std::string> names;
};
struct DeleteTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicResult> results;
};
struct ListTopicsRequest {
  RequestEnvelope envelope;
};
struct TopicSummary {
  std::string name;
  base::Uuid id;
  std::int32_t partitions = 0;
  std::int32_t replicas = 0;
  std::uint64_t bytes = 0;    ///< on disk, leaders only
  std::uint64_t records = 0;  ///< high watermark - log start, summed
  std::int32_t partitions_not_serving = 0;
};
struct ListTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicSummary> topics;  ///< by name
};
struct DescribeTopicsRequest {
  RequestEnvelope envelope;
  std::vector<std::string> names;
};
struct TopicSetting {
  std::string name;
  std::string value;
  std::string origin;  ///< "topic", "broker.toml", "built-in"
};
struct PartitionDescription {
  std::int32_t partition = -1;
  std::int32_t leader = -1;
  std::int32_t leader_epoch = -1;
  std::vector<std::int32_t> replicas;
  std::vector<std::int32_t> in_sync;
  std::int64_t log_start_offset = -1;
  std::int64_t high_watermark = -1;
  std::int64_t log_end_offset = -1;
  std::uint64_t bytes = 0;
  std::uint32_t segments = 0;
  std::string note;  ///< why it is not served; empty when it is
};
struct TopicDescription {
  std::string name;
  Status status;
  base::Uuid id;
  std::vector<TopicSetting> settings;
  std::vector<PartitionDescription> partitions;
};
struct DescribeTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicDescription> topics;
};

std::string encode(const CreateTopicsRequest&);
std::string encode(const CreateTopicsResponse&);
std::string encode(const DeleteTopicsRequest&);
std::string encode(const DeleteTopicsResponse&);
std::string encode(const ListTopicsRequest&);
std::string encode(const ListTopicsResponse&);
std::string encode(const DescribeTopicsRequest&);
std::string encode(const DescribeTopicsResponse&);
base::Result<CreateTopicsRequest> decode_create_topics_request(base::Bytes header);
base::Result<CreateTopicsResponse> decode_create_topics_response(base::Bytes header);
base::Result<DeleteTopicsRequest> decode_delete_topics_request(base::Bytes header);
base::Result<DeleteTopicsResponse> decode_delete_topics_response(base::Bytes header);
base::Result<ListTopicsRequest> decode_list_topics_request(base::Bytes header);
base::Result<ListTopicsResponse> decode_list_topics_response(base::Bytes header);
base::Result<DescribeTopicsRequest> decode_describe_topics_request(base::Bytes header);
base::Result<DescribeTopicsResponse> decode_describe_topics_response(base::Bytes header);

}  // namespace mq::protocol
