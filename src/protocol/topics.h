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
  friend bool operator==(const NewTopic&, const NewTopic&) = default;
};
struct CreateTopicsRequest {
  RequestEnvelope envelope;
  std::vector<NewTopic> topics;
  bool validate_only = false;
  friend bool operator==(const CreateTopicsRequest&, const CreateTopicsRequest&) = default;
};
/// One outcome per item of a change.
struct TopicResult {
  std::string name;
  Status status;
  base::Uuid id;
  std::int32_t partitions = 0;
  friend bool operator==(const TopicResult&, const TopicResult&) = default;
};
struct CreateTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicResult> results;
  friend bool operator==(const CreateTopicsResponse&, const CreateTopicsResponse&) = default;
};
struct DeleteTopicsRequest {
  RequestEnvelope envelope;
  std::vector<std::string> names;
  friend bool operator==(const DeleteTopicsRequest&, const DeleteTopicsRequest&) = default;
};
struct DeleteTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicResult> results;
  friend bool operator==(const DeleteTopicsResponse&, const DeleteTopicsResponse&) = default;
};
struct ListTopicsRequest {
  RequestEnvelope envelope;
  friend bool operator==(const ListTopicsRequest&, const ListTopicsRequest&) = default;
};
struct TopicSummary {
  std::string name;
  base::Uuid id;
  std::int32_t partitions = 0;
  std::int32_t replicas = 0;
  // Of the partitions that the broker asked leads:
  std::uint64_t bytes = 0;    ///< on disk
  std::uint64_t records = 0;  ///< high watermark - log start, summed
  std::int32_t partitions_not_serving = 0;
  std::int32_t partitions_led = 0;
  friend bool operator==(const TopicSummary&, const TopicSummary&) = default;
};
struct ListTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicSummary> topics;  ///< by name
  friend bool operator==(const ListTopicsResponse&, const ListTopicsResponse&) = default;
};
struct DescribeTopicsRequest {
  RequestEnvelope envelope;
  std::vector<std::string> names;
  friend bool operator==(const DescribeTopicsRequest&, const DescribeTopicsRequest&) = default;
};
struct TopicSetting {
  std::string name;
  std::string value;
  std::string origin;  ///< "topic", "broker.toml" (the controller's), "built-in"
  friend bool operator==(const TopicSetting&, const TopicSetting&) = default;
};
/// A follower as the leader has heard of it.
struct FollowerDescription {
  std::int32_t broker = -1;
  std::int64_t confirmed_end = -1;  ///< below it, it has everything; -1: not heard of
  std::uint32_t behind_ms = 0;      ///< so long ago it had everything that the leader had
  friend bool operator==(const FollowerDescription&, const FollowerDescription&) = default;
};
/// Of a replica.
struct ReplicaNote {
  std::int32_t broker = -1;
  std::string text;  ///< why it does not lead while nobody does; or that it is damaged, and where
  friend bool operator==(const ReplicaNote&, const ReplicaNote&) = default;
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
  std::uint32_t min_isr = 1;
  std::int32_t loss_epoch = -1;  ///< leader epoch that began with a possible loss; -1: none
  std::int64_t loss_start = -1;  ///< of what may be lost; -1: not known
  std::int64_t loss_end = -1;    ///< the same
  std::vector<FollowerDescription> followers;
  /// Where nobody leads: one for each replica; else that of the broker asked, if it is damaged.
  std::vector<ReplicaNote> replica_notes;
  friend bool operator==(const PartitionDescription&, const PartitionDescription&) = default;
};
struct TopicDescription {
  std::string name;
  Status status;
  base::Uuid id;
  std::vector<TopicSetting> settings;
  std::vector<PartitionDescription> partitions;
  friend bool operator==(const TopicDescription&, const TopicDescription&) = default;
};
struct DescribeTopicsResponse {
  ResponseEnvelope envelope;
  std::vector<TopicDescription> topics;
  friend bool operator==(const DescribeTopicsResponse&, const DescribeTopicsResponse&) = default;
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
