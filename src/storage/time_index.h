#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "storage/partition_log.h"

namespace mq::storage {

/// Where in a segment file to start looking for an append time: an entry about every 64 KiB of
/// batches, left out where the time has not moved. A cache (LOG-5): it can always be made again by
/// walking the batch headers. Times are the broker's and never fall (LOG-8).
class TimeIndex {
 public:
  struct Entry {
    std::int64_t append_time_ms;    ///< of a batch
    std::uint32_t relative_offset;  ///< of its base offset to the segment's
    std::uint32_t position;         ///< of that batch
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// A batch boundary.
  struct Place {
    model::Offset base_offset;
    std::uint64_t position = 0;
  };

  TimeIndex(model::Offset base_offset, std::uint64_t stride_bytes) noexcept
      : base_offset_(base_offset), stride_bytes_(stride_bytes) {}

  /// Notes the batch at `position`; an entry is made when the last one is a stride away and older.
  /// Calls in ascending order.
  void note(std::int64_t append_time_ms, model::Offset offset, std::uint64_t position) {
    if (position < next_entry_at_) return;
    add(append_time_ms, offset, position);
  }
  /// A batch from which on every batch of `time_ms` or later lies, as near as the index knows.
  [[nodiscard]] Place floor(std::int64_t time_ms) const noexcept;

  [[nodiscard]] model::Offset base_offset() const noexcept { return base_offset_; }
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  void add(std::int64_t append_time_ms, model::Offset offset, std::uint64_t position);

  model::Offset base_offset_;
  std::uint64_t stride_bytes_;
  std::uint64_t next_entry_at_ = 0;
  std::vector<Entry> entries_;
};

/// A `.time` file's contents: the index of the first `segment_bytes` bytes of a segment.
struct StoredTimeIndex {
  TimeIndex times;
  std::uint64_t segment_bytes = 0;
};
std::vector<std::byte> encode_time_index(const TimeIndex& times, std::uint64_t segment_bytes);
Result<StoredTimeIndex> decode_time_index(base::Bytes body);

/// Not synced: a damaged one is noticed and made again.
Result<void> write_time_index(base::FileSystem& files, const std::string& path,
                              const TimeIndex& times, std::uint64_t segment_bytes);
/// The index of exactly this segment; malformed if it is damaged or describes other bytes.
Result<TimeIndex> load_time_index(base::FileSystem& files, const std::string& path,
                                  model::Offset base_offset, std::uint64_t segment_bytes);

}  // namespace mq::storage
