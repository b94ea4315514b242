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
  std::uint64_t bytes = 0;
  std::shared_ptr<base::File> file;
  JournalFileHeader header;
  std::unordered_map<model::PartitionId, model::Offset> needs;
};

/// Makes a file of `bytes` bytes that are written (with zeros) and synced, its name included: later
/// writes go over blocks that the file system has given out already. A file half made before is
/// made anew. `header` has generation 0.
Result<void> make_journal_file(base::FileSystem& files, const std::string& directory,
                               std::uint32_t number, std::uint64_t bytes,
                               const JournalFileHeader& header);

}  // namespace mq::storage
