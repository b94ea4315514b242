#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/damaged_place.h"
#include "storage/disk.h"

/// The files that describe a whole disk: identity, checkpoint, clean marker, run marker
/// (FORMAT.md). All are sealed files; what each is for is said in README.md.
namespace mq::storage {

class FieldReader;
class FieldWriter;

/// A place in a partition's log up to which an fdatasync has covered every byte, and what a writer
/// must know to go on from there.
struct SyncPoint {
  model::Offset offset;              ///< exclusive end
  model::Offset segment_base;        ///< of the segment that `position` is in
  std::uint64_t position = 0;        ///< of the byte behind the last covered batch
  model::LeaderEpoch leader_epoch;   ///< of the last batch below, -1: none
  std::int64_t append_time_ms = -1;  ///< of the last batch below
  std::int64_t segment_first_append_time_ms = -1;
  friend bool operator==(const SyncPoint&, const SyncPoint&) = default;
};

/// Its bytes, the same in the checkpoint and in the journal (FORMAT.md).
void put_sync_point(FieldWriter& out, const SyncPoint& point);
SyncPoint take_sync_point(FieldReader& in);

/// A segment that is no longer written and wholly below the recovery point.
struct SealedSegment {
  model::Offset base_offset;
  std::uint64_t bytes = 0;
  friend bool operator==(const SealedSegment&, const SealedSegment&) = default;
};

/// What the checkpoint knows of one partition.
struct LogCheckpoint {
  model::PartitionId id;
  model::Offset log_start_offset;
  /// The checkpoint before was lost and the log is offline: nobody knows what was synced.
  bool recovery_point_lost = false;
  SyncPoint recovery_point;
  std::vector<SealedSegment> sealed;     ///< ascending, without gap up to recovery_point's segment
  std::vector<EpochStart> epoch_starts;  ///< of what lies below the recovery point, oldest first
  friend bool operator==(const LogCheckpoint&, const LogCheckpoint&) = default;
};
/// Takes the sealed segments out that lie wholly below the log start. It may lie inside a segment,
/// which stays.
void drop_trimmed(LogCheckpoint& log);
using Checkpoint = std::map<model::PartitionId, LogCheckpoint>;

std::vector<std::byte> encode_checkpoint(const Checkpoint& checkpoint);
Result<Checkpoint> decode_checkpoint(base::Bytes body);

/// Written when every flush of a stop has succeeded: where each log ended. It is taken at its word
/// only if the files still agree.
struct CleanMarker {
  struct Log {
    model::PartitionId id;
    model::Offset log_end_offset;
    model::Offset segment_base;
    std::uint64_t segment_bytes = 0;
  };
  base::Uuid incarnation;
  std::vector<Log> logs;
  /// The journal's last group, a snapshot which is alone in its file; 0: there was no such one.
  std::uint64_t journal_group = 0;
};
std::vector<std::byte> encode_clean_marker(const CleanMarker& marker);
Result<CleanMarker> decode_clean_marker(base::Bytes body);

/// Says which run of which process works (or worked last) on the disk.
struct RunMarker {
  base::Uuid incarnation;
  base::Uuid disk;
  std::string boot_id;
  std::string mount_id{};  ///< empty: unknown
};
std::vector<std::byte> encode_run_marker(const RunMarker& marker);
Result<RunMarker> decode_run_marker(base::Bytes body);

/// The disks that belong to a broker, on its first disk: uuid and last known path.
using DiskList = std::map<base::Uuid, std::string>;
std::vector<std::byte> encode_disk_list(const DiskList& disks);
Result<DiskList> decode_disk_list(base::Bytes body);

/// High-water marks as they were seen lately, hints only.
using Watermarks = std::map<model::PartitionId, model::Offset>;
std::vector<std::byte> encode_watermarks(const Watermarks& marks);
Result<Watermarks> decode_watermarks(base::Bytes body);

/// What readers and scrubs have found damaged, hints only.
using DamageList = std::map<model::PartitionId, std::vector<model::DamagedPlace>>;
std::vector<std::byte> encode_damage(const DamageList& damage);
Result<DamageList> decode_damage(base::Bytes body);

/// How far the scrub of a disk is: behind `segment` of the partition `id`.
struct ScrubMark {
  model::PartitionId id;
  model::Offset segment;
  std::int64_t began_ms = -1;  ///< the pass
  std::uint64_t bytes = 0;     ///< read in it
  std::uint32_t damaged_segments = 0;
  bool done = false;
  friend bool operator==(const ScrubMark&, const ScrubMark&) = default;
};
std::vector<std::byte> encode_scrub_mark(const ScrubMark& mark);
Result<ScrubMark> decode_scrub_mark(base::Bytes body);

std::vector<std::byte> encode_identity(const DiskIdentity& identity);
Result<DiskIdentity> decode_identity(base::Bytes body);

/// Loads the sealed file `name` of the data directory and decodes it.
template <class Decode>
auto load_disk_file(base::FileSystem& files, const std::string& directory, std::string_view name,
                    std::string_view magic, Decode decode) -> decltype(decode(base::Bytes{}));

Result<std::vector<std::byte>> load_disk_body(base::FileSystem& files, const std::string& directory,
                                              std::string_view name, std::string_view magic);

template <class Decode>
auto load_disk_file(base::FileSystem& files, const std::string& directory, std::string_view name,
                    std::string_view magic, Decode decode) -> decltype(decode(base::Bytes{})) {
  const auto body = load_disk_body(files, directory, name, magic);
  if (!body) return body.error();
  return decode(base::Bytes(*body));
}

}  // namespace mq::storage
