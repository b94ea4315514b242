#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/damaged_place.h"
#include "model/ids.h"
#include "protocol/status.h"

namespace mq::protocol {

enum class ReplicaState : std::uint8_t {
  opened = 0,  ///< recovered, or newly made: it may lead
  failed = 1,  ///< it cannot be served; the text says why
  /// Opened, and named as leader, and its own log stands still while appends wait for it, or is
  /// damaged in places: another one of the ISR or ELR should lead.
  resigns = 2,
  /// Opened, and named as leader in an epoch that has been in its log already: it needs a later
  /// one.
  needs_epoch = 3,
};

/// What a broker has found out about one replica of its own.
struct ReplicaReport {
  model::PartitionId partition;
  ReplicaState state = ReplicaState::opened;
  /// The newest in the log; -1: none. Of one that failed and is going to be another one: the newest
  /// in which a leader may have heard of it.
  model::LeaderEpoch last_leader_epoch;
  model::Offset log_end_offset;  ///< -1 if it failed
  model::Offset high_watermark;  ///< the log is as it was confirmed up to here; -1: not told
  /// Since this registration nothing can be missing from the log.
  model::BrokerEpoch intact_since;
  Status reason;  ///< of one that failed; of one that is damaged in places, which
  /// What cannot be read of a log that is served otherwise: the first few places.
  std::vector<model::DamagedPlace> damage;
  friend bool operator==(const ReplicaReport&, const ReplicaReport&) = default;
};
/// Each replica is reported once for each registration of its broker, and again when a leader epoch
/// was not above the log's.
struct ReportReplicasRequest {
  RequestEnvelope envelope;
  std::int32_t broker = -1;
  std::int64_t broker_epoch = -1;
  std::vector<ReplicaReport> replicas;
  std::vector<base::Uuid> deleted;  ///< topics of which this broker has no file any more
  friend bool operator==(const ReportReplicasRequest&, const ReportReplicasRequest&) = default;
};
/// OK: the controller has taken all of it in. Reports may be repeated.
struct ReportReplicasResponse {
  ResponseEnvelope envelope;
  friend bool operator==(const ReportReplicasResponse&, const ReportReplicasResponse&) = default;
};

/// Entries of one request, replicas and deleted topics together.
inline constexpr std::size_t kReportsMax = 2000;
inline constexpr std::size_t kDamagedPlacesMax = 16;

std::string encode(const ReportReplicasRequest&);
std::string encode(const ReportReplicasResponse&);
base::Result<ReportReplicasRequest> decode_report_replicas_request(base::Bytes header);
base::Result<ReportReplicasResponse> decode_report_replicas_response(base::Bytes header);

}  // namespace mq::protocol
