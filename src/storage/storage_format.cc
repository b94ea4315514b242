#include "storage/storage_format.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "storage/registration_mark.h"

namespace mq::storage {
namespace {

constexpr std::size_t kOffsetDigits = 20;
constexpr std::size_t kUuidDigits = 32;

std::optional<model::Offset> parse_offset_name(std::string_view name, std::string_view suffix) {
  if (name.size() != kOffsetDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  const auto offset = base::parse_signed(name.substr(0, kOffsetDigits));
  if (!offset || *offset < 0) return std::nullopt;
  return model::Offset(*offset);
}

}  // namespace

std::string segment_file_name(model::Offset base_offset) {
  return fmt::format("{:020}{}", base_offset.value(), kSegmentSuffix);
}

std::string index_file_name(model::Offset base_offset) {
  return fmt::format("{:020}{}", base_offset.value(), kIndexSuffix);
}

std::string time_index_file_name(model::Offset base_offset) {
  return fmt::format("{:020}{}", base_offset.value(), kTimeIndexSuffix);
}

std::optional<model::Offset> parse_segment_file_name(std::string_view name) {
  return parse_offset_name(name, kSegmentSuffix);
}

std::optional<model::Offset> parse_index_file_name(std::string_view name) {
  return parse_offset_name(name, kIndexSuffix);
}

std::optional<model::Offset> parse_cache_file_name(std::string_view name) {
  const auto index = parse_offset_name(name, kIndexSuffix);
  return index ? index : parse_offset_name(name, kTimeIndexSuffix);
}

std::string producers_file_name(model::Offset end_offset) {
  return fmt::format("{:020}{}", end_offset.value(), kProducersSuffix);
}

std::optional<model::Offset> parse_producers_file_name(std::string_view name) {
  return parse_offset_name(name, kProducersSuffix);
}

bool is_disk_file(std::string_view name) {
  for (const auto ours :
       {kLockFile, kIdentityFile, kCheckpointFile, kCleanMarkerFile, kRunMarkerFile,
        kRegisteredFile, kFailedFile, kReserve, kScrubFile, kWatermarksFile, kDamagedFile,
        kDisksFile, kUnknownDirectory, kJournalDirectory}) {
    if (name == ours || name == std::string(ours) + std::string(kTemporarySuffix)) return true;
  }
  return name.starts_with("metadata.db");
}

std::optional<model::PartitionId> parse_partition_directory_name(std::string_view name) {
  if (name.size() < kUuidDigits + 2 || name[kUuidDigits] != '-') return std::nullopt;
  const auto topic = base::Uuid::from_hex(name.substr(0, kUuidDigits));
  const auto partition = base::parse_signed(name.substr(kUuidDigits + 1));
  if (!topic || !partition || *partition < 0 || *partition > INT32_MAX) return std::nullopt;
  const model::PartitionId id{*topic, static_cast<std::int32_t>(*partition)};
  if (id.text() != name) return std::nullopt;  // leading zeros
  return id;
}

}  // namespace mq::storage
