#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "protocol/status.h"

namespace mq::protocol {

struct DescribeBrokerRequest {
  RequestEnvelope envelope;
  friend bool operator==(const DescribeBrokerRequest&, const DescribeBrokerRequest&) = default;
};
struct DiskDescription {
  std::string path;
  std::string state;             ///< "ok", "full", "failed", "recovering"
  std::uint64_t bytes_used = 0;  ///< by this broker's logs
  std::uint64_t bytes_free = 0;
  std::uint64_t bytes_total = 0;
  std::uint32_t partitions = 0;
  base::Uuid disk;               ///< zero: not known
  std::string reason;            ///< why it is not ok
  std::uint64_t write_rate = 0;  ///< bytes appended per second, of late
  std::uint64_t scrubbed_bytes = 0;
  std::uint32_t scrub_damaged_segments = 0;
  /// The broker epochs since which nothing confirmed can be missing, by durability; -1: not known.
  std::int64_t intact_since_disk = -1;
  std::int64_t intact_since_memory = -1;
  /// What was put aside instead of being served, until somebody removes it (unknown/).
  std::uint64_t aside_bytes = 0;
  std::uint32_t aside_logs = 0;
  friend bool operator==(const DiskDescription&, const DiskDescription&) = default;
};
/// Something that keeps the cluster from being well, for whoever watches over it.
struct BrokerAlert {
  std::string check;        ///< one word, as `mqctl health` names it
  std::uint32_t level = 1;  ///< from which on health is bad because of it, as `mqctl health` counts
  std::string text;
  friend bool operator==(const BrokerAlert&, const BrokerAlert&) = default;
};
struct DescribeBrokerResponse {
  ResponseEnvelope envelope;
  std::int32_t broker_id = -1;
  std::string version;
  base::Uuid cluster_id;
  std::string metadata_kind;  ///< "local" or "zookeeper"
  std::int64_t uptime_ms = 0;
  std::int64_t process_id = 0;
  std::uint64_t resident_bytes = 0;
  std::int64_t cpu_user_ms = 0;
  std::int64_t cpu_system_ms = 0;
  std::uint32_t workers = 0;
  std::uint32_t connections = 0;
  std::uint32_t topics = 0;
  std::uint32_t partitions = 0;  ///< with a replica here
  std::uint32_t partitions_led = 0;
  std::uint32_t partitions_not_serving = 0;  ///< led here, but not served
  std::uint32_t partitions_damaged = 0;      ///< with a replica here that is damaged in places
  std::uint32_t partitions_recovering = 0;
  std::uint64_t recovery_bytes_read = 0;
  std::vector<DiskDescription> disks;
  std::map<std::string, std::int64_t> counters;
  std::int32_t controller = -1;    ///< whom this broker takes for it; -1: nobody
  std::int64_t broker_epoch = -1;  ///< of its registration
  std::string rack;
  /// How far its wall clock is ahead of the median of the brokers'; nothing: not compared.
  std::optional<std::int64_t> clock_ahead_ms;
  std::string metadata_trouble;  ///< what keeps the metadata store from answering; empty: nothing
  bool lease_lost = false;       ///< the store has not confirmed the broker's session of late
  std::vector<std::string> warnings;  ///< lines that `mqctl status` repeats
  std::vector<BrokerAlert> alerts;    ///< not what the numbers above say already
  friend bool operator==(const DescribeBrokerResponse&, const DescribeBrokerResponse&) = default;
};

std::string encode(const DescribeBrokerRequest&);
std::string encode(const DescribeBrokerResponse&);
base::Result<DescribeBrokerRequest> decode_describe_broker_request(base::Bytes header);
base::Result<DescribeBrokerResponse> decode_describe_broker_response(base::Bytes header);

}  // namespace mq::protocol
