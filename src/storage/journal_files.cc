#include "storage/journal_files.h"

#include <algorithm>

namespace mq::storage {

Result<void> make_journal_file(base::FileSystem& files, const std::string& directory,
                               std::uint32_t number, std::uint64_t bytes,
                               const JournalFileHeader& header) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  // Whoever syncs meanwhile waits for what lies in the disk's cache: that shall not be all of it.
  constexpr std::uint64_t kSyncBytes = std::uint64_t{4} << 20;
  const std::string path = directory + "/" + journal_file_name(number);
  MQ_TRY(const auto file, files.open(path, base::OpenMode::create));
  MQ_TRY_VOID(file->truncate(0));
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(bytes, kPieceBytes));
  for (std::uint64_t at = 0; at < bytes; at += zeros.size()) {
    const auto left = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, zeros.size()));
    const base::Bytes piece = base::Bytes(zeros).first(left);
    MQ_TRY_VOID(base::write_fully(*file, std::span(&piece, 1), at));
    if ((at + left) % kSyncBytes == 0) {
      MQ_TRY_VOID(file->sync_data());
    }
  }
  // Last, so that a file of another use that is written over stays one until it is whole.
  const auto block = encode_journal_header(header);
  const base::Bytes piece = block;
  MQ_TRY_VOID(base::write_fully(*file, std::span(&piece, 1), 0));
  MQ_TRY_VOID(file->sync_all());
  return files.sync_directory(directory);
}

}  // namespace mq::storage
