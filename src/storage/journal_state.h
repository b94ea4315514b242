#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "storage/journal_format.h"

namespace mq::storage {

/// Applies what an entry says to what is known of its partition. Writer and replay both keep their
/// states through these, so that a snapshot says what replay would have found out.
void apply_cut(JournalLogState& state, const JournalCut& cut);
void apply_recovery_point(JournalLogState& state, const SyncPoint& point);
void apply_epoch_start(JournalLogState& state, const EpochStart& start);
void apply_append(JournalLogState& state, model::Offset durable, model::Offset end);
void apply_restart(JournalLogState& state, const JournalRestart& restart);
[[nodiscard]] JournalLogState created_log(const JournalCreate& create);
/// A restart that is not done in the files yet: nothing that lies there is the log's.
[[nodiscard]] bool begins_anew(const JournalLogState& state);

/// Bytes in a journal file that belong at a place in a segment.
struct JournalWrite {
  model::Offset segment_base;
  std::uint64_t position = 0;
  std::uint32_t bytes = 0;
  std::uint32_t file = 0;  ///< index into JournalReplay::files
  std::uint64_t at = 0;    ///< in that file
  model::Offset base;      ///< of the batch; -1: an image of a block
  model::Offset end;       ///< of the batch
  model::LeaderEpoch leader_epoch;
};

/// One partition as replay found it.
struct ReplayedLog {
  JournalLogState state;
  /// In the order in which they apply; those wholly in blocks below the recovery point are left
  /// out.
  std::vector<JournalWrite> writes;
  /// The batches in `writes` lie one behind the other from here up to state.end.
  model::Offset covered_from;
  /// The lowest end that a cut gave the log which is not recorded as done yet.
  std::optional<SyncPoint> lowest_cut;

  /// Something above the recovery point is missing in the journal.
  [[nodiscard]] bool gap() const noexcept {
    return state.recovery_point.offset < covered_from && state.recovery_point.offset < state.end;
  }
  /// Below it nothing may be cut (REC-1).
  [[nodiscard]] model::Offset bound() const noexcept {
    return std::max({state.recovery_point.offset, state.durable, state.end});
  }
};

}  // namespace mq::storage
