#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/file_system.h"
#include "storage/journal_state.h"

namespace mq::storage {

/// Walks the groups of one journal file. Takes only groups of the file's use (generation and
/// nonce). Blocks; reads in strides.
class JournalFileReader {
 public:
  JournalFileReader(base::File& file, const JournalFileHeader& header, std::uint64_t file_bytes,
                    std::size_t stride_bytes = std::size_t{1} << 20);

  /// Goes to the next group whose checksums hold, or to the end. An error is the disk's.
  Result<void> next();
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }
  /// Of the group that next() went to; valid until the next call.
  [[nodiscard]] const JournalGroupHeader& group() const noexcept { return group_; }
  [[nodiscard]] base::Bytes body() const noexcept { return body_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Blocks without a good group lay before this one.
  [[nodiscard]] bool skipped() const noexcept { return skipped_; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  Result<base::Bytes> load(std::uint64_t position, std::size_t bytes);
  Result<void> try_group();

  base::File& file_;
  const JournalFileHeader header_;
  const std::uint64_t file_bytes_;
  const std::size_t stride_bytes_;
  std::uint64_t next_ = kJournalBlockBytes;
  std::uint64_t position_ = 0;
  bool at_end_ = false;
  bool good_ = false;  // a group stands at next_
  bool skipped_ = false;
  JournalGroupHeader group_;
  base::Bytes body_;
  base::Buffer buffer_;
  std::uint64_t loaded_from_ = 0;
  std::size_t loaded_ = 0;
  std::uint64_t bytes_read_ = 0;
};

/// A file of a journal directory. Without header: never finished, or damaged.
struct JournalFileFound {
  std::string path;
  std::uint64_t bytes = 0;
  std::optional<JournalFileHeader> header;
  bool foreign = false;  ///< of another owner: not ours to touch
};

/// Whose journal is looked for.
struct JournalOwner {
  base::Uuid cluster;
  model::BrokerId broker;
  base::Uuid disk;
  base::Uuid journal;
};

/// What a journal holds, all groups applied in order.
struct JournalReplay {
  /// Nothing of it may be believed: it is missing, another's, or unreadable from its first group
  /// on.
  bool lost = false;
  /// Groups are missing or damaged that were durable once. Partitions that stay whole are right.
  bool damaged = false;
  std::string problem;  ///< for people, if lost or damaged
  std::map<model::PartitionId, ReplayedLog> logs;
  std::set<model::PartitionId> deleted;
  JournalDiskState disk;
  std::vector<JournalFileFound> found;
  std::uint64_t first_generation = 0;  ///< files of older ones are out of use
  std::uint64_t newest_generation = 0;
  std::uint64_t last_group = 0;
  std::uint32_t last_crc = 0;
  std::uint64_t bytes_read = 0;
  /// Where JournalWrite::file points.
  std::vector<std::shared_ptr<base::File>> files;
};

/// Reads the journal in `directory`; changes nothing. Damage is in the result. Errors:
/// unknown_format_version, and those of the disk. `read` (may be empty) is told of every piece that
/// was read. `last_group` (0: unknown) is what a clean stop says that the journal ends with: if it
/// stands where it should, nothing else is read.
Result<JournalReplay> replay_journal(base::FileSystem& files, const std::string& directory,
                                     const JournalOwner& owner,
                                     std::function<void(std::uint64_t bytes)> read = {},
                                     std::uint64_t last_group = 0);

/// "0007.journal" and back.
std::string journal_file_name(std::uint32_t number);
std::optional<std::uint32_t> parse_journal_file_name(std::string_view name);

}  // namespace mq::storage
