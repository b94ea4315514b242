#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "support/sim_random.h"

namespace mq::testing {

/// What can be made to fail.
enum class FileOperation {
  open,
  read,
  write,
  sync,
  write_back,
  truncate,
  allocate,
  rename,
  remove,
  make_directory,
  sync_directory,
  list,
};

/// A fault that strikes operations on paths containing `path_part`.
struct Fault {
  FileOperation operation = FileOperation::write;
  std::string path_part;  ///< empty: any path
  base::Error error = base::make_error_code(base::BaseErrc::io_failed);
  int skip = 0;   ///< so many matching operations pass first
  int times = 1;  ///< then so many fail; negative: all
  /// write only: take this many bytes and report them instead of failing.
  std::int64_t short_write = -1;
};

struct SimFileTree;

/// One machine's storage in memory, with what a crash may do to it.
///
/// Every file knows its current content and, by sectors of 512 bytes, what of it is not synced yet;
/// every directory operation (create, rename, remove) is pending until its directory is synced.
/// kill() ends the process that uses it and keeps everything; crash() is a power cut: of each file
/// any subset of the unsynced sectors survives over the file's old content, its size is anything
/// between the old and the new one, a 4 KiB block whose write-back had begun may be lost whole, and
/// any subset of the pending directory operations survives.
///
/// Files opened and locks taken before a kill() or crash() are dead: their calls fail and change
/// nothing. (CrashableFileSystem in front of it also cuts off path operations of the old process.)
/// Thread-safe.
class SimFileSystem final : public base::FileSystem {
 public:
  SimFileSystem();
  ~SimFileSystem() override;

  void kill();
  void crash(SimRandom& random);

  /// Total space in bytes, of which files take whole 4 KiB blocks; no limit at first.
  void set_capacity(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t used_bytes() const;

  void inject(Fault fault);
  void clear_faults();
  /// How many faults struck so far.
  [[nodiscard]] std::uint64_t faults_struck() const;
  /// read_cached_at() answers would_block this often (0 at first, 1: always), by a fixed pattern.
  void set_cold_share(double share);
  /// What was written is on its way to the disk at once this often (0 at first, 1: always), by a
  /// fixed pattern: the kernel writes pages back when it likes, and a power cut may catch it there.
  void set_early_write_back(double share);

  /// Called inside every write of a file before it takes effect: the place to let time pass. Empty:
  /// none.
  void on_write(std::function<void()> hook);
  /// The same for what a disk does: told of each file that is written back, and of each sync behind
  /// what it writes back itself (`sync`, with the path of the file that it is called on).
  void on_sync(std::function<void(FileOperation, const std::string& path)> hook);

  /// Looking and damaging from outside, at once durable. The file exists.
  [[nodiscard]] std::vector<std::byte> content(const std::string& path) const;
  void set_content(const std::string& path, std::vector<std::byte> content);
  void flip(const std::string& path, std::uint64_t position, std::byte mask);
  /// The same on the disk alone: what is not synced there is left as it is, and false returned.
  bool flip_synced(const std::string& path, std::uint64_t position, std::byte mask);
  void truncate_file(const std::string& path, std::uint64_t size);
  void remove_tree(const std::string& path);
  /// All files below `path`, sorted, with full paths.
  [[nodiscard]] std::vector<std::string> files_below(const std::string& path) const;
  /// A deep copy of everything as it is now, all of it durable: the start of another experiment.
  [[nodiscard]] std::unique_ptr<SimFileSystem> clone() const;

  base::Result<std::unique_ptr<base::File>> open(const std::string& path,
                                                 base::OpenMode mode) override;
  base::Result<void> make_directory(const std::string& path) override;
  base::Result<void> rename(const std::string& from, const std::string& to) override;
  base::Result<void> remove_file(const std::string& path) override;
  base::Result<void> remove_directory(const std::string& path) override;
  base::Result<void> sync_directory(const std::string& path) override;
  base::Result<std::vector<base::DirectoryEntry>> list_directory(const std::string& path) override;
  base::Result<bool> exists(const std::string& path) override;
  base::Result<std::unique_ptr<base::FileLock>> lock(const std::string& path) override;
  std::string lock_holder(const std::string& path) override;
  base::Result<std::uint64_t> free_bytes(const std::string& path) override;

 private:
  std::shared_ptr<SimFileTree> tree_;
};

}  // namespace mq::testing
