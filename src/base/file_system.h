#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace mq::base {

/// One open file. Calls block; which of them may be made on a worker is said in storage.
/// Thread-safe as pread/pwrite are. Closing happens in the destructor; whoever cares about an error
/// of the last writes syncs first.
class File {
 public:
  virtual ~File() = default;
  /// Reads up to into.size() bytes at `position`; fewer only at the end of the file, 0 behind it.
  virtual Result<std::size_t> read_at(MutableBytes into, std::uint64_t position) = 0;
  /// The same from the page cache only; would_block when the disk would be needed.
  virtual Result<std::size_t> read_cached_at(MutableBytes into, std::uint64_t position) = 0;
  /// The same as read_at(), for what nobody else will want soon: what was not in the page cache
  /// before does not stay there, and what was stays.
  virtual Result<std::size_t> read_uncached_at(MutableBytes into, std::uint64_t position) {
    return read_at(into, position);
  }
  /// Writes the pieces one behind the other at `position` and returns how many bytes were taken:
  /// fewer than all is a short write (the disk filled up), which the caller handles.
  virtual Result<std::size_t> write_at(std::span<const Bytes> pieces, std::uint64_t position) = 0;
  /// Data and the metadata needed to read it back. An error means: never sync this file again.
  virtual Result<void> sync_data() = 0;
  virtual Result<void> sync_all() = 0;
  /// Everything written so far on the whole file system that this file lies on, names included.
  /// Fails for any write-back error of that file system since this file was opened. The device may
  /// still hold it in its own cache: a sync_data() of a file there comes after.
  virtual Result<void> sync_file_system() = 0;
  virtual Result<void> truncate(std::uint64_t size) = 0;
  /// Takes disk blocks for [position, position + bytes) without changing the file's size.
  virtual Result<void> allocate(std::uint64_t position, std::uint64_t bytes) = 0;
  /// Starts write-back of a range. Says nothing about durability.
  virtual void start_write_back(std::uint64_t position, std::uint64_t bytes) = 0;
  /// Waits until a range whose write-back was started has been handed to the device. Says nothing
  /// about durability. An error is told once only: it means what one of sync_data() means.
  virtual Result<void> finish_write_back(std::uint64_t /*position*/, std::uint64_t /*bytes*/) {
    return {};
  }
  /// Drops clean cached pages of a range.
  virtual void drop_cache(std::uint64_t position, std::uint64_t bytes) = 0;
  virtual Result<std::uint64_t> size() = 0;
};

/// Held until destroyed.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

enum class OpenMode {
  read,              ///< must exist
  write,             ///< read and write, must exist
  create,            ///< read and write, made if missing
  create_exclusive,  ///< read and write, already_exists if there
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
};

/// Everything storage does with a disk goes through here, so that the simulator can lose unsynced
/// sectors, fill up and fail. Paths are absolute or relative to the process; files are made 0600,
/// directories 0700.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  /// Makes one directory; already_exists if there.
  virtual Result<void> make_directory(const std::string& path) = 0;
  /// Atomic replacement. Durable only after sync_directory of the parent, and only with the file's
  /// own sync before.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> remove_file(const std::string& path) = 0;
  virtual Result<void> remove_directory(const std::string& path) = 0;  ///< must be empty
  virtual Result<void> sync_directory(const std::string& path) = 0;
  virtual Result<std::vector<DirectoryEntry>> list_directory(
      const std::string& path) = 0;  ///< sorted by name
  virtual Result<bool> exists(const std::string& path) = 0;
  /// Takes the exclusive lock (flock) on the file at `path`, made if missing, and writes this
  /// process's pid into it. `locked` if another holds it; lock_holder() then tells whom the file
  /// names.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
  virtual std::string lock_holder(const std::string& path) = 0;  ///< "pid 4711", or "unknown"
  virtual Result<std::uint64_t> free_bytes(const std::string& path) = 0;
};

/// Reads a whole file of at most `bytes_max` bytes; too_large above it.
Result<std::vector<std::byte>> read_file(FileSystem& files, const std::string& path,
                                         std::size_t bytes_max);
/// Writes `pieces` completely; a short write becomes no_space.
Result<void> write_fully(File& file, std::span<const Bytes> pieces, std::uint64_t position);
/// temp file, write, sync, rename over `path`, sync of the directory: after it returns the new
/// contents are durable, and at any earlier crash the old ones are.
Result<void> replace_file(FileSystem& files, const std::string& path, Bytes contents);

}  // namespace mq::base
