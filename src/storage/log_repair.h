#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "storage/disk_files.h"
#include "storage/log_inspect.h"

/// Changing the logs of a data directory from outside, for tools. Needs the directory's lock, so no
/// broker works there meanwhile.
namespace mq::storage {

struct RebuiltIndexes {
  std::uint32_t segments = 0;  ///< whose indexes were made again
  std::uint64_t batches_noted = 0;
  /// Where a segment does not hold; its indexes are gone and are not made.
  std::optional<VerifyReport::Damage> damage;
};
/// Removes every index of the partition and makes those of its segments anew (LOG-5).
Result<RebuiltIndexes> rebuild_indexes(base::FileSystem& files,
                                       const PartitionDirectory& partition);

/// What a cut behind `last_offset` would keep and take away.
struct TruncatePlan {
  model::Offset end;                     ///< of the log after the cut
  SyncPoint point;                       ///< the same, as recovery points say it
  std::vector<EpochStart> epoch_starts;  ///< of what stays
  std::vector<SegmentFile> whole;        ///< segments that go as a whole, ascending
  std::uint64_t bytes = 0;               ///< that go
  std::uint64_t records = 0;             ///< that go, as far as they can be read
  /// last_offset is not the last one of a batch, or no good batch holds it: the nearest below.
  std::optional<model::Offset> nearest;
};
/// Reads the log from its start. An error is the disk's.
Result<TruncatePlan> plan_truncate(base::FileSystem& files, const PartitionDirectory& partition,
                                   model::Offset last_offset);

/// Carries out a plan without `nearest`: first everything that goes is copied, durably, into
/// `aside`, a new directory, as segment files; then the checkpoint of the data directory `data`
/// says the new end, then the files are cut. `record` (may be empty) runs behind the copy and makes
/// the cut durable in the disk's journal. A crash in between leaves a log that ends at the new or
/// the old end.
Result<void> truncate_partition(base::FileSystem& files, const std::string& data,
                                const PartitionDirectory& partition, const TruncatePlan& plan,
                                const std::string& aside,
                                const std::function<Result<void>()>& record = {});

}  // namespace mq::storage
