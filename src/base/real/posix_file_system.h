#pragma once

#include "base/file_system.h"

namespace mq::base {

/// The machine's file system. Stateless and thread-safe.
class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove_file(const std::string& path) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;
  std::string lock_holder(const std::string& path) override;
  Result<std::uint64_t> free_bytes(const std::string& path) override;
};

}  // namespace mq::base
