#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/ids.h"
#include "model/isr.h"
#include "protocol/status.h"

namespace mq::protocol {

/// The ISR that the leader of a partition asks for. It names the leader epoch and the version of
/// the state that it goes by.
struct IsrProposal {
  model::PartitionId partition;
  model::LeaderEpoch leader_epoch;
  model::PartitionVersion version;
  std::vector<model::IsrMember> isr;
  friend bool operator==(const IsrProposal&, const IsrProposal&) = default;
};
struct AlterIsrRequest {
  RequestEnvelope envelope;
  std::int32_t broker = -1;
  std::int64_t broker_epoch = -1;  ///< of its registration; another one is STALE_BROKER_EPOCH
  std::vector<IsrProposal> entries;
  friend bool operator==(const AlterIsrRequest&, const AlterIsrRequest&) = default;
};

/// A partition as the store has it.
struct IsrState {
  model::BrokerId leader;
  model::LeaderEpoch leader_epoch;
  model::PartitionVersion version;  ///< -1: the controller knows no such partition
  std::vector<model::IsrMember> isr;
  std::uint32_t min_isr = 0;
  friend bool operator==(const IsrState&, const IsrState&) = default;
};
/// OK: `state` has the ISR that was asked for, and a higher version. A refusal has the state that
/// is in force instead. TIMED_OUT and METADATA_… prove nothing: the ISR may still come to be the
/// one that was asked for.
struct IsrResult {
  model::PartitionId partition;
  Status status;
  IsrState state;
  friend bool operator==(const IsrResult&, const IsrResult&) = default;
};
struct AlterIsrResponse {
  ResponseEnvelope envelope;
  std::vector<IsrResult> results;  ///< in the order of the entries
  friend bool operator==(const AlterIsrResponse&, const AlterIsrResponse&) = default;
};

/// Entries of one request.
inline constexpr std::size_t kIsrProposalsMax = 2000;

std::string encode(const AlterIsrRequest&);
std::string encode(const AlterIsrResponse&);
base::Result<AlterIsrRequest> decode_alter_isr_request(base::Bytes header);
base::Result<AlterIsrResponse> decode_alter_isr_response(base::Bytes header);

}  // namespace mq::protocol
