#include "support/sim_file_system.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>

#include "base/check.h"

namespace mq::testing {
namespace {

using base::BaseErrc;
using base::Bytes;
using base::Error;
using base::MutableBytes;
using base::OpenMode;
using base::Result;

constexpr std::uint64_t kSector = 512;
constexpr std::uint64_t kBlock = 4096;
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;
using Sector = std::array<std::byte, kSector>;

std::uint64_t blocks(std::uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

/// A file or a directory, known by identity, not by name.
struct Inode {
  bool is_directory = false;

  // Of a file. `lost` holds, for every unsynced sector, what the disk has: its content at the last
  // sync. Sizes since then lie in [size_min, size_max].
  std::vector<std::byte> content;
  std::map<std::uint64_t, Sector> lost;
  std::uint64_t size_min = 0;
  std::uint64_t size_max = 0;
  std::uint64_t allocated = 0;
  // After a failed sync the pages count as clean although the disk has not got them: no later sync
  // writes these sectors, and a crash brings the old content back.
  std::map<std::uint64_t, Sector> forsaken;
  /// Blocks whose write-back has begun: a power cut may catch the disk in the middle of one.
  std::set<std::uint64_t> under_way;
  bool locked = false;

  // Of a directory: names now, and names on the disk.
  std::map<std::string, std::shared_ptr<Inode>> names;
  std::map<std::string, std::shared_ptr<Inode>> durable_names;

  [[nodiscard]] std::uint64_t charged() const {
    return blocks(std::max<std::uint64_t>(content.size(), allocated));
  }
};
using InodePtr = std::shared_ptr<Inode>;

/// Keeps what the disk has of the sectors in [from, to) before they change.
void remember(Inode& file, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t sector = from / kSector; sector * kSector < to; ++sector) {
    if (file.lost.contains(sector)) continue;
    Sector old{};
    const std::uint64_t start = sector * kSector;
    if (const auto forsaken = file.forsaken.find(sector); forsaken != file.forsaken.end()) {
      old = forsaken->second;
    } else if (start < file.content.size()) {
      const auto n = std::min<std::uint64_t>(kSector, file.content.size() - start);
      std::copy_n(file.content.begin() + static_cast<std::ptrdiff_t>(start), n, old.begin());
    }
    file.lost.emplace(sector, old);
  }
}

void resize(Inode& file, std::uint64_t size) {
  remember(file, std::min<std::uint64_t>(size, file.content.size()),
           std::max<std::uint64_t>(size, file.content.size()));
  file.content.resize(size);
  file.size_min = std::min(file.size_min, size);
  file.size_max = std::max(file.size_max, size);
}

/// What the disk has is now what the file has, but for forsaken sectors.
void settle(Inode& file) {
  file.lost.clear();
  file.under_way.clear();
  file.size_min = file.size_max = file.content.size();
}

void forsake(Inode& file) {
  for (const auto& [sector, old] : file.lost) file.forsaken.emplace(sector, old);
  settle(file);
}

void put_back(std::vector<std::byte>& content, const std::map<std::uint64_t, Sector>& sectors) {
  for (const auto& [sector, old] : sectors) {
    const std::uint64_t start = sector * kSector;
    if (start >= content.size()) continue;
    const auto n = std::min<std::uint64_t>(kSector, content.size() - start);
    std::copy_n(old.begin(), n, content.begin() + static_cast<std::ptrdiff_t>(start));
  }
}

/// Forsaken sectors count as clean: dropped from the cache, they show what the disk has.
void reread(Inode& file, std::uint64_t from, std::uint64_t to) {
  std::map<std::uint64_t, Sector> dropped;
  std::erase_if(file.forsaken, [&](const auto& entry) {
    const auto& [sector, old] = entry;
    if (sector * kSector < from / kSector * kSector || sector * kSector >= to) return false;
    if (file.lost.contains(sector)) return false;
    dropped.emplace(sector, old);
    return true;
  });
  put_back(file.content, dropped);
}

/// A block that was being written is lost whole, with what had been on the disk before.
void destroy_blocks(const Inode& file, std::vector<std::byte>& content, SimRandom& random) {
  for (const auto block : file.under_way) {
    const bool dirty = std::ranges::any_of(
        file.lost, [&](const auto& entry) { return entry.first * kSector / kBlock == block; });
    if (!dirty || random.chance(0.5)) continue;
    const auto end = std::min<std::uint64_t>((block + 1) * kBlock, content.size());
    for (auto at = block * kBlock; at < end; ++at)
      content[at] = static_cast<std::byte>(random.next());
  }
}

/// What a power cut leaves of one file.
void tear(Inode& file, SimRandom& random) {
  file.allocated = 0;
  if (file.lost.empty() && file.forsaken.empty() && file.size_min == file.size_max) return;
  // Usually all or nothing near either end, sometimes anything: both find different mistakes.
  const std::uint64_t keep_percent =
      std::array<std::uint64_t, 5>{0, 10, 50, 90, 100}[random.below(5)];
  std::uint64_t size = file.content.size();
  if (random.chance(0.6)) size = random.between(file.size_min, file.size_max);
  std::vector<std::byte> after = file.content;
  after.resize(std::max<std::uint64_t>(file.size_max, after.size()));
  const Inode before{.lost = file.lost, .under_way = file.under_way};
  std::erase_if(file.lost, [&](const auto&) { return random.below(100) < keep_percent; });
  put_back(after, file.lost);
  put_back(after, file.forsaken);
  destroy_blocks(before, after, random);
  after.resize(size);
  file.content = std::move(after);
  file.forsaken.clear();
  settle(file);
}

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

std::pair<std::string, std::string> split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

template <class Visit>
void walk(const Inode& directory, const std::string& path, const Visit& visit) {
  for (const auto& [name, inode] : directory.names) {
    const std::string child = path.empty() ? name : path + "/" + name;
    if (inode->is_directory) {
      walk(*inode, child, visit);
    } else {
      visit(child, inode);
    }
  }
}

InodePtr copy_tree(const Inode& from) {
  auto to = std::make_shared<Inode>();
  to->is_directory = from.is_directory;
  to->content = from.content;
  settle(*to);
  for (const auto& [name, inode] : from.names) to->names[name] = copy_tree(*inode);
  to->durable_names = to->names;
  return to;
}

void tear_tree(Inode& directory, SimRandom& random) {
  directory.names = directory.durable_names;
  for (const auto& [name, inode] : directory.names) {
    if (inode->is_directory) {
      tear_tree(*inode, random);
    } else {
      inode->locked = false;
      tear(*inode, random);
    }
  }
}

}  // namespace

struct SimFileSystem::Core {
  mutable std::mutex mutex;  // guards everything below
  InodePtr root = std::make_shared<Inode>(Inode{.is_directory = true});
  std::vector<DirectoryChange> pending;
  std::uint64_t generation = 1;
  std::uint64_t capacity = kUnlimited;
  std::vector<Fault> faults;
  std::uint64_t struck = 0;
  double cold_share = 0;
  double cold_sum = 0;

  /// The error to report, or nothing.
  Fault* strike(FileOperation operation, const std::string& path) {
    for (auto& fault : faults) {
      if (fault.operation != operation || fault.times == 0 ||
          path.find(fault.path_part) == std::string::npos)
        continue;
      if (fault.skip > 0) {
        --fault.skip;
        continue;
      }
      if (fault.times > 0) --fault.times;
      ++struck;
      return &fault;
    }
    return nullptr;
  }

  [[nodiscard]] InodePtr find(const std::string& path) const {
    InodePtr at = root;
    std::size_t from = 0;
    while (at && from <= path.size()) {
      const auto slash = std::min(path.find('/', from), path.size());
      const std::string part = path.substr(from, slash - from);
      from = slash + 1;
      if (part.empty() || part == ".") continue;
      if (!at->is_directory) return nullptr;
      const auto found = at->names.find(part);
      at = found == at->names.end() ? nullptr : found->second;
    }
    return at;
  }
  [[nodiscard]] InodePtr file(const std::string& path) const {
    auto inode = find(path);
    MQ_CHECK(inode && !inode->is_directory, "no file {}", path);
    return inode;
  }
  void change(DirectoryChange change) {
    for (const auto& edit : change.edits) {
      if (edit.to) {
        edit.directory->names[edit.name] = edit.to;
      } else {
        edit.directory->names.erase(edit.name);
      }
    }
    pending.push_back(std::move(change));
  }
  [[nodiscard]] std::uint64_t used() const {
    std::set<const Inode*> seen;  // a file that is only pending to be removed takes no space
    std::uint64_t total = 0;
    walk(*root, "", [&](const std::string&, const InodePtr& inode) {
      if (seen.insert(inode.get()).second) total += inode->charged();
    });
    return total;
  }
  [[nodiscard]] std::uint64_t free() const {
    if (capacity == kUnlimited) return kUnlimited;  // spares the walk over all files
    const auto taken = used();
    return taken < capacity ? capacity - taken : 0;
  }
};

namespace {

class SimFile final : public base::File {
 public:
  SimFile(std::shared_ptr<SimFileSystem::Core> core, InodePtr inode, std::string path,
          bool writable)
      : core_(std::move(core)),
        inode_(std::move(inode)),
        path_(std::move(path)),
        writable_(writable),
        generation_(core_->generation) {}

  Result<std::size_t> read_at(MutableBytes into, std::uint64_t position) override {
    std::lock_guard lock(core_->mutex);
    MQ_TRY_VOID(check(FileOperation::read));
    return copy_out(into, position);
  }
  Result<std::size_t> read_cached_at(MutableBytes into, std::uint64_t position) override {
    std::lock_guard lock(core_->mutex);
    MQ_TRY_VOID(check(FileOperation::read));
    core_->cold_sum += core_->cold_share;
    if (core_->cold_sum >= 1) {
      core_->cold_sum -= 1;
      return make_error_code(BaseErrc::would_block);
    }
    return copy_out(into, position);
  }
  Result<std::size_t> write_at(std::span<const Bytes> pieces, std::uint64_t position) override {
    std::lock_guard lock(core_->mutex);
    if (generation_ != core_->generation || !writable_) return make_error_code(BaseErrc::io_failed);
    std::uint64_t wanted = 0;
    for (const auto& piece : pieces) wanted += piece.size();
    std::uint64_t granted = wanted;
    if (const auto* fault = core_->strike(FileOperation::write, path_)) {
      if (fault->short_write < 0) return fault->error;
      granted = std::min(wanted, static_cast<std::uint64_t>(fault->short_write));
    }
    granted = std::min(granted, room(position));
    if (granted == 0 && wanted > 0) return make_error_code(BaseErrc::no_space);
    put(pieces, position, granted);
    return granted;
  }
  Result<void> sync_data() override { return sync(); }
  Result<void> sync_all() override { return sync(); }
  Result<void> sync_file_system() override;
  Result<void> truncate(std::uint64_t size) override {
    std::lock_guard lock(core_->mutex);
    MQ_TRY_VOID(check(FileOperation::truncate));
    if (!writable_) return make_error_code(BaseErrc::io_failed);
    resize(*inode_, size);
    inode_->allocated = 0;
    return {};
  }
  Result<void> allocate(std::uint64_t position, std::uint64_t bytes) override {
    std::lock_guard lock(core_->mutex);
    MQ_TRY_VOID(check(FileOperation::allocate));
    const auto end = std::max(inode_->allocated, position + bytes);
    const auto after = blocks(std::max<std::uint64_t>(end, inode_->content.size()));
    if (after > inode_->charged() && after - inode_->charged() > core_->free())
      return make_error_code(BaseErrc::no_space);
    inode_->allocated = end;
    return {};
  }
  void start_write_back(std::uint64_t position, std::uint64_t bytes) override {
    std::lock_guard lock(core_->mutex);
    if (generation_ != core_->generation) return;
    for (auto block = position / kBlock; block * kBlock < position + bytes; ++block)
      inode_->under_way.insert(block);
  }
  void drop_cache(std::uint64_t position, std::uint64_t bytes) override {
    std::lock_guard lock(core_->mutex);
    if (generation_ == core_->generation) reread(*inode_, position, position + bytes);
  }
  Result<std::uint64_t> size() override {
    std::lock_guard lock(core_->mutex);
    if (generation_ != core_->generation) return make_error_code(BaseErrc::io_failed);
    return std::uint64_t{inode_->content.size()};
  }

 private:
  Result<void> check(FileOperation operation) {
    if (generation_ != core_->generation) return make_error_code(BaseErrc::io_failed);
    if (const auto* fault = core_->strike(operation, path_)) return fault->error;
    return {};
  }
  Result<void> sync() {
    std::lock_guard lock(core_->mutex);
    if (generation_ != core_->generation) return make_error_code(BaseErrc::io_failed);
    if (const auto* fault = core_->strike(FileOperation::sync, path_)) {
      forsake(*inode_);
      return fault->error;
    }
    // What was written again since a failed sync is on the disk now.
    for (const auto& [sector, old] : inode_->lost) inode_->forsaken.erase(sector);
    settle(*inode_);
    return {};
  }
  std::size_t copy_out(MutableBytes into, std::uint64_t position) {
    const auto& content = inode_->content;
    if (position >= content.size()) return 0;
    const auto n = std::min<std::uint64_t>(into.size(), content.size() - position);
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(position), n, into.begin());
    return n;
  }
  /// How many bytes from `position` on the disk has room for.
  [[nodiscard]] std::uint64_t room(std::uint64_t position) const {
    const auto end = inode_->charged() + core_->free() / kBlock * kBlock;
    return end > position ? end - position : 0;
  }
  void put(std::span<const Bytes> pieces, std::uint64_t position, std::uint64_t bytes) {
    remember(*inode_, position, position + bytes);
    if (position + bytes > inode_->content.size()) resize(*inode_, position + bytes);
    auto to = inode_->content.begin() + static_cast<std::ptrdiff_t>(position);
    for (const auto& piece : pieces) {
      const auto n = std::min<std::uint64_t>(piece.size(), bytes);
      to = std::copy_n(piece.begin(), n, to);
      bytes -= n;
    }
  }

  std::shared_ptr<SimFileSystem::Core> core_;
  InodePtr inode_;
  std::string path_;
  bool writable_;
  std::uint64_t generation_;
};

/// One failing file fails it all, as a file system reports one error for all.
Result<void> SimFile::sync_file_system() {
  std::lock_guard lock(core_->mutex);
  if (generation_ != core_->generation) return make_error_code(BaseErrc::io_failed);
  Result<void> result;
  walk(*core_->root, "", [&](const std::string& path, const InodePtr& inode) {
    if (inode->lost.empty() && inode->size_min == inode->size_max) return;
    if (const auto* fault = core_->strike(FileOperation::sync, path)) {
      forsake(*inode);
      if (result) result = fault->error;
      return;
    }
    for (const auto& [sector, old] : inode->lost) inode->forsaken.erase(sector);
    settle(*inode);
  });
  if (!result) return result;
  for (const auto& change : core_->pending) change.apply_to_disk();
  core_->pending.clear();
  return {};
}

class SimLock final : public base::FileLock {
 public:
  SimLock(std::shared_ptr<SimFileSystem::Core> core, InodePtr inode)
      : core_(std::move(core)), inode_(std::move(inode)), generation_(core_->generation) {}
  ~SimLock() override {
    std::lock_guard lock(core_->mutex);
    if (generation_ == core_->generation) inode_->locked = false;
  }

 private:
  std::shared_ptr<SimFileSystem::Core> core_;
  InodePtr inode_;
  std::uint64_t generation_;
};

}  // namespace

SimFileSystem::SimFileSystem() : core_(std::make_shared<Core>()) {}
SimFileSystem::~SimFileSystem() = default;

void SimFileSystem::kill() {
  std::lock_guard lock(core_->mutex);
  ++core_->generation;
  walk(*core_->root, "", [](const std::string&, const InodePtr& inode) {
    inode->locked = false;
    inode->allocated = 0;
  });
}

void SimFileSystem::crash(SimRandom& random) {
  std::lock_guard lock(core_->mutex);
  ++core_->generation;
  const std::uint64_t keep_percent = std::array<std::uint64_t, 3>{0, 50, 100}[random.below(3)];
  for (const auto& change : core_->pending) {
    if (random.below(100) < keep_percent) change.apply_to_disk();
  }
  core_->pending.clear();
  tear_tree(*core_->root, random);
}

void SimFileSystem::set_capacity(std::uint64_t bytes) {
  std::lock_guard lock(core_->mutex);
  core_->capacity = bytes;
}

std::uint64_t SimFileSystem::used_bytes() const {
  std::lock_guard lock(core_->mutex);
  return core_->used();
}

void SimFileSystem::inject(Fault fault) {
  std::lock_guard lock(core_->mutex);
  core_->faults.push_back(std::move(fault));
}

void SimFileSystem::clear_faults() {
  std::lock_guard lock(core_->mutex);
  core_->faults.clear();
}

std::uint64_t SimFileSystem::faults_struck() const {
  std::lock_guard lock(core_->mutex);
  return core_->struck;
}

void SimFileSystem::set_cold_share(double share) {
  std::lock_guard lock(core_->mutex);
  core_->cold_share = share;
}

std::vector<std::byte> SimFileSystem::content(const std::string& path) const {
  std::lock_guard lock(core_->mutex);
  return core_->file(path)->content;
}

void SimFileSystem::set_content(const std::string& path, std::vector<std::byte> content) {
  std::lock_guard lock(core_->mutex);
  const auto inode = core_->file(path);
  inode->content = std::move(content);
  settle(*inode);
}

void SimFileSystem::flip(const std::string& path, std::uint64_t position, std::byte mask) {
  std::lock_guard lock(core_->mutex);
  const auto inode = core_->file(path);
  inode->content.at(position) ^= mask;
  settle(*inode);
}

void SimFileSystem::truncate_file(const std::string& path, std::uint64_t size) {
  std::lock_guard lock(core_->mutex);
  const auto inode = core_->file(path);
  inode->content.resize(size);
  settle(*inode);
}

void SimFileSystem::remove_tree(const std::string& path) {
  std::lock_guard lock(core_->mutex);
  const auto [parent, name] = split_path(path);
  const auto directory = core_->find(parent);
  MQ_CHECK(directory, "no directory {}", parent);
  directory->names.erase(name);
  directory->durable_names.erase(name);
}

std::vector<std::string> SimFileSystem::files_below(const std::string& path) const {
  std::lock_guard lock(core_->mutex);
  std::vector<std::string> found;
  if (const auto directory = core_->find(path))
    walk(*directory, path,
         [&](const std::string& file, const InodePtr&) { found.push_back(file); });
  return found;
}

std::unique_ptr<SimFileSystem> SimFileSystem::clone() const {
  auto copy = std::make_unique<SimFileSystem>();
  std::lock_guard lock(core_->mutex);
  copy->core_->root = copy_tree(*core_->root);
  copy->core_->capacity = core_->capacity;
  return copy;
}

Result<std::unique_ptr<base::File>> SimFileSystem::open(const std::string& path, OpenMode mode) {
  std::lock_guard lock(core_->mutex);
  if (const auto* fault = core_->strike(FileOperation::open, path)) return fault->error;
  const auto [parent, name] = split_path(path);
  const auto directory = core_->find(parent);
  if (!directory || !directory->is_directory) return make_error_code(BaseErrc::not_found);
  auto inode = core_->find(path);
  if (inode && (inode->is_directory || mode == OpenMode::create_exclusive))
    return make_error_code(inode->is_directory ? BaseErrc::io_failed : BaseErrc::already_exists);
  if (!inode) {
    if (mode == OpenMode::read || mode == OpenMode::write)
      return make_error_code(BaseErrc::not_found);
    inode = std::make_shared<Inode>();
    DirectoryChange created;
    created.edits.push_back({directory, name, inode});
    core_->change(std::move(created));
  }
  std::unique_ptr<base::File> file =
      std::make_unique<SimFile>(core_, inode, path, mode != OpenMode::read);
  return file;
}

Result<void> SimFileSystem::make_directory(const std::string& path) {
  std::lock_guard lock(core_->mutex);
  if (const auto* fault = core_->strike(FileOperation::make_directory, path)) return fault->error;
  const auto [parent, name] = split_path(path);
  const auto directory = core_->find(parent);
  if (!directory || !directory->is_directory) return make_error_code(BaseErrc::not_found);
  if (core_->find(path)) return make_error_code(BaseErrc::already_exists);
  DirectoryChange created;
  created.edits.push_back({directory, name, std::make_shared<Inode>(Inode{.is_directory = true})});
  core_->change(std::move(created));
  return {};
}

Result<void> SimFileSystem::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(core_->mutex);
  if (const auto* fault = core_->strike(FileOperation::rename, from)) return fault->error;
  const auto inode = core_->find(from);
  const auto [from_parent, from_name] = split_path(from);
  const auto [to_parent, to_name] = split_path(to);
  const auto to_directory = core_->find(to_parent);
  if (!inode || !to_directory) return make_error_code(BaseErrc::not_found);
  const auto replaced = core_->find(to);
  if (replaced && replaced->is_directory) return make_error_code(BaseErrc::already_exists);
  DirectoryChange renamed;
  renamed.edits.push_back({core_->find(from_parent), from_name, nullptr});
  renamed.edits.push_back({to_directory, to_name, inode});
  core_->change(std::move(renamed));
  return {};
}

Result<void> SimFileSystem::remove_file(const std::string& path) {
  std::lock_guard lock(core_->mutex);
  if (const auto* fault = core_->strike(FileOperation::remove, path)) return fault->error;
  const auto inode = core_->find(path);
  if (!inode || inode->is_directory) return make_error_code(BaseErrc::not_found);
  const auto [parent, name] = split_path(path);
  DirectoryChange removed;
  removed.edits.push_back({core_->find(parent), name, nullptr});
  core_->change(std::move(removed));
  return {};
}

Result<void> SimFileSystem::remove_directory(const std::string& path) {
  std::lock_guard lock(core_->mutex);
  if (const auto* fault = core_->strike(FileOperation::remove, path)) return fault->error;
  const auto inode = core_->find(path);
  if (!inode || !inode->is_directory) return make_error_code(BaseErrc::not_found);
  if (!inode->names.empty()) return make_error_code(BaseErrc::already_exists);
  const auto [parent, name] = split_path(path);
  DirectoryChange removed;
  removed.edits.push_back({core_->find(parent), name, nullptr});
  core_->change(std::move(removed));
  return {};
}

Result<void> SimFileSystem::sync_directory(const std::string& path) {
  std::lock_guard lock(core_->mutex);
  if (const auto* fault = core_->strike(FileOperation::sync_directory, path)) return fault->error;
  const auto directory = core_->find(path);
  if (!directory || !directory->is_directory) return make_error_code(BaseErrc::not_found);
  std::erase_if(core_->pending, [&](const DirectoryChange& change) {
    if (!change.touches(*directory)) return false;
    change.apply_to_disk();
    return true;
  });
  return {};
}

Result<std::vector<base::DirectoryEntry>> SimFileSystem::list_directory(const std::string& path) {
  std::lock_guard lock(core_->mutex);
  if (const auto* fault = core_->strike(FileOperation::list, path)) return fault->error;
  const auto directory = core_->find(path);
  if (!directory || !directory->is_directory) return make_error_code(BaseErrc::not_found);
  std::vector<base::DirectoryEntry> entries;
  for (const auto& [name, inode] : directory->names) entries.push_back({name, inode->is_directory});
  return entries;
}

Result<bool> SimFileSystem::exists(const std::string& path) {
  std::lock_guard lock(core_->mutex);
  return core_->find(path) != nullptr;
}

Result<std::unique_ptr<base::FileLock>> SimFileSystem::lock(const std::string& path) {
  MQ_TRY(const auto opened, open(path, OpenMode::create));
  std::lock_guard lock(core_->mutex);
  const auto inode = core_->find(path);
  if (inode->locked) return make_error_code(BaseErrc::locked);
  inode->locked = true;
  std::unique_ptr<base::FileLock> held = std::make_unique<SimLock>(core_, inode);
  return held;
}

std::string SimFileSystem::lock_holder(const std::string& path) {
  std::lock_guard lock(core_->mutex);
  const auto inode = core_->find(path);
  return inode && inode->locked ? "pid 4711" : "unknown";
}

Result<std::uint64_t> SimFileSystem::free_bytes(const std::string&) {
  std::lock_guard lock(core_->mutex);
  return core_->free();
}

}  // namespace mq::testing
