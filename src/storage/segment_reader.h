#pragma once

#include <cstdint>
#include <optional>

#include "base/file_system.h"
#include "model/damaged_place.h"
#include "storage/offset_index.h"
#include "storage/partition_log.h"

namespace mq::storage {

/// What to read from one segment file.
struct SegmentRead {
  enum class Source {
    page_cache,  ///< never waits for the disk: not_cached instead
    disk         ///< may sleep
  };
  Source source = Source::page_cache;
  model::Offset from;
  model::Offset limit;  ///< exclusive end of what may be read
  std::size_t bytes_max = 0;
  std::uint64_t position = 0;  ///< a batch boundary at or below `from`
  model::Offset at;            ///< which batch begins there; -1: not known
  std::uint64_t end = 0;       ///< no byte from here on is looked at
  base::SharedBytes loaded;    ///< what stands at `position`, if it has been read already
};

struct SegmentReadResult {
  ReadResult read;
  std::uint64_t position = 0;  ///< behind what was read
  bool damage_met = false;     ///< before or behind what was read; `damage` is where
};

/// Reads whole batches in one piece. LOG-4: nothing is given out whose checksums do not hold. A
/// damaged batch below `from` is stepped over, if its length can be relied on.
/// Errors as PartitionLog::read(); for partition_corrupt, `damage` is where. Its segment is not
/// set.
Result<SegmentReadResult> read_segment(base::File& file, const SegmentRead& wanted,
                                       model::DamagedPlace& damage);

/// Makes the index of the first `bytes` bytes of a segment from its batch headers.
Result<SegmentIndex> rebuild_segment_index(base::File& file, model::Offset base_offset,
                                           std::uint64_t bytes, std::uint64_t stride_bytes);
/// A batch and when it was appended.
struct TimedBatch {
  model::Offset base_offset;
  std::int64_t append_time_ms = -1;
};
/// The first batch among the first `bytes` bytes of a segment that was appended at `time_ms` or
/// later, if there is one; `near` is where an index says to look. Blocks. LOG-5: a place that
/// cannot be right only makes it walk the whole segment. Errors and `damage` as read_segment().
Result<std::optional<TimedBatch>> find_batch_by_time(base::File& file, model::Offset base_offset,
                                                     std::uint64_t bytes, TimeIndex::Place near,
                                                     std::int64_t time_ms, std::uint64_t& damage);
/// The first `bytes` bytes of a segment, of which an index is wanted.
struct IndexedSegment {
  base::FileSystem& files;
  std::string directory;
  model::Offset base;
  std::uint64_t bytes = 0;
  std::uint64_t stride_bytes = 0;
  bool whole = false;                ///< it is finished and these are all its bytes
  std::shared_ptr<base::File> file;  ///< null: opened if it is needed
};
/// The stored index if it is good, else one made from the segment, which is stored if the segment
/// is whole and longer than a stride. Errors: the disk's, those of rebuild_segment_index().
Result<SegmentIndex> find_segment_index(const IndexedSegment& segment);
/// The same; of a segment that is damaged, one that ends at the first header that does not hold.
Result<SegmentIndex> find_index_for_reading(const IndexedSegment& segment);
Result<TimeIndex> find_time_index(const IndexedSegment& segment);

}  // namespace mq::storage
