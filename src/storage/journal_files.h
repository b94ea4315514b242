#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/file_system.h"
#include "storage/journal_reader.h"

namespace mq::storage {

/// A file of the journal in use. `needs` says which partitions' recovery points must pass which
/// offset before the file may be written over.
struct JournalFile {
  std::string path;
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;  // that are there to be written over
  bool growing = false;     // more of them come
  std::shared_ptr<base::File> file;
  JournalFileHeader header;
  std::unordered_map<model::PartitionId, model::Offset> needs;
};

/// A file that is used already while the rest of it is made.
struct JournalGrowth {
  std::shared_ptr<base::File> file;
  std::string path;
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;  ///< so far
  std::uint64_t bytes_wanted = 0;

  [[nodiscard]] bool ended() const noexcept { return bytes >= bytes_wanted; }
};

/// Makes the next `piece` bytes of it, synced. On an error it is as it was.
Result<void> grow_journal_file(JournalGrowth& growth, std::uint64_t piece);

/// Writes its header, durably: groups in a file without a good one are lost.
Result<void> write_journal_header(base::File& file, const JournalFileHeader& header);
/// The header of the group in `file` that comes behind number `last`.
JournalGroupHeader next_group(const JournalFileHeader& file, std::uint64_t last,
                              std::uint32_t last_crc);

/// Makes a file of `bytes` bytes that are written (with zeros) and synced, its name included: later
/// writes go over blocks that the file system has given out already. A file half made before is
/// made anew. `header` has generation 0.
Result<void> make_journal_file(base::FileSystem& files, const std::string& directory,
                               std::uint32_t number, std::uint64_t bytes,
                               const JournalFileHeader& header);

}  // namespace mq::storage
