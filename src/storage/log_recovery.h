#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/disk_files.h"
#include "storage/disk_state.h"
#include "storage/journal_restore.h"
#include "storage/offset_index.h"
#include "storage/producer_snapshot.h"

namespace mq::storage {

/// What recovery is told about one partition. Blocks; runs on a disk thread.
struct RecoverySpec {
  model::PartitionId id;
  std::string topic_name;
  std::string directory;
  /// What the disk's checkpoint says of the log, if it knows it.
  std::optional<LogCheckpoint> checkpoint;
  /// The checkpoint itself is missing or damaged: only the last segment may be torn.
  bool checkpoint_lost = false;
  /// What the clean marker says; only with a checkpoint.
  std::optional<CleanMarker::Log> clean;
  /// What the journal holds of the log, if it knows it; `checkpoint` has its log start and cuts.
  const JournalReplay* replay = nullptr;
  const ReplayedLog* journal = nullptr;
  /// Where it begins if it is made anew.
  model::Offset start{0};
};

/// A log as recovery found it, ready to be served, or offline with a failure.
struct RecoveredLog {
  struct Segment {
    model::Offset base_offset;
    std::uint64_t bytes = 0;
  };
  model::Offset log_start_offset{0};
  Error failure;                  ///< partition_corrupt or unsupported_format
  std::string problem;            ///< what is wrong, for people
  std::vector<Segment> segments;  ///< ascending; the last one is written on. Empty with a failure.
  SyncPoint end;                  ///< the log end; everything below it is synced
  std::vector<EpochStart> epoch_starts;
  OffsetIndex active_index{model::Offset(0), 0};
  std::uint64_t active_index_from = 0;  ///< the indexes lack what is below this position
  TimeIndex active_times{model::Offset(0), 0};
  ProducerTable producers;
  BatchPlace last_batch;
  std::vector<model::DamagedPlace> damage;        ///< known from runs before, and still there
  std::vector<model::Offset> producer_snapshots;  ///< whose files are there, ascending
  std::uint64_t producer_bytes_scanned = 0;       ///< read once more, for `producers`
  std::uint64_t bytes_scanned = 0;
  std::uint64_t bytes_cut = 0;
};

/// Makes empty logs: directories, topic files, first segments; when it returns all are durable
/// (REC-8). Everything is made first and synced afterwards, which costs a journalling file system
/// little more than one log. A directory that is there already is taken.
/// Errors: storage_full, io_failed, disk_failed; what was made until then stays and does no harm.
Result<std::vector<RecoveredLog>> create_log_files(DiskState& disk,
                                                   std::span<const RecoverySpec> specs);

/// Opens the log in `spec.directory`, which exists: takes a clean one at its word, else scans from
/// the recovery point, cuts a torn tail and syncs what is kept. REC-1: below the recovery point
/// nothing is ever cut. An error is the disk's and takes it offline; damage is in the result.
Result<RecoveredLog> recover_log(DiskState& disk, const RecoverySpec& spec);

}  // namespace mq::storage
