#include "storage/journal_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/record_batch.h"
#include "storage/log_files.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using base::Bytes;
using base::OpenMode;
using model::Offset;

class Restorer {
 public:
  Restorer(base::FileSystem& files, const std::string& directory, const JournalReplay& replay,
           std::string& problem)
      : files_(files), directory_(directory), replay_(replay), problem_(problem) {}

  Result<void> put_back(const ReplayedLog& log, Offset log_start);
  Result<void> finish_cut(const JournalLogState& state);
  Result<void> sync();

  std::vector<RestoredBatch> restored;

 private:
  struct Segment {
    std::shared_ptr<base::File> file;
    std::uint64_t bytes = 0;
    bool changed = false;
  };
  [[nodiscard]] std::string path(Offset base) const {
    return directory_ + "/" + segment_file_name(base);
  }
  Result<Segment*> segment(Offset base, bool make);
  Result<void> put_back_one(const JournalWrite& write);
  Result<void> end_segment(Offset base, std::uint64_t bytes);

  base::FileSystem& files_;
  const std::string& directory_;
  const JournalReplay& replay_;
  std::string& problem_;
  std::map<Offset, Segment> segments_;
  bool made_ = false;  // or removed a file
};

/// Null if it is not there and shall not be made.
Result<Restorer::Segment*> Restorer::segment(Offset base, bool make) {
  if (const auto known = segments_.find(base); known != segments_.end()) return &known->second;
  auto opened = files_.open(path(base), OpenMode::write);
  if (!opened && opened.error() == make_error_code(base::BaseErrc::not_found)) {
    if (!make) return static_cast<Segment*>(nullptr);
    opened = files_.open(path(base), OpenMode::create);
    made_ = true;
  }
  if (!opened) return opened.error();
  Segment segment;
  segment.file = *std::move(opened);
  MQ_TRY(segment.bytes, segment.file->size());
  // REC-5: what a failed sync left in the cache may not be on the disk. Dirty
  // pages stay.
  segment.file->drop_cache(0, segment.bytes);
  return &segments_.emplace(base, std::move(segment)).first->second;
}

Result<void> Restorer::put_back_one(const JournalWrite& write) {
  const bool is_batch = write.base >= Offset(0);
  MQ_TRY(Segment* const to, segment(write.segment_base, is_batch));
  if (to == nullptr || write.bytes == 0) return {};
  if (write.position > to->bytes) {
    if (!is_batch)
      return {};  // of a block that the crash took whole, above all that is
                  // known
    problem_ = fmt::format("{} has {} bytes, but something was synced at {}",
                           segment_file_name(write.segment_base), to->bytes, write.position);
    return StorageErrc::partition_corrupt;
  }
  std::vector<std::byte> wanted(write.bytes);
  MQ_TRY(const auto got, replay_.files[write.file]->read_at(wanted, write.at));
  const auto batch = model::RecordBatchView::parse_header(wanted);
  if (got != wanted.size() || (is_batch && (!batch || !model::body_crc_holds(wanted)))) {
    problem_ = fmt::format("the journal's entry for {} position {} cannot be read",
                           segment_file_name(write.segment_base), write.position);
    return StorageErrc::partition_corrupt;
  }
  if (is_batch)
    restored.push_back({write.segment_base, write.position, write.bytes, write.base, write.end,
                        write.leader_epoch, batch->append_time_ms()});
  std::vector<std::byte> there(write.bytes);
  MQ_TRY(const auto has, to->file->read_at(there, write.position));
  if (has == there.size() && std::ranges::equal(there, wanted)) return {};
  const Bytes piece = wanted;
  MQ_TRY_VOID(base::write_fully(*to->file, std::span(&piece, 1), write.position));
  to->bytes = std::max(to->bytes, write.position + write.bytes);
  to->changed = true;
  return {};
}

/// What lies behind the end of a segment that the log went on from was never
/// part of it.
Result<void> Restorer::end_segment(Offset base, std::uint64_t bytes) {
  MQ_TRY(Segment* const ended, segment(base, false));
  if (ended == nullptr || ended->bytes <= bytes) return {};
  MQ_TRY_VOID(ended->file->truncate(bytes));
  ended->bytes = bytes;
  ended->changed = true;
  return {};
}

Result<void> Restorer::put_back(const ReplayedLog& log, Offset log_start) {
  const JournalWrite* before = nullptr;
  for (const auto& write : log.writes) {
    const bool is_batch = write.base >= Offset(0);
    if (is_batch && write.end <= log_start) continue;
    if (is_batch) {
      const bool rolled = before && before->segment_base != write.segment_base;
      if (rolled && before->end == write.base) {
        MQ_TRY_VOID(end_segment(before->segment_base, before->position + before->bytes));
      }
      before = &write;
    }
    MQ_TRY_VOID(put_back_one(write));
  }
  return {};
}

/// The record of the cut is durable, so nothing above it may come back.
Result<void> Restorer::finish_cut(const JournalLogState& state) {
  const SyncPoint& end = *state.cut;
  if (begins_anew(state)) return empty_log_directory(files_, directory_, end.segment_base);
  MQ_TRY(const auto entries, files_.list_directory(directory_));
  for (const auto& entry : entries) {
    const auto base = parse_segment_file_name(entry.name);
    if (!base || *base <= end.segment_base) continue;
    MQ_TRY_VOID(files_.remove_file(directory_ + "/" + entry.name));
    segments_.erase(*base);
    made_ = true;
  }
  return end_segment(end.segment_base, end.position);
}

/// REC-3: what was put back is on the disk before it is built on.
Result<void> Restorer::sync() {
  for (const auto& [base, segment] : segments_) {
    if (!segment.changed && !made_) continue;
    // REC-5: whatever it failed of, also want of space, it is not tried again.
    if (!segment.file->sync_all()) return make_error_code(base::BaseErrc::io_failed);
  }
  if (!made_) return {};
  return files_.sync_directory(directory_);
}

}  // namespace

Result<std::vector<RestoredBatch>> restore_from_journal(base::FileSystem& files,
                                                        const std::string& directory,
                                                        const JournalReplay& replay,
                                                        const ReplayedLog& log, Offset log_start,
                                                        std::string& problem) {
  Restorer restorer(files, directory, replay, problem);
  // The cut first: what the journal holds now was appended behind it, or lies below.
  if (log.state.cut) {
    MQ_TRY_VOID(restorer.finish_cut(log.state));
  }
  MQ_TRY_VOID(restorer.put_back(log, log_start));
  MQ_TRY_VOID(restorer.sync());
  return std::move(restorer.restored);
}

LogCheckpoint merge_checkpoint(LogCheckpoint checkpoint, const ReplayedLog& log) {
  if (begins_anew(log.state)) {
    const auto id = checkpoint.id;
    checkpoint = {};
    checkpoint.id = id;
    checkpoint.log_start_offset = log.state.log_start;
    checkpoint.recovery_point = *log.state.cut;
    return checkpoint;
  }
  checkpoint.log_start_offset = std::max(checkpoint.log_start_offset, log.state.log_start);
  if (!log.lowest_cut || checkpoint.recovery_point.offset <= log.lowest_cut->offset)
    return checkpoint;
  const SyncPoint& end = *log.lowest_cut;
  checkpoint.recovery_point = end;
  std::erase_if(checkpoint.sealed, [&](const SealedSegment& segment) {
    return segment.base_offset >= end.segment_base;
  });
  std::erase_if(checkpoint.epoch_starts,
                [&](const EpochStart& start) { return start.start_offset >= end.offset; });
  return checkpoint;
}

}  // namespace mq::storage
