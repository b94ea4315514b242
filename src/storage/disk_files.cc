#include "storage/disk_files.h"

#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {

void put_sync_point(FieldWriter& out, const SyncPoint& point) {
  out.put(point.offset.value());
  out.put(point.segment_base.value());
  out.put(point.position);
  out.put(point.leader_epoch.value());
  out.put(point.append_time_ms);
  out.put(point.segment_first_append_time_ms);
}
SyncPoint take_sync_point(FieldReader& in) {
  SyncPoint point;
  point.offset = model::Offset(in.take<std::int64_t>());
  point.segment_base = model::Offset(in.take<std::int64_t>());
  point.position = in.take<std::uint64_t>();
  point.leader_epoch = model::LeaderEpoch(in.take<std::int32_t>());
  point.append_time_ms = in.take<std::int64_t>();
  point.segment_first_append_time_ms = in.take<std::int64_t>();
  return point;
}

namespace {

using base::Bytes;
using base::Uuid;

constexpr std::size_t kPartitionIdBytes = 20;
constexpr std::size_t kSealedSegmentBytes = 16;
constexpr std::size_t kEpochStartBytes = 12;

Error malformed() { return make_error_code(base::BaseErrc::malformed); }

Uuid take_uuid(FieldReader& in) { return Uuid::from_bytes(in.take_bytes(16)).value_or(Uuid()); }

void put_id(FieldWriter& out, const model::PartitionId& id) {
  out.put_bytes(id.topic.bytes());
  out.put(id.partition);
}
model::PartitionId take_id(FieldReader& in) {
  model::PartitionId id;
  id.topic = take_uuid(in);
  id.partition = in.take<std::int32_t>();
  return id;
}

void put_log(FieldWriter& out, const LogCheckpoint& log) {
  put_id(out, log.id);
  out.put(log.log_start_offset.value());
  out.put(static_cast<std::uint8_t>(log.recovery_point_lost));
  put_sync_point(out, log.recovery_point);
  out.put(static_cast<std::uint32_t>(log.sealed.size()));
  for (const auto& segment : log.sealed) {
    out.put(segment.base_offset.value());
    out.put(segment.bytes);
  }
  out.put(static_cast<std::uint32_t>(log.epoch_starts.size()));
  for (const auto& start : log.epoch_starts) {
    out.put(start.leader_epoch.value());
    out.put(start.start_offset.value());
  }
}
LogCheckpoint take_log(FieldReader& in) {
  LogCheckpoint log;
  log.id = take_id(in);
  log.log_start_offset = model::Offset(in.take<std::int64_t>());
  log.recovery_point_lost = in.take<std::uint8_t>() != 0;
  log.recovery_point = take_sync_point(in);
  log.sealed.resize(in.take_count(kSealedSegmentBytes));
  for (auto& segment : log.sealed) {
    segment.base_offset = model::Offset(in.take<std::int64_t>());
    segment.bytes = in.take<std::uint64_t>();
  }
  log.epoch_starts.resize(in.take_count(kEpochStartBytes));
  for (auto& start : log.epoch_starts) {
    start.leader_epoch = model::LeaderEpoch(in.take<std::int32_t>());
    start.start_offset = model::Offset(in.take<std::int64_t>());
  }
  return log;
}

std::vector<std::byte> finished(const FieldWriter& out) {
  return {out.bytes().begin(), out.bytes().end()};
}

}  // namespace

void drop_trimmed(LogCheckpoint& log) {
  auto& sealed = log.sealed;
  std::size_t gone = 0;
  while (gone < sealed.size()) {
    const model::Offset end =
        gone + 1 < sealed.size() ? sealed[gone + 1].base_offset : log.recovery_point.segment_base;
    if (end > log.log_start_offset) break;
    ++gone;
  }
  sealed.erase(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(gone));
}

std::vector<std::byte> encode_checkpoint(const Checkpoint& checkpoint) {
  FieldWriter out;
  out.put(static_cast<std::uint32_t>(checkpoint.size()));
  for (const auto& [id, log] : checkpoint) put_log(out, log);
  return finished(out);
}

Result<Checkpoint> decode_checkpoint(Bytes body) {
  FieldReader in(body);
  Checkpoint checkpoint;
  const auto count = in.take_count(kPartitionIdBytes);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    auto log = take_log(in);
    const auto id = log.id;
    checkpoint.emplace(id, std::move(log));
  }
  if (!in.finished() || checkpoint.size() != count) return malformed();
  return checkpoint;
}

std::vector<std::byte> encode_clean_marker(const CleanMarker& marker) {
  FieldWriter out;
  out.put_bytes(marker.incarnation.bytes());
  out.put(static_cast<std::uint32_t>(marker.logs.size()));
  for (const auto& log : marker.logs) {
    put_id(out, log.id);
    out.put(log.log_end_offset.value());
    out.put(log.segment_base.value());
    out.put(log.segment_bytes);
  }
  out.put(marker.journal_group);
  return finished(out);
}

Result<CleanMarker> decode_clean_marker(Bytes body) {
  FieldReader in(body);
  CleanMarker marker;
  marker.incarnation = take_uuid(in);
  marker.logs.resize(in.take_count(kPartitionIdBytes));
  for (auto& log : marker.logs) {
    log.id = take_id(in);
    log.log_end_offset = model::Offset(in.take<std::int64_t>());
    log.segment_base = model::Offset(in.take<std::int64_t>());
    log.segment_bytes = in.take<std::uint64_t>();
  }
  marker.journal_group = in.take<std::uint64_t>();
  if (!in.finished()) return malformed();
  return marker;
}

std::vector<std::byte> encode_run_marker(const RunMarker& marker) {
  FieldWriter out;
  out.put_bytes(marker.incarnation.bytes());
  out.put_bytes(marker.disk.bytes());
  out.put_text(marker.boot_id);
  out.put_text(marker.mount_id);
  return finished(out);
}

Result<RunMarker> decode_run_marker(Bytes body) {
  FieldReader in(body);
  RunMarker marker;
  marker.incarnation = take_uuid(in);
  marker.disk = take_uuid(in);
  marker.boot_id = std::string(in.take_text());
  if (in.ok() && !in.finished()) marker.mount_id = std::string(in.take_text());
  if (!in.finished()) return malformed();
  return marker;
}

std::vector<std::byte> encode_disk_list(const DiskList& disks) {
  FieldWriter out;
  out.put(static_cast<std::uint32_t>(disks.size()));
  for (const auto& [disk, path] : disks) {
    out.put_bytes(disk.bytes());
    out.put_text(path);
  }
  return finished(out);
}

Result<DiskList> decode_disk_list(Bytes body) {
  FieldReader in(body);
  DiskList disks;
  const auto count = in.take_count(kPartitionIdBytes);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto disk = take_uuid(in);
    disks.emplace(disk, std::string(in.take_text()));
  }
  if (!in.finished() || disks.size() != count) return malformed();
  return disks;
}

std::vector<std::byte> encode_watermarks(const Watermarks& marks) {
  FieldWriter out;
  out.put(static_cast<std::uint32_t>(marks.size()));
  for (const auto& [id, offset] : marks) {
    put_id(out, id);
    out.put(offset.value());
  }
  return finished(out);
}

Result<Watermarks> decode_watermarks(Bytes body) {
  FieldReader in(body);
  Watermarks marks;
  const auto count = in.take_count(kPartitionIdBytes);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto id = take_id(in);
    marks.emplace(id, model::Offset(in.take<std::int64_t>()));
  }
  if (!in.finished() || marks.size() != count) return malformed();
  return marks;
}

std::vector<std::byte> encode_damage(const DamageList& damage) {
  std::uint32_t places = 0;
  for (const auto& one : damage) places += static_cast<std::uint32_t>(one.second.size());
  FieldWriter out;
  out.put(places);
  for (const auto& [id, found] : damage) {
    for (const auto& place : found) {
      put_id(out, id);
      out.put(place.segment.value());
      out.put(place.position);
      out.put(place.offset.value());
      out.put(place.end.value());
    }
  }
  return finished(out);
}

Result<DamageList> decode_damage(Bytes body) {
  FieldReader in(body);
  DamageList damage;
  const auto count = in.take_count(kPartitionIdBytes);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    auto& places = damage[take_id(in)];
    model::DamagedPlace place;
    place.segment = model::Offset(in.take<std::int64_t>());
    place.position = in.take<std::uint64_t>();
    place.offset = model::Offset(in.take<std::int64_t>());
    place.end = model::Offset(in.take<std::int64_t>());
    places.push_back(place);
  }
  if (!in.finished()) return malformed();
  return damage;
}

std::vector<std::byte> encode_scrub_mark(const ScrubMark& mark) {
  FieldWriter out;
  out.put_bytes(mark.id.topic.bytes());
  out.put(mark.id.partition);
  out.put(mark.segment.value());
  out.put(mark.began_ms);
  out.put(mark.bytes);
  out.put(mark.damaged_segments);
  out.put(static_cast<std::uint8_t>(mark.done));
  return finished(out);
}

Result<ScrubMark> decode_scrub_mark(Bytes body) {
  FieldReader in(body);
  ScrubMark mark;
  mark.id.topic = take_uuid(in);
  mark.id.partition = in.take<std::int32_t>();
  mark.segment = model::Offset(in.take<std::int64_t>());
  mark.began_ms = in.take<std::int64_t>();
  mark.bytes = in.take<std::uint64_t>();
  mark.damaged_segments = in.take<std::uint32_t>();
  const auto done = in.take<std::uint8_t>();
  mark.done = done == 1;
  if (!in.finished() || done > 1 || mark.began_ms < 0) return malformed();
  return mark;
}

std::vector<std::byte> encode_identity(const DiskIdentity& identity) {
  FieldWriter out;
  out.put_bytes(identity.cluster.bytes());
  out.put(identity.broker.value());
  out.put_bytes(identity.disk.bytes());
  out.put_bytes(identity.journal.bytes());
  return finished(out);
}

Result<DiskIdentity> decode_identity(Bytes body) {
  FieldReader in(body);
  DiskIdentity identity;
  identity.cluster = take_uuid(in);
  identity.broker = model::BrokerId(in.take<std::int32_t>());
  identity.disk = take_uuid(in);
  identity.journal = take_uuid(in);
  if (!in.finished()) return malformed();
  return identity;
}

Result<std::vector<std::byte>> load_disk_body(base::FileSystem& files, const std::string& directory,
                                              std::string_view name, std::string_view magic) {
  return load_sealed(files, directory + "/" + std::string(name), magic);
}

}  // namespace mq::storage
