#pragma once

#include <functional>
#include <string>

#include "storage/journal_reader.h"

/// Looking into a journal file from outside, for tools: read-only, needs no lock.
namespace mq::storage {

struct InspectedGroup {
  std::uint64_t position = 0;
  JournalGroupHeader header;
  bool follows = true;   ///< the group before by number and header CRC
  bool skipped = false;  ///< blocks without a good group lay before it
  /// In order; they point into memory that is valid during the call only.
  std::vector<JournalEntry> entries;
  bool entries_good = true;  ///< false: `entries` ends where one could not be read
};

/// Calls `visit` for every whole group of the file's present use, in order; stops early when it
/// returns false. Errors: unknown_format_version, BaseErrc::malformed (no header), I/O errors.
Result<JournalFileHeader> for_each_journal_group(
    base::FileSystem& files, const std::string& path,
    const std::function<bool(const InspectedGroup&)>& visit);

/// "append", "recovery point", ... as in FORMAT.md.
std::string_view journal_entry_name(const JournalContent& content) noexcept;

}  // namespace mq::storage
