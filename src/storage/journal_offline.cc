#include "storage/journal_offline.h"

#include <algorithm>

namespace mq::storage {
namespace {

using base::Bytes;
using base::OpenMode;

constexpr std::uint64_t kFileBytesMin = std::uint64_t{1} << 20;

/// A file whose groups nobody needs any more, or a new one.
Result<std::string> free_file(base::FileSystem& files, const std::string& directory,
                              const JournalReplay& replay, const JournalFileHeader& unused,
                              std::uint64_t bytes, bool& made) {
  std::uint32_t next = 0;
  for (const auto& found : replay.found) {
    const auto name = found.path.substr(found.path.rfind('/') + 1);
    next = std::max(next, parse_journal_file_name(name).value_or(0) + 1);
    const bool used = !found.header || found.header->generation >= replay.first_generation;
    if (found.foreign || found.bytes < bytes) continue;
    if (!used || (found.header && found.header->generation == 0)) return found.path;
  }
  made = true;
  const auto whole = (std::max(bytes, kFileBytesMin) + kJournalBlockBytes - 1) /
                     kJournalBlockBytes * kJournalBlockBytes;
  MQ_TRY_VOID(make_journal_file(files, directory, next, whole, unused));
  return directory + "/" + journal_file_name(next);
}

/// What was read may be in the page cache alone, if the process before was killed.
Result<void> sync_found(base::FileSystem& files, const JournalReplay& replay) {
  for (const auto& found : replay.found) {
    if (!found.header || found.header->generation < replay.first_generation) continue;
    MQ_TRY(const auto file, files.open(found.path, OpenMode::write));
    MQ_TRY_VOID(file->sync_all());
  }
  return {};
}

}  // namespace

Result<void> record_cut(base::FileSystem& files, const std::string& directory,
                        const JournalOwner& owner, const JournalReplay& replay,
                        const model::PartitionId& id, const JournalCut& cut, std::uint64_t nonce) {
  MQ_TRY_VOID(sync_found(files, replay));
  JournalFileHeader header{owner.cluster, owner.broker, owner.disk, owner.journal, 0, nonce};
  JournalGroupBuilder builder;
  const auto fill = [&](const JournalDiskState& disk) {
    builder.clear();
    const auto logs = static_cast<std::uint32_t>(replay.logs.size());
    builder.add({}, JournalSnapshot{replay.first_generation, logs, disk});
    for (const auto& [known, log] : replay.logs) builder.add(known, JournalSnapshotLog{log.state});
    builder.add(id, cut);
  };
  fill(replay.disk);
  bool made = false;
  MQ_TRY(const auto path, free_file(files, directory, replay, header,
                                    kJournalBlockBytes + builder.file_bytes(), made));
  if (made) {
    JournalDiskState disk = replay.disk;
    disk.files = static_cast<std::uint32_t>(replay.found.size() + 1);
    fill(disk);
  }
  MQ_TRY(const auto file, files.open(path, OpenMode::write));
  header.generation = replay.newest_generation + 1;
  MQ_TRY_VOID(write_journal_header(*file, header));
  auto group = next_group(header, replay.last_group, replay.last_crc);
  const Bytes bytes = builder.finish(group);
  MQ_TRY_VOID(base::write_fully(*file, std::span(&bytes, 1), kJournalBlockBytes));
  return file->sync_all();
}

}  // namespace mq::storage
