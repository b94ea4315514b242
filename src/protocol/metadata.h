#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "protocol/status.h"

namespace mq::protocol {

struct MetadataRequest {
  RequestEnvelope envelope;
  bool all_topics = false;
  std::vector<std::string> topics;  ///< by name
  std::uint64_t newer_than =
      0;  ///< wait (up to the deadline) for a cluster image above this version; 0: at once
  friend bool operator==(const MetadataRequest&, const MetadataRequest&) = default;
};
struct BrokerAddress {
  std::int32_t id = -1;
  std::string host;
  std::uint32_t port = 0;
  bool away = false;  ///< registered, but not in the cluster now; nothing is led there
  std::string rack{};
  friend bool operator==(const BrokerAddress&, const BrokerAddress&) = default;
};
struct PartitionMetadata {
  std::int32_t partition = -1;
  std::int32_t leader = -1;  ///< -1: none
  std::int32_t leader_epoch = -1;
  std::int32_t partition_version = -1;
  std::vector<std::int32_t> replicas;
  std::vector<std::int32_t> in_sync;
  std::uint32_t min_isr = 0;  ///< with fewer in sync acks=all is refused; 0: not known
  friend bool operator==(const PartitionMetadata&, const PartitionMetadata&) = default;
};
struct TopicMetadata {
  Status status;  ///< UNKNOWN_TOPIC names the nearest existing topic in its text
  std::string name;
  base::Uuid id;
  std::uint32_t batch_bytes_max = 0;
  std::vector<PartitionMetadata> partitions;  ///< ascending
  friend bool operator==(const TopicMetadata&, const TopicMetadata&) = default;
};
struct MetadataResponse {
  ResponseEnvelope envelope;
  base::Uuid cluster_id;
  std::int32_t controller = -1;
  std::vector<BrokerAddress> brokers;
  std::vector<TopicMetadata> topics;  ///< in the order asked, or by name for all
  friend bool operator==(const MetadataResponse&, const MetadataResponse&) = default;
};

std::string encode(const MetadataRequest&);
std::string encode(const MetadataResponse&);
base::Result<MetadataRequest> decode_metadata_request(base::Bytes header);
base::Result<MetadataResponse> decode_metadata_response(base::Bytes header);

}  // namespace mq::protocol
