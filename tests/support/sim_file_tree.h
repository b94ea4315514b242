#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "support/sim_file_system.h"
#include "support/sim_inode.h"

namespace mq::testing {

/// One change of names, of up to two directories at once (rename).
struct DirectoryChange {
  struct Edit {
    InodePtr directory;
    std::string name;
    InodePtr to;  ///< null: removed
  };
  std::vector<Edit> edits;

  [[nodiscard]] bool touches(const Inode& directory) const {
    return std::ranges::any_of(edits,
                               [&](const Edit& e) { return e.directory.get() == &directory; });
  }
  void apply_to_disk() const {
    for (const auto& edit : edits) {
      if (edit.to) {
        edit.directory->durable_names[edit.name] = edit.to;
      } else {
        edit.directory->durable_names.erase(edit.name);
      }
    }
  }
};

/// Directory and last part.
std::pair<std::string, std::string> split_path(const std::string& path);

/// What a SimFileSystem and its open files share.
struct SimFileTree {
  static constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;

  mutable std::mutex mutex;  // guards everything below
  InodePtr root = std::make_shared<Inode>(Inode{.is_directory = true});
  std::vector<DirectoryChange> pending;
  std::uint64_t generation = 1;
  std::uint64_t capacity = kUnlimited;
  std::uint64_t used = 0;  // by files that have a name
  std::vector<Fault> faults;
  std::uint64_t struck = 0;
  double cold_share = 0;
  double cold_sum = 0;
  double early_share = 0;
  double early_sum = 0;
  std::function<void()> write_hook;
  std::function<void(FileOperation, const std::string&)> sync_hook;

  /// The fault that strikes now, or null.
  Fault* strike(FileOperation operation, const std::string& path);
  /// Null if there is none.
  [[nodiscard]] InodePtr find(const std::string& path) const;
  /// Must exist.
  [[nodiscard]] InodePtr file(const std::string& path) const;
  /// Names change for processes now, for the disk with the next sync of a directory it touches.
  void change(DirectoryChange change);
  [[nodiscard]] std::uint64_t free() const { return used < capacity ? capacity - used : 0; }
  /// Runs `change`, which may give `inode` another size.
  template <class Change>
  void recharge(const Inode& inode, Change change) {
    const auto before = inode.charged();
    change();
    if (inode.links > 0) used += inode.charged() - before;
  }
  /// Counts names and space anew, after changes from outside.
  void recount();

 private:
  void set_name(const DirectoryChange::Edit& edit);
};

}  // namespace mq::testing
