#include "storage/log_repair.h"

#include <algorithm>

#include "storage/log_files.h"
#include "storage/sealed_file.h"
#include "storage/segment_reader.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using base::OpenMode;
using model::Offset;

constexpr std::size_t kCopyBytes = std::size_t{4} << 20;

/// Bytes of `from` from `position` on into a new file, durably.
Result<void> copy_tail(base::FileSystem& files, const std::string& from, std::uint64_t position,
                       const std::string& to) {
  MQ_TRY(const auto source, files.open(from, OpenMode::read));
  MQ_TRY(const auto copy, files.open(to, OpenMode::create));
  std::vector<std::byte> buffer(kCopyBytes);
  for (std::uint64_t written = 0;;) {
    MQ_TRY(const auto got, source->read_at(buffer, position + written));
    if (got == 0) break;
    const base::Bytes piece = base::Bytes(buffer).first(got);
    MQ_TRY_VOID(base::write_fully(*copy, std::span(&piece, 1), written));
    written += got;
  }
  return copy->sync_all();
}

Result<void> copy_aside(base::FileSystem& files, const PartitionDirectory& partition,
                        const TruncatePlan& plan, const std::string& aside) {
  MQ_TRY_VOID(files.make_directory(aside));
  for (const auto& segment : partition.segments) {
    if (segment.base_offset != plan.point.segment_base) continue;
    if (segment.bytes == plan.point.position) continue;
    // Its first batch, if it is one, has the offset at which the log ends now.
    MQ_TRY_VOID(copy_tail(files, segment.path, plan.point.position,
                          aside + "/" + segment_file_name(plan.end)));
  }
  for (const auto& segment : plan.whole) {
    MQ_TRY_VOID(
        copy_tail(files, segment.path, 0, aside + "/" + segment_file_name(segment.base_offset)));
  }
  MQ_TRY_VOID(files.sync_directory(aside));
  return files.sync_directory(aside.substr(0, aside.rfind('/')));
}

/// The recovery point must not lie above the new end; what the checkpoint knows below stays.
Result<void> lower_checkpoint(base::FileSystem& files, const std::string& data,
                              const PartitionDirectory& partition, const TruncatePlan& plan) {
  auto loaded = load_disk_file(files, data, kCheckpointFile, kCheckpointMagic, decode_checkpoint);
  // Without a good one every log is read from its first byte.
  if (!loaded) return {};
  Checkpoint checkpoint = *std::move(loaded);
  const auto found = checkpoint.find(partition.id);
  if (found == checkpoint.end()) return {};
  LogCheckpoint& log = found->second;
  if (log.recovery_point_lost) {
    // What stays was read whole, so a bound is known again.
    log.recovery_point_lost = false;
    log.log_start_offset = partition.segments.front().base_offset;
    log.recovery_point = plan.point;
    log.epoch_starts = plan.epoch_starts;
    log.sealed.clear();
    for (const auto& segment : partition.segments) {
      if (segment.base_offset < plan.point.segment_base)
        log.sealed.push_back({segment.base_offset, segment.bytes});
    }
  } else if (log.recovery_point.offset > plan.end) {
    log.recovery_point = plan.point;
    std::erase_if(log.sealed, [&](const SealedSegment& segment) {
      return segment.base_offset >= plan.point.segment_base;
    });
    std::erase_if(log.epoch_starts,
                  [&](const EpochStart& start) { return start.start_offset >= plan.end; });
  }
  return save_sealed(files, data + "/" + std::string(kCheckpointFile), kCheckpointMagic,
                     encode_checkpoint(checkpoint));
}

Result<void> cut_files(base::FileSystem& files, const PartitionDirectory& partition,
                       const TruncatePlan& plan) {
  MQ_TRY(const auto entries, files.list_directory(partition.path));
  for (const auto& entry : entries) {
    const auto snapshot = parse_producers_file_name(entry.name);
    if (!snapshot || *snapshot <= plan.end) continue;
    MQ_TRY_VOID(remove_if_there(files, partition.path + "/" + entry.name));
  }
  // From the end, so that a crash in between leaves a log without a gap.
  for (auto segment = plan.whole.rbegin(); segment != plan.whole.rend(); ++segment) {
    MQ_TRY_VOID(remove_segment_caches(files, partition.path, segment->base_offset));
    MQ_TRY_VOID(files.remove_file(segment->path));
  }
  const std::string last = partition.path + "/" + segment_file_name(plan.point.segment_base);
  MQ_TRY_VOID(remove_segment_caches(files, partition.path, plan.point.segment_base));
  MQ_TRY(const auto file, files.open(last, OpenMode::write));
  MQ_TRY_VOID(file->truncate(plan.point.position));
  MQ_TRY_VOID(file->sync_all());
  return files.sync_directory(partition.path);
}

/// Walks the log up to the cut.
class TruncatePlanner {
 public:
  TruncatePlanner(const PartitionDirectory& partition, Offset last_offset)
      : partition_(partition), last_offset_(last_offset) {}

  Result<TruncatePlan> run(base::FileSystem& files) {
    const auto& segments = partition_.segments;
    plan_.point.segment_base = plan_.point.offset = segments.front().base_offset;
    const auto visit = [this](const InspectedBatch& batch) { return look(batch); };
    MQ_TRY_VOID(for_each_batch(files, partition_, std::nullopt, visit));
    plan_.end = plan_.point.offset;
    if (model::advance(plan_.end, -1) != last_offset_)
      plan_.nearest = model::advance(plan_.end, -1);
    for (const auto& segment : segments) {
      if (segment.base_offset > plan_.point.segment_base) {
        plan_.whole.push_back(segment);
        plan_.bytes += segment.bytes;
      } else if (segment.base_offset == plan_.point.segment_base) {
        plan_.bytes += segment.bytes - std::min(segment.bytes, plan_.point.position);
      }
    }
    return std::move(plan_);
  }

 private:
  bool look(const InspectedBatch& batch) {
    if (batch.state != BatchState::good) return false;
    if (batch.view.last_offset() > last_offset_) {
      plan_.records += batch.view.record_count();
      return true;
    }
    SyncPoint& point = plan_.point;
    if (batch.view.leader_epoch() != point.leader_epoch)
      plan_.epoch_starts.push_back({batch.view.leader_epoch(), batch.view.base_offset()});
    if (batch.position == 0) point.segment_first_append_time_ms = batch.view.append_time_ms();
    point.segment_base = batch.segment->base_offset;
    point.offset = batch.view.end_offset();
    point.position = batch.position + batch.batch_bytes;
    point.leader_epoch = batch.view.leader_epoch();
    point.append_time_ms = batch.view.append_time_ms();
    return true;
  }

  const PartitionDirectory& partition_;
  const Offset last_offset_;
  TruncatePlan plan_;
};

}  // namespace

Result<RebuiltIndexes> rebuild_indexes(base::FileSystem& files,
                                       const PartitionDirectory& partition) {
  RebuiltIndexes rebuilt;
  MQ_TRY(const auto entries, files.list_directory(partition.path));
  for (const auto& entry : entries) {
    if (entry.is_directory || !parse_cache_file_name(entry.name)) continue;
    MQ_TRY_VOID(remove_if_there(files, partition.path + "/" + entry.name));
  }
  const std::uint64_t stride_bytes = DiskConfig().index_stride_bytes;
  for (const auto& segment : partition.segments) {
    if (segment.bytes == 0) continue;
    MQ_TRY(const auto file, files.open(segment.path, OpenMode::read));
    auto index = rebuild_segment_index(*file, segment.base_offset, segment.bytes, stride_bytes);
    if (!index) {
      if (index.error().category() != storage_category()) return index.error();
      MQ_TRY(const auto report, verify_partition(files, partition));
      rebuilt.damage = report.damage;
      if (rebuilt.damage) rebuilt.damage->torn_tail = report.good;
      return rebuilt;
    }
    const std::string stem = partition.path + "/";
    MQ_TRY_VOID(write_segment_index(files, stem + index_file_name(segment.base_offset), *index));
    MQ_TRY_VOID(write_time_index(files, stem + time_index_file_name(segment.base_offset),
                                 index->times, segment.bytes));
    ++rebuilt.segments;
    rebuilt.batches_noted += index->offsets.entries().size();
  }
  return rebuilt;
}

Result<TruncatePlan> plan_truncate(base::FileSystem& files, const PartitionDirectory& partition,
                                   Offset last_offset) {
  return TruncatePlanner(partition, last_offset).run(files);
}

Result<void> truncate_partition(base::FileSystem& files, const std::string& data,
                                const PartitionDirectory& partition, const TruncatePlan& plan,
                                const std::string& aside,
                                const std::function<Result<void>()>& record) {
  MQ_TRY_VOID(copy_aside(files, partition, plan, aside));
  if (record) {
    MQ_TRY_VOID(record());
  }
  MQ_TRY_VOID(lower_checkpoint(files, data, partition, plan));
  return cut_files(files, partition, plan);
}

}  // namespace mq::storage
