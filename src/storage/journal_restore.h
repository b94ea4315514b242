#pragma once

#include <string>

#include "storage/journal_reader.h"

namespace mq::storage {

/// A batch above the recovery point that stands in its segment, by the journal's word.
struct RestoredBatch {
  model::Offset segment_base;
  std::uint64_t position = 0;
  std::uint32_t bytes = 0;
  model::Offset base;
  model::Offset end;
  model::LeaderEpoch leader_epoch;
  std::int64_t append_time_ms = -1;
};

/// Puts back into the segments in `directory` (which exists) what the journal holds of a log and
/// the segments do not, finishes a cut that the crash broke off, and syncs what it wrote. Blocks.
/// Returns its batches in order. Errors: the disk's; partition_corrupt (`problem` tells) when the
/// journal cannot be read back, or does not reach down to what the segments hold.
Result<std::vector<RestoredBatch>> restore_from_journal(
    base::FileSystem& files, const std::string& directory, const JournalReplay& replay,
    const ReplayedLog& log, model::Offset log_start, std::string& problem);

/// What recovery goes by: the checkpoint with what the journal knows better. The recovery point
/// stays the checkpoint's, which names the segments below it, unless a cut in the journal lies
/// below it.
LogCheckpoint merge_checkpoint(LogCheckpoint checkpoint, const ReplayedLog& log);

}  // namespace mq::storage
