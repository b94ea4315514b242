#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/ids.h"

/// Names and numbers of the files in a data directory (FORMAT.md).
namespace mq::storage {

inline constexpr std::string_view kLockFile = "lock";
inline constexpr std::string_view kIdentityFile = "identity";
inline constexpr std::string_view kCheckpointFile = "checkpoint";
inline constexpr std::string_view kCleanMarkerFile = "clean";
inline constexpr std::string_view kRunMarkerFile = "running";
inline constexpr std::string_view kFailedFile = "failed";  ///< the run that works here met an error
inline constexpr std::string_view kReserve = "reserve";    ///< a directory of slices
inline constexpr std::string_view kScrubFile = "scrub";
inline constexpr std::string_view kWatermarksFile = "watermarks";
inline constexpr std::string_view kDamagedFile = "damaged";
inline constexpr std::string_view kDisksFile = "disks";  ///< on the first disk of several
inline constexpr std::string_view kUnknownDirectory = "unknown";
inline constexpr std::string_view kJournalDirectory = "journal";
inline constexpr std::string_view kTopicFile = "topic";  ///< in a partition's directory: its name
inline constexpr std::string_view kTemporarySuffix = ".tmp";
inline constexpr std::string_view kSegmentSuffix = ".log";
inline constexpr std::string_view kIndexSuffix = ".index";
inline constexpr std::string_view kJournalSuffix = ".journal";
inline constexpr std::string_view kTimeIndexSuffix = ".time";
inline constexpr std::string_view kProducersSuffix = ".producers";

/// First eight bytes of each kind of sealed file, and the only version of all of them so far.
inline constexpr std::string_view kIdentityMagic = "MQIDENT\n";
inline constexpr std::string_view kCheckpointMagic = "MQCHECK\n";
inline constexpr std::string_view kCleanMarkerMagic = "MQCLEAN\n";
inline constexpr std::string_view kRunMarkerMagic = "MQRUNNG\n";
inline constexpr std::string_view kDisksMagic = "MQDISKS\n";
inline constexpr std::string_view kIndexMagic = "MQINDEX\n";
inline constexpr std::string_view kTimeIndexMagic = "MQTIMES\n";
inline constexpr std::string_view kProducersMagic = "MQPRODS\n";
inline constexpr std::string_view kScrubMagic = "MQSCRUB\n";
inline constexpr std::string_view kWatermarksMagic = "MQHIGHW\n";
inline constexpr std::string_view kDamagedMagic = "MQDAMAG\n";
inline constexpr std::uint32_t kSealedVersion = 1;

/// No sealed file is larger; a reader takes no memory beyond it.
inline constexpr std::size_t kSealedFileBytesMax = std::size_t{256} << 20;

/// "00000000000000000042.log" and back; nothing for any other name.
std::string segment_file_name(model::Offset base_offset);
std::string index_file_name(model::Offset base_offset);
std::string time_index_file_name(model::Offset base_offset);
/// Named by the log end that it is a snapshot of.
std::string producers_file_name(model::Offset end_offset);
std::optional<model::Offset> parse_producers_file_name(std::string_view name);
std::optional<model::Offset> parse_segment_file_name(std::string_view name);
std::optional<model::Offset> parse_index_file_name(std::string_view name);
/// The segment whose cache (index or time index) a file of this name is.
std::optional<model::Offset> parse_cache_file_name(std::string_view name);
/// Whether a name in a data directory is one of the above, or the embedded metadata store's.
bool is_disk_file(std::string_view name);
/// "<32 hex digits>-<partition>", as PartitionId::text().
std::optional<model::PartitionId> parse_partition_directory_name(std::string_view name);

}  // namespace mq::storage
