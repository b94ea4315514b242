#include "replication/epoch_history.h"

#include <algorithm>

namespace mq::replication {

using model::LeaderEpoch;
using model::Offset;
using storage::EpochStart;

EpochEnd end_of_epoch(std::span<const EpochStart> starts, Offset log_end, LeaderEpoch epoch) {
  const auto next = std::ranges::upper_bound(starts, epoch, {}, &EpochStart::leader_epoch);
  EpochEnd found;
  if (next != starts.begin()) found.epoch = std::prev(next)->leader_epoch;
  found.end_offset = next == starts.end() ? log_end : std::min(next->start_offset, log_end);
  return found;
}

std::optional<EpochEnd> divergence(std::span<const EpochStart> starts, Offset log_end,
                                   LeaderEpoch last_epoch, Offset end) {
  if (last_epoch == LeaderEpoch()) {
    if (end <= log_end) return std::nullopt;
    return EpochEnd{LeaderEpoch(), log_end};
  }
  const EpochEnd own = end_of_epoch(starts, log_end, last_epoch);
  if (own.epoch == last_epoch && own.end_offset >= end) return std::nullopt;
  return own;
}

Offset cut_for(std::span<const EpochStart> starts, Offset log_end, const EpochEnd& answer) {
  const EpochEnd own = end_of_epoch(starts, log_end, answer.epoch);
  return std::min(answer.end_offset, own.end_offset);
}

}  // namespace mq::replication
