#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/ids.h"
#include "protocol/status.h"

namespace mq::protocol {

/// Between brokers: a follower fetches what the leader of its partitions has appended. What is
/// fetched stands on the connection; a request carries only what changed.
///
/// `number` tells the subscriptions of one partition on one connection apart: it rises with each.
struct ReplicaSubscribe {
  model::PartitionId partition;
  std::uint32_t number = 0;
  model::LeaderEpoch leader_epoch;  ///< the one that the follower follows
  model::LeaderEpoch last_epoch;    ///< of the last batch in the follower's log; -1: none
  model::Offset log_start;
  /// End of the follower's log: batches are sent from here on.
  model::Offset appended;
  model::Offset durable;
  friend bool operator==(const ReplicaSubscribe&, const ReplicaSubscribe&) = default;
};
/// What a follower has, not what was sent to it.
struct ReplicaPosition {
  model::PartitionId partition;
  std::uint32_t number = 0;
  model::Offset appended;
  model::Offset durable;
  model::Offset log_start{0};
  friend bool operator==(const ReplicaPosition&, const ReplicaPosition&) = default;
};
struct ReplicaFetchRequest {
  RequestEnvelope envelope;
  std::int32_t broker = -1;
  /// Of its registration. Another one than that of the request before on this connection ends all
  /// subscriptions.
  std::int64_t broker_epoch = -1;
  std::uint32_t wait_ms = 0;  ///< held until there is something to send, or this long
  std::uint32_t bytes_max = 0;
  std::vector<model::PartitionId> unsubscribe;  ///< taken in before `subscribe`
  std::vector<ReplicaSubscribe> subscribe;
  std::vector<ReplicaPosition> positions;  ///< of those whose position changed
  friend bool operator==(const ReplicaFetchRequest&, const ReplicaFetchRequest&) = default;
};

/// The follower's log is not the leader's: the largest leader epoch that the leader knows up to the
/// follower's last one, and where it ends in the leader's log.
struct Divergence {
  model::LeaderEpoch epoch;
  model::Offset end_offset;
  friend bool operator==(const Divergence&, const Divergence&) = default;
};
struct ReplicaFetchResult {
  model::PartitionId partition;
  std::uint32_t number = 0;  ///< of the subscription
  /// NOT_LEADER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_OUT_OF_RANGE or the failure of
  /// the leader's log. After an error, or a divergence, nothing comes until the follower subscribes
  /// again.
  Status status;
  model::LeaderEpoch leader_epoch;
  model::Offset high_watermark;
  model::Offset log_start;
  std::optional<Divergence> diverging;
  std::uint32_t payload_bytes = 0;  ///< whole batches, in the order of the results
  friend bool operator==(const ReplicaFetchResult&, const ReplicaFetchResult&) = default;
};
struct ReplicaFetchResponse {
  ResponseEnvelope envelope;
  std::vector<ReplicaFetchResult> results;  ///< only of partitions with news
  friend bool operator==(const ReplicaFetchResponse&, const ReplicaFetchResponse&) = default;
};

/// How many requests of one connection the leader holds. When another one arrives, the oldest is
/// answered with what there is.
inline constexpr std::size_t kReplicaFetchesHeld = 2;
/// The longest wait that a follower may ask for.
inline constexpr std::uint32_t kReplicaFetchWaitMsMax = 500;
/// Entries of each list of one request, results of one answer. A follower of more partitions
/// subscribes with several requests.
inline constexpr std::size_t kReplicaFetchEntriesMax = 4000;

std::string encode(const ReplicaFetchRequest&);
std::string encode(const ReplicaFetchResponse&);
base::Result<ReplicaFetchRequest> decode_replica_fetch_request(base::Bytes header);
base::Result<ReplicaFetchResponse> decode_replica_fetch_response(base::Bytes header);

}  // namespace mq::protocol
