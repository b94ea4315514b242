#pragma once

#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/ids.h"
#include "storage/disk.h"
#include "storage/storage_error.h"

/// Operations on the files of one partition's directory that more than one caller needs. They
/// block.
namespace mq::storage {

/// Both indexes of the segment that begins at `base`, as far as they are there.
Result<void> remove_segment_caches(base::FileSystem& files, const std::string& directory,
                                   model::Offset base);
/// Makes `directory`, which exists, that of an empty log that begins at `start`, durably: whatever
/// other segments, indexes and snapshots there are goes.
Result<void> empty_log_directory(base::FileSystem& files, const std::string& directory,
                                 model::Offset start);
/// Moves the partition directory `name` of the data directory under unknown/, durably, where it is
/// kept until somebody removes it. Returns its path there. Also BaseErrc::no_space.
Result<std::string> put_away(base::FileSystem& files, const std::string& data,
                             const std::string& name);

/// What was moved there so far. Files that go meanwhile are not counted.
Result<PutAside> measure_put_aside(base::FileSystem& files, const std::string& data);

/// A segment and how much of it there is.
struct SegmentBytes {
  model::Offset base;
  std::uint64_t bytes = 0;
};
/// Copies segments of it there, durably. One that is gone is left out; what the disk cannot read is
/// zeros in the copy. Where to; also BaseErrc::no_space. Nothing of it is left after an error.
Result<std::string> copy_segments_away(base::FileSystem& files, const std::string& data,
                                       const std::string& name,
                                       const std::vector<SegmentBytes>& segments);

/// Moves single segments of it there, into a directory like it, and removes their indexes. From the
/// end, so that a crash in between leaves a log without a gap. Of the first one, what it begins
/// with stays and all of it is copied, if `beginning` says how much that is; else an empty segment
/// that begins at `end` takes their place. `segments` is ascending.
Result<std::string> put_segments_away(base::FileSystem& files, const std::string& data,
                                      const std::string& name,
                                      const std::vector<model::Offset>& segments, model::Offset end,
                                      std::uint64_t beginning);

}  // namespace mq::storage
