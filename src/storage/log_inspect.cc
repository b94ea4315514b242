#include "storage/log_inspect.h"

#include <algorithm>

#include "base/strings.h"
#include "storage/disk_files.h"
#include "storage/offset_index.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

constexpr std::size_t kTopicFileBytesMax = 4096;

std::pair<std::string, std::string> split_path(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<SegmentFile> look_at_segment(base::FileSystem& files, const std::string& path,
                                    Offset base_offset) {
  MQ_TRY(const auto file, files.open(path, base::OpenMode::read));
  MQ_TRY(const auto bytes, file->size());
  return SegmentFile{path, base_offset, bytes};
}

void take_from_checkpoint(PartitionDirectory& partition, const Checkpoint& checkpoint) {
  const auto found = checkpoint.find(partition.id);
  if (found == checkpoint.end() || found->second.recovery_point_lost) return;
  partition.log_start_offset = found->second.log_start_offset;
  partition.recovery_point = found->second.recovery_point.offset;
}

Checkpoint checkpoint_of(base::FileSystem& files, const std::string& directory) {
  auto checkpoint =
      load_disk_file(files, directory, kCheckpointFile, kCheckpointMagic, decode_checkpoint);
  return checkpoint ? *std::move(checkpoint) : Checkpoint();
}

/// The directory's files, without what the checkpoint knows.
Result<PartitionDirectory> look_at_partition(base::FileSystem& files, const std::string& path) {
  PartitionDirectory partition;
  partition.path = path;
  if (const auto id = parse_partition_directory_name(split_path(path).second)) partition.id = *id;
  const auto topic =
      base::read_file(files, path + "/" + std::string(kTopicFile), kTopicFileBytesMax);
  if (topic) partition.topic_name = base::split(base::as_text(*topic), '\n').front();
  MQ_TRY(const auto entries, files.list_directory(path));
  for (const auto& entry : entries) {
    const auto base = parse_segment_file_name(entry.name);
    if (!base || entry.is_directory) continue;
    const std::string segment_path = path + "/" + entry.name;
    auto segment = look_at_segment(files, segment_path, *base);
    if (segment) partition.segments.push_back(*std::move(segment));
    // Else retention has removed it meanwhile.
  }
  return partition;
}

/// Walks the segments and hands every batch to the visitor.
class Walk {
 public:
  Walk(base::FileSystem& files, const PartitionDirectory& partition, std::optional<Offset> from,
       const std::function<bool(const InspectedBatch&)>& visit)
      : files_(files), partition_(partition), from_(from), visit_(visit) {}

  Result<void> run() {
    const auto& segments = partition_.segments;
    auto first = segments.begin();
    if (from_) {
      first = std::ranges::upper_bound(segments, *from_, {}, &SegmentFile::base_offset);
      if (first != segments.begin()) --first;
    }
    for (auto segment = first; segment != segments.end() && !stopped_; ++segment) {
      MQ_TRY_VOID(walk(*segment, segment == first));
    }
    return {};
  }

 private:
  Result<void> walk(const SegmentFile& segment, bool first) {
    MQ_TRY(const auto file, files_.open(segment.path, base::OpenMode::read));
    BatchScanner::Start start;
    if (first) {
      start.position = start_position(segment);
      if (start.position == 0) start.expected = segment.base_offset;
    } else {
      start.expected = expected_ == Offset() ? segment.base_offset : expected_;
      start.last_epoch = last_epoch_;
      if (segment.base_offset != start.expected) return missing(segment, start.expected);
    }
    BatchScanner scanner(*file, start, segment.bytes, BatchScanner::Depth::whole);
    while (!stopped_) {
      MQ_TRY_VOID(scanner.next());
      if (scanner.at_end()) return {};
      hand_over(segment, scanner);
    }
    return {};
  }

  /// Uses the index to come near `from`; without a good one the walk begins at the start.
  std::uint64_t start_position(const SegmentFile& segment) {
    if (!from_) return 0;
    const auto slash = segment.path.rfind('/');
    const auto index_path =
        segment.path.substr(0, slash + 1) + index_file_name(segment.base_offset);
    const auto index = load_segment_index(files_, index_path, segment.base_offset, segment.bytes);
    return index ? index->offsets.floor_position(*from_) : 0;
  }

  void hand_over(const SegmentFile& segment, const BatchScanner& scanner) {
    const bool good = scanner.state() == BatchState::good;
    const bool goes_on = good || scanner.state() == BatchState::unsupported;
    if (good) {
      expected_ = scanner.view().end_offset();
      last_epoch_ = scanner.view().leader_epoch();
    } else {
      expected_ = Offset();
    }
    if (good && from_ && scanner.view().end_offset() <= *from_) return;
    InspectedBatch batch;
    batch.state = scanner.state();
    batch.segment = &segment;
    batch.position = scanner.position();
    batch.batch_bytes = scanner.batch_bytes();
    if (good) batch.view = scanner.view();
    batch.want = scanner.want();
    batch.got = scanner.got();
    stopped_ = !visit_(batch) || !goes_on;
  }

  Result<void> missing(const SegmentFile& segment, Offset expected) {
    InspectedBatch batch;
    batch.state = BatchState::bad_offset;
    batch.segment = &segment;
    batch.want = static_cast<std::uint64_t>(expected.value());
    batch.got = static_cast<std::uint64_t>(segment.base_offset.value());
    visit_(batch);
    stopped_ = true;
    return {};
  }

  base::FileSystem& files_;
  const PartitionDirectory& partition_;
  std::optional<Offset> from_;
  const std::function<bool(const InspectedBatch&)>& visit_;
  Offset expected_;
  model::LeaderEpoch last_epoch_;
  bool stopped_ = false;
};

}  // namespace

Result<DataDirectoryListing> list_data_directory(base::FileSystem& files, const std::string& path) {
  DataDirectoryListing listing;
  listing.path = path;
  MQ_TRY(const auto entries, files.list_directory(path));
  if (const auto identity = read_identity(files, path)) listing.identity = *identity;
  const std::string holder = files.lock_holder(path + "/" + std::string(kLockFile));
  if (holder != "unknown") listing.locked_by = holder;
  const auto checkpoint = checkpoint_of(files, path);
  for (const auto& entry : entries) {
    if (entry.name == kCleanMarkerFile) listing.clean = true;
    if (entry.is_directory && parse_partition_directory_name(entry.name)) {
      MQ_TRY(auto partition, look_at_partition(files, path + "/" + entry.name));
      take_from_checkpoint(partition, checkpoint);
      listing.partitions.push_back(std::move(partition));
    } else if (!is_disk_file(entry.name)) {
      listing.strangers.push_back(entry.name);
    }
  }
  return listing;
}

Result<PartitionDirectory> list_partition_directory(base::FileSystem& files,
                                                    const std::string& path) {
  const auto [parent, name] = split_path(path);
  if (const auto base = parse_segment_file_name(name)) {
    PartitionDirectory partition;
    partition.path = parent;
    if (const auto id = parse_partition_directory_name(split_path(parent).second))
      partition.id = *id;
    MQ_TRY(auto segment, look_at_segment(files, path, *base));
    partition.segments.push_back(std::move(segment));
    return partition;
  }
  MQ_TRY(auto partition, look_at_partition(files, parent + "/" + name));
  take_from_checkpoint(partition, checkpoint_of(files, parent));
  return partition;
}

Result<void> for_each_batch(base::FileSystem& files, const PartitionDirectory& partition,
                            std::optional<Offset> from,
                            const std::function<bool(const InspectedBatch&)>& visit) {
  return Walk(files, partition, from, visit).run();
}

}  // namespace mq::storage
