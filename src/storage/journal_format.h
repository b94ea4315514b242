#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/topic_settings.h"
#include "storage/disk_files.h"
#include "storage/sealed_file.h"

/// The bytes of journal files (FORMAT.md, "Journal"): file header, groups, entries. Pure: nothing
/// here reads or writes a file.
namespace mq::storage {

inline constexpr std::string_view kJournalMagic = "MQJOURN\n";
inline constexpr std::string_view kJournalGroupMagic = "MQGROUP\n";
inline constexpr std::uint32_t kJournalVersion = 1;
/// Groups begin at multiples of it, the first one at the first. No group shares one with another,
/// so that no durable byte is ever written over.
inline constexpr std::size_t kJournalBlockBytes = 4096;
/// Where the block begins that `position` lies in.
[[nodiscard]] constexpr std::uint64_t journal_block_of(std::uint64_t position) noexcept {
  return position / kJournalBlockBytes * kJournalBlockBytes;
}
inline constexpr std::size_t kJournalHeaderBytes = 104;
inline constexpr std::size_t kJournalGroupHeaderBytes = 52;
inline constexpr std::size_t kJournalEntryHeaderBytes = 25;
/// A reader takes no more memory for one group. Far above what is written.
inline constexpr std::uint32_t kJournalGroupBytesMax = std::uint32_t{64} << 20;

/// The first bytes of a journal file, within one sector. `generation` and `nonce` change with every
/// use of the file; a generation of 0 is a file that was never used.
struct JournalFileHeader {
  base::Uuid cluster;
  model::BrokerId broker;
  base::Uuid disk;
  base::Uuid journal;
  std::uint64_t generation = 0;
  std::uint64_t nonce = 0;  ///< unknown outside, so that no record can pass for a group
  friend bool operator==(const JournalFileHeader&, const JournalFileHeader&) = default;
};
std::vector<std::byte> encode_journal_header(const JournalFileHeader& header);
/// Errors: unknown_format_version (magic and checksum hold), BaseErrc::malformed.
Result<JournalFileHeader> decode_journal_header(base::Bytes file);

struct JournalGroupHeader {
  std::uint64_t generation = 0;
  std::uint64_t nonce = 0;
  std::uint64_t number = 0;  ///< rises by one from group to group, over files and starts
  std::uint32_t body_bytes = 0;
  std::uint32_t entries = 0;
  std::uint32_t previous_crc = 0;  ///< header_crc of the group before
  std::uint32_t body_crc = 0;
  std::uint32_t header_crc = 0;
};
/// What a group takes in the file: whole blocks.
[[nodiscard]] std::uint64_t journal_group_file_bytes(std::uint64_t body_bytes) noexcept;
/// Nothing unless magic and header checksum hold and the sizes are possible.
std::optional<JournalGroupHeader> decode_journal_group_header(base::Bytes bytes);
[[nodiscard]] bool journal_body_holds(const JournalGroupHeader& header, base::Bytes body) noexcept;

/// What the journal knows of the disk as a whole.
struct JournalDiskState {
  IntactSince intact;
  std::uint32_t files = 0;  ///< that the journal consists of
  friend bool operator==(const JournalDiskState&, const JournalDiskState&) = default;
};

/// What the journal knows of one partition, as of some group.
struct JournalLogState {
  model::Durability durability = model::Durability::disk;
  /// From this durable offset on the log counts as one of `disk`; -1: always.
  model::Offset disk_from{-1};
  model::Offset log_start{0};
  SyncPoint recovery_point;
  model::Offset end;      ///< what lies below is below the recovery point or in entries
  model::Offset durable;  ///< the highest that an entry named
  EpochStart epoch_start{model::LeaderEpoch(-1), model::Offset(0)};  ///< the newest
  /// A cut whose end on the files was not recorded yet.
  std::optional<SyncPoint> cut;
  /// Of this replica alone: the broker epoch since which nothing of it can be missing, -1: as of
  /// the disk.
  std::int64_t intact_since = -1;
  friend bool operator==(const JournalLogState&, const JournalLogState&) = default;
};

/// One batch as it stands in its segment.
struct JournalAppend {
  model::Offset durable;  ///< the partition's durable offset when the group was made
  model::Offset segment_base;
  std::uint64_t position = 0;
  base::Bytes batch;
  static constexpr std::uint8_t kKind = 1;
};
/// What stands in the block of a segment that is about to be written again.
struct JournalImage {
  model::Offset segment_base;
  std::uint64_t position = 0;
  base::Bytes bytes;
  static constexpr std::uint8_t kKind = 2;
};
/// The log ends at `end` now; `epoch` is the one that wants it so.
struct JournalCut {
  SyncPoint end;
  model::LeaderEpoch epoch;
  static constexpr std::uint8_t kKind = 3;
};
struct JournalLogStart {
  model::Offset offset;
  static constexpr std::uint8_t kKind = 4;
};
struct JournalEpochStart {
  EpochStart start;
  static constexpr std::uint8_t kKind = 5;
};
/// Every byte below is synced in the segments; a cut that came before is done there.
struct JournalRecoveryPoint {
  SyncPoint point;
  static constexpr std::uint8_t kKind = 6;
};
/// An empty log that begins at 0, whatever was there before.
struct JournalCreate {
  model::Durability durability = model::Durability::disk;
  std::int64_t intact_since = -1;
  static constexpr std::uint8_t kKind = 7;
};
struct JournalDurability {
  model::Durability durability = model::Durability::disk;
  model::Offset disk_from{-1};
  static constexpr std::uint8_t kKind = 8;
};
struct JournalDelete {
  static constexpr std::uint8_t kKind = 9;
};
/// First entry of a file: where replay begins, and what holds for the disk.
struct JournalSnapshot {
  std::uint64_t first_generation = 0;  ///< files of older generations are out of use
  std::uint32_t logs = 0;              ///< so many JournalSnapshotLog follow
  JournalDiskState disk;
  static constexpr std::uint8_t kKind = 10;
};
struct JournalSnapshotLog {
  JournalLogState state;
  static constexpr std::uint8_t kKind = 11;
};
/// A change of what holds for the disk.
struct JournalDiskChange {
  JournalDiskState disk;
  static constexpr std::uint8_t kKind = 12;
};

/// The log is empty and begins at `start` now, whatever its directory holds; `epoch` is the one
/// that wants it so. `intact_since`: as in JournalLogState, if it is higher.
struct JournalRestart {
  SyncPoint start;
  model::LeaderEpoch epoch;
  std::int64_t intact_since = -1;
  static constexpr std::uint8_t kKind = 13;
};

using JournalContent =
    std::variant<JournalAppend, JournalImage, JournalCut, JournalLogStart, JournalEpochStart,
                 JournalRecoveryPoint, JournalCreate, JournalDurability, JournalDelete,
                 JournalSnapshot, JournalSnapshotLog, JournalDiskChange, JournalRestart>;

struct JournalEntry {
  model::PartitionId id;  ///< zero for entries about the disk
  JournalContent content;
};

/// Collects the entries of one group and finishes it. Reusable.
class JournalGroupBuilder {
 public:
  JournalGroupBuilder() { clear(); }
  void add(const model::PartitionId& id, const JournalContent& content);
  [[nodiscard]] bool empty() const noexcept { return entries_ == 0; }
  [[nodiscard]] std::uint32_t entries() const noexcept { return entries_; }
  /// What the group would take in the file now.
  [[nodiscard]] std::uint64_t file_bytes() const noexcept;
  /// The whole group, padded to blocks; valid until clear(). `header` names generation, nonce,
  /// number and previous_crc and gets the rest.
  base::Bytes finish(JournalGroupHeader& header);
  void clear();

 private:
  std::vector<std::byte> bytes_;
  std::uint32_t entries_ = 0;
};

/// Takes the entries of a group whose checksums hold, one by one.
class JournalEntryReader {
 public:
  JournalEntryReader(base::Bytes body, std::uint32_t entries) : left_(body), entries_(entries) {}
  /// Nothing at the end. Errors: BaseErrc::malformed. The entry points into the body.
  Result<std::optional<JournalEntry>> next();

 private:
  base::Bytes left_;
  std::uint32_t entries_;
};

}  // namespace mq::storage
