#pragma once

#include <cstdint>
#include <vector>

#include "base/file_system.h"
#include "storage/partition_log.h"
#include "storage/time_index.h"

namespace mq::storage {

/// Where in a segment file to start looking for an offset: an entry about every 64 KiB of batches.
/// A cache (LOG-5): it can always be made again by walking the batch headers.
class OffsetIndex {
 public:
  struct Entry {
    std::uint32_t relative_offset;  ///< of a batch's base offset to the segment's
    std::uint32_t position;         ///< of that batch
  };

  OffsetIndex(model::Offset base_offset, std::uint64_t stride_bytes) noexcept
      : base_offset_(base_offset), stride_bytes_(stride_bytes) {}

  /// Notes the batch at `position`; an entry is made when the last one is a stride away. Calls in
  /// ascending order.
  void note(model::Offset offset, std::uint64_t position) {
    if (position < next_entry_at_) return;
    add(offset, position);
  }
  /// A batch boundary at or below `offset`, as near as the index knows; position 0 is always one.
  [[nodiscard]] TimeIndex::Place floor(model::Offset offset) const noexcept;
  [[nodiscard]] std::uint64_t floor_position(model::Offset offset) const noexcept {
    return floor(offset).position;
  }

  [[nodiscard]] model::Offset base_offset() const noexcept { return base_offset_; }
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  void add(model::Offset offset, std::uint64_t position);

  model::Offset base_offset_;
  std::uint64_t stride_bytes_;
  std::uint64_t next_entry_at_ = 0;
  std::vector<Entry> entries_;
};

/// What the `.index` file of a segment holds: its offset index and what else retention and start
/// would otherwise have to read the segment for.
struct SegmentIndex {
  OffsetIndex offsets;
  model::Offset end_offset;
  std::uint64_t segment_bytes = 0;
  std::int64_t first_append_time_ms = -1;
  std::int64_t last_append_time_ms = -1;
  model::LeaderEpoch last_leader_epoch;
  std::vector<EpochStart> epoch_starts;  ///< of the epochs that begin in this segment
  TimeIndex times{model::Offset(0), 0};  ///< in the `.time` file beside it
};

std::vector<std::byte> encode_segment_index(const SegmentIndex& index);
Result<SegmentIndex> decode_segment_index(base::Bytes body);

/// Not synced: a damaged one is noticed and made again.
Result<void> write_segment_index(base::FileSystem& files, const std::string& path,
                                 const SegmentIndex& index);
/// The index of exactly this segment; malformed if it is damaged or describes other bytes.
Result<SegmentIndex> load_segment_index(base::FileSystem& files, const std::string& path,
                                        model::Offset base_offset, std::uint64_t segment_bytes);

}  // namespace mq::storage
