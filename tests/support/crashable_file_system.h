#pragma once

#include <functional>
#include <memory>

#include "base/file_system.h"
#include "support/sim_random.h"

namespace mq::testing {

/// The file system as one incarnation of a node sees it. Once dead, every call fails and changes
/// nothing, open files and locks included, so a crashed incarnation can be unwound at leisure while
/// the next one already works on the same files.
class CrashableFileSystem final : public base::FileSystem {
 public:
  CrashableFileSystem(base::FileSystem& files, SimRandom random);
  ~CrashableFileSystem() override;

  /// From now on nothing has an effect; locks are free.
  void kill();
  /// Dies inside the `calls`-th changing call from now (1 = the next): that one takes effect not at
  /// all, in part (a write) or in full, but never reports success. `died` is called from inside it.
  void kill_after(std::uint64_t calls, std::function<void()> died);
  [[nodiscard]] bool dead() const noexcept;
  /// Changing calls made so far.
  [[nodiscard]] std::uint64_t changes() const noexcept;

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

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace mq::testing
