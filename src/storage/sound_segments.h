#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/batch_scanner.h"
#include "storage/disk_files.h"

namespace mq::storage {

/// Looks for what is sound in the directory of a damaged log: its segments in order, and of the
/// first that is not sound its beginning, as long as every batch is whole and goes on where the one
/// before ended. What the disk holds counts,
/// not the page cache: each segment is synced and read again. Blocks; on disk threads.
class SoundSegments {
 public:
  SoundSegments(base::FileSystem& files, std::string directory, model::Offset log_start)
      : files_(files), directory_(std::move(directory)), log_start_(log_start) {}

  /// Some more of it, so that others come between two steps. An error is the disk's.
  Result<void> work();
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  /// After ended(): the sound ones, ascending.
  [[nodiscard]] const std::vector<SealedSegment>& segments() const noexcept { return sound_; }
  /// Of the first that is not, what is sound; nothing: it does not begin with a sound batch.
  [[nodiscard]] const std::optional<SealedSegment>& beginning() const noexcept {
    return beginning_;
  }
  /// Those that are not, ascending; none: all are. The first of them may have a beginning().
  [[nodiscard]] const std::vector<model::Offset>& others() const noexcept { return others_; }
  /// Where the log begins, if anything of it is sound.
  [[nodiscard]] model::Offset begin() const noexcept {
    return all_.empty() ? model::Offset() : all_.front().base_offset;
  }
  /// The log end behind what is sound: behind the beginning(), or in a segment of its own.
  [[nodiscard]] const SyncPoint& end() const noexcept { return end_; }
  [[nodiscard]] const std::vector<EpochStart>& epoch_starts() const noexcept {
    return epoch_starts_;
  }

 private:
  Result<void> list();
  Result<void> begin_segment();
  void accept();
  void end_segment();
  void keep_reached();
  void conclude();

  base::FileSystem& files_;
  const std::string directory_;
  const model::Offset log_start_;
  bool listed_ = false;
  bool ended_ = false;
  std::vector<SealedSegment> all_;
  std::size_t next_ = 0;  // in all_: the one being read, or to be read
  std::unique_ptr<base::File> file_;
  std::unique_ptr<BatchScanner> scanner_;
  SyncPoint reached_;  // within the segment being read
  std::vector<EpochStart> reached_starts_;
  std::vector<SealedSegment> sound_;
  std::optional<SealedSegment> beginning_;
  std::vector<model::Offset> others_;
  SyncPoint end_;
  std::vector<EpochStart> epoch_starts_;
};

}  // namespace mq::storage
