#pragma once

#include <optional>
#include <span>

#include "storage/partition_log.h"

namespace mq::replication {

/// Where an epoch ends in a log: the offset behind its last record.
struct EpochEnd {
  model::LeaderEpoch epoch;  ///< -1: before the first epoch that the log knows
  model::Offset end_offset;  ///< exclusive
  friend bool operator==(const EpochEnd&, const EpochEnd&) = default;
};

/// The largest epoch of `starts` that is not above `epoch`, and where it ends in a log that ends at
/// `log_end`. `starts` ascend, as PartitionLog::epoch_starts() gives them. An epoch that begins at
/// the log end is empty: nothing was appended in it.
[[nodiscard]] EpochEnd end_of_epoch(std::span<const storage::EpochStart> starts,
                                    model::Offset log_end, model::LeaderEpoch epoch);

/// On the leader: whether a follower's log that ends at `end`, with a batch of `last_epoch`, goes
/// another way than the leader's own. Nothing: it is a prefix of it. Otherwise where the follower
/// has to look for the point up to which the two agree: at min(end_offset, its own end of that
/// epoch), where it cuts and asks again. An empty log (`last_epoch` -1) goes along with any that
/// reaches its offset.
[[nodiscard]] std::optional<EpochEnd> divergence(std::span<const storage::EpochStart> starts,
                                                 model::Offset log_end,
                                                 model::LeaderEpoch last_epoch, model::Offset end);

/// On the follower: where its own log, with these `starts`, is to be cut after that answer.
[[nodiscard]] model::Offset cut_for(std::span<const storage::EpochStart> starts,
                                    model::Offset log_end, const EpochEnd& answer);

}  // namespace mq::replication
