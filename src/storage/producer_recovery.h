#pragma once

#include <string>
#include <vector>

#include "storage/disk_files.h"
#include "storage/producer_snapshot.h"

namespace mq::storage {

/// How many `.producers` files a partition keeps: the newest may be damaged, or above the log end
/// after a power cut.
inline constexpr std::size_t kProducerSnapshotsKept = 3;

/// A log as its recovery has found it.
struct ProducerRecoverySpec {
  struct Segment {
    model::Offset base_offset;
    std::uint64_t bytes = 0;
  };
  model::PartitionId partition;
  std::string directory;
  model::Offset log_start_offset;
  std::vector<Segment> segments;         ///< ascending; never none
  SyncPoint end;                         ///< the log end
  std::vector<model::Offset> snapshots;  ///< whose files are there, in any order
  /// A clean stop left the log as it is: a snapshot of its end is taken at its word.
  bool clean = false;
};

struct RecoveredProducers {
  ProducerTable table;
  BatchPlace last_batch;                 ///< of the log
  std::vector<model::Offset> snapshots;  ///< of the files that are left, ascending
  std::uint64_t bytes_scanned = 0;
  std::string problem;  ///< not empty: a batch below the log end is damaged; nothing else is set
};

/// The producer table of a log: from the newest snapshot that belongs to it, and the batches behind
/// that one; without any, from the batches of about the last 24 hours by append time. Removes,
/// durably, snapshots above the log end: the log will grow past them with other batches. Blocks;
/// runs on a disk thread. An error is the disk's.
Result<RecoveredProducers> recover_producers(base::FileSystem& files,
                                             const ProducerRecoverySpec& spec);

}  // namespace mq::storage
