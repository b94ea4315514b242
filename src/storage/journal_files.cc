#include "storage/journal_files.h"

#include <algorithm>

namespace mq::storage {
namespace {

Result<void> write_zeros(base::File& file, std::uint64_t from, std::uint64_t to) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  // Whoever syncs meanwhile waits for what lies in the disk's cache: that shall not be all of it.
  constexpr std::uint64_t kSyncBytes = std::uint64_t{16} << 20;
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(to - from, kPieceBytes));
  for (std::uint64_t at = from; at < to; at += zeros.size()) {
    const auto left = static_cast<std::size_t>(std::min<std::uint64_t>(to - at, zeros.size()));
    const base::Bytes piece = base::Bytes(zeros).first(left);
    MQ_TRY_VOID(base::write_fully(file, std::span(&piece, 1), at));
    if ((at + left - from) % kSyncBytes == 0) {
      MQ_TRY_VOID(file.sync_data());
    }
  }
  return {};
}

}  // namespace

Result<void> write_journal_header(base::File& file, const JournalFileHeader& header) {
  const auto block = encode_journal_header(header);
  const base::Bytes piece = block;
  MQ_TRY_VOID(base::write_fully(file, std::span(&piece, 1), 0));
  return file.sync_data();
}

JournalGroupHeader next_group(const JournalFileHeader& file, std::uint64_t last,
                              std::uint32_t last_crc) {
  JournalGroupHeader group;
  group.generation = file.generation;
  group.nonce = file.nonce;
  group.number = last + 1;
  group.previous_crc = last_crc;
  return group;
}

Result<void> make_journal_file(base::FileSystem& files, const std::string& directory,
                               std::uint32_t number, std::uint64_t bytes,
                               const JournalFileHeader& header) {
  const std::string path = directory + "/" + journal_file_name(number);
  MQ_TRY(const auto file, files.open(path, base::OpenMode::create));
  MQ_TRY_VOID(file->truncate(0));
  MQ_TRY_VOID(write_zeros(*file, 0, bytes));
  // Last, so that a file of another use that is written over stays one until it is whole.
  MQ_TRY_VOID(write_journal_header(*file, header));
  MQ_TRY_VOID(file->sync_all());
  return files.sync_directory(directory);
}

Result<void> grow_journal_file(JournalGrowth& growth, std::uint64_t piece) {
  const auto upto = std::min(growth.bytes + piece, growth.bytes_wanted);
  auto grown = write_zeros(*growth.file, growth.bytes, upto);
  if (grown) grown = growth.file->sync_data();
  if (grown) {
    growth.bytes = upto;
    return {};
  }
  if (grown.error() == make_error_code(base::BaseErrc::no_space)) {
    // What was taken is given back.
    MQ_TRY_VOID(growth.file->truncate(growth.bytes));
  }
  return grown;
}

}  // namespace mq::storage
