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

/// One file as a whole.
struct InspectedJournal {
  JournalFileHeader header;
  std::uint64_t bytes = 0;
  std::uint64_t groups = 0;  ///< that were visited
  std::uint64_t end = 0;     ///< behind the last of them
  std::string why;           ///< the chain ends there, for people
};

/// Calls `visit` for every whole group of the file's present use, in order; stops early when it
/// returns false. Errors: unknown_format_version, BaseErrc::malformed (no header), I/O errors.
Result<InspectedJournal> for_each_journal_group(
    base::FileSystem& files, const std::string& path,
    const std::function<bool(const InspectedGroup&)>& visit);

/// "append", "recovery point", ... as in FORMAT.md.
std::string_view journal_entry_name(const JournalContent& content) noexcept;

}  // namespace mq::storage
