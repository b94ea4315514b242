#include <algorithm>

#include "base/log.h"
#include "storage/journal.h"

namespace mq::storage {
namespace {

constexpr std::size_t kFilesMin = 2;

}  // namespace

Result<void> Journal::begin(JournalStart start) {
  directory_ = start.directory;
  owner_ = start.owner;
  secret_ = start.secret;
  states_ = std::move(start.logs);
  generation_ = start.newest_generation;
  group_number_ = start.last_group;
  last_crc_ = start.last_crc;
  live_.clear();
  old_.clear();
  free_.clear();
  const auto made = disk_->files.make_directory(directory_);
  if (!made && made.error() != make_error_code(base::BaseErrc::already_exists)) {
    fail("mkdir", directory_, made.error());
    return StorageErrc::disk_failed;
  }
  // The process before may have been killed between the making of a file and the sync of its name.
  for (const auto& directory : {directory_.substr(0, directory_.rfind('/')), directory_}) {
    if (const auto synced = disk_->files.sync_directory(directory); !synced) {
      fail("fsync", directory, synced.error());
      return StorageErrc::disk_failed;
    }
  }
  MQ_TRY_VOID(open_files(start));
  if (!start.recovering.empty()) {
    MQ_TRY_VOID(keep_old_files(start));
  }
  MQ_TRY_VOID(have_free_file());
  {
    std::lock_guard lock(mutex_);
    disk_state_ = start.disk;
    disk_state_.files = static_cast<std::uint32_t>(live_.size() + old_.size() + free_.size());
  }
  if (!switch_file()) return StorageErrc::disk_failed;
  for (auto& file : old_) free_.push_back(std::move(file));
  old_.clear();
  std::lock_guard lock(mutex_);
  lock_ = start.lock;
  asked_at_ = disk_->home.now();
  begun_ = true;
  return {};
}

/// They are live as if this run had written them: what they say is not in the segments yet. Their
/// last group may be in the page cache alone, if the process before was killed while it wrote it;
/// the new file builds on it.
Result<void> Journal::keep_old_files(const JournalStart& start) {
  std::ranges::sort(old_, {}, [](const auto& file) { return file->header.generation; });
  for (auto& file : old_) {
    if (const auto synced = file->file->sync_data(); !synced) {
      fail("fdatasync", file->path, synced.error());
      return StorageErrc::disk_failed;
    }
    for (const auto& [id, need] : start.recovering) file->needs.emplace(id, need);
    live_.push_back(std::move(file));
  }
  old_.clear();
  return {};
}

/// The files that were found. Those of another owner are left alone.
Result<void> Journal::open_files(const JournalStart& start) {
  for (const auto& found : start.found) {
    const auto name = found.path.substr(found.path.rfind('/') + 1);
    next_number_ = std::max(next_number_, parse_journal_file_name(name).value_or(0) + 1);
    if (!found.foreign) {
      MQ_TRY_VOID(open_file(start, found));
    }
  }
  return {};
}

Result<void> Journal::open_file(const JournalStart& start, const JournalFileFound& found) {
  const auto number =
      parse_journal_file_name(found.path.substr(found.path.rfind('/') + 1)).value_or(0);
  const std::uint64_t bytes = journal_block_of(found.bytes);
  if (!found.header) {
    // Never finished, or damaged: made anew while the old ones still stand.
    auto made = make_file(number, std::max(bytes, disk_->config.journal_file_bytes_min));
    if (!made && disk_->failed()) return made.error();
    if (!made) return {};
    free_.push_back(*std::move(made));
  } else {
    auto file = std::make_unique<JournalFile>();
    file->path = found.path;
    file->number = number;
    file->bytes = bytes;
    file->header = *found.header;
    auto opened = disk_->files.open(found.path, base::OpenMode::write);
    if (!opened) {
      fail("open", found.path, opened.error());
      return StorageErrc::disk_failed;
    }
    file->file = *std::move(opened);
    const bool live =
        found.header->generation > 0 && found.header->generation >= start.first_generation;
    (live ? old_ : free_).push_back(std::move(file));
  }
  largest_bytes_ = std::max(largest_bytes_, bytes);
  return {};
}

/// Until the first snapshot is durable the old files say what is known, so none of them is written
/// over. With no room for another one they must be: everything is synced in its segments by now,
/// and the checkpoint says so.
Result<void> Journal::have_free_file() {
  const std::uint64_t bytes_min = kJournalBlockBytes + snapshot_bytes() * 8;
  const auto fits = [&](const auto& file) { return file->bytes >= bytes_min; };
  while (std::ranges::none_of(free_, fits) ||
         free_.size() + old_.size() + live_.size() < kFilesMin) {
    const auto bytes = std::max(disk_->config.journal_file_bytes_min,
                                journal_block_of(bytes_min + kJournalBlockBytes - 1));
    auto made = make_file(next_number_++, bytes);
    if (!made) {
      if (disk_->failed()) return StorageErrc::disk_failed;
      if (std::ranges::any_of(free_, fits)) return {};
      const auto oldest = std::ranges::find_if(old_, fits);
      if (oldest == old_.end()) return StorageErrc::storage_full;
      free_.push_back(std::move(*oldest));
      old_.erase(oldest);
      return {};
    }
    largest_bytes_ = std::max(largest_bytes_, bytes);
    free_.push_back(*std::move(made));
  }
  return {};
}

/// storage_full, or the disk has failed.
Result<std::unique_ptr<JournalFile>> Journal::make_file(std::uint32_t number, std::uint64_t bytes) {
  auto file = std::make_unique<JournalFile>();
  file->path = directory_ + "/" + journal_file_name(number);
  file->number = number;
  file->bytes = bytes;
  file->header = header_of(0);
  const auto made = make_journal_file(disk_->files, directory_, number, bytes, file->header);
  Error error = made ? Error() : made.error();
  if (made) {
    auto opened = disk_->files.open(file->path, base::OpenMode::write);
    if (!opened) error = opened.error();
    if (opened) file->file = *std::move(opened);
  }
  if (!error) return file;
  if (error == make_error_code(base::BaseErrc::no_space)) {
    // What was taken is given back.
    static_cast<void>(disk_->files.remove_file(file->path));
    return StorageErrc::storage_full;
  }
  fail("write", file->path, error);
  return StorageErrc::disk_failed;
}

}  // namespace mq::storage
