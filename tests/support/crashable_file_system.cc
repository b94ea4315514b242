#include "support/crashable_file_system.h"

#include <list>

namespace mq::testing {

using base::BaseErrc;
using base::Result;

struct CrashableFileSystem::State {
  State(base::FileSystem& f, SimRandom r) : files(f), random(r) {}

  base::FileSystem& files;
  SimRandom random;
  bool dead = false;
  std::uint64_t changes = 0;
  std::uint64_t calls_left = 0;  // 0: no death planned
  std::function<void()> died;
  std::list<std::unique_ptr<base::FileLock>> locks;

  void die() {
    dead = true;
    locks.clear();
    if (auto call = std::exchange(died, nullptr)) call();
  }
  /// True when the planned death comes in the call now being made.
  bool dies_here() {
    ++changes;
    return calls_left > 0 && --calls_left == 0;
  }
  /// Runs a call that changes something; `change` must not refer to what die() may destroy.
  template <class Change>
  auto change(Change change) -> decltype(change()) {
    if (dead) return make_error_code(BaseErrc::io_failed);
    if (!dies_here()) return change();
    if (random.chance(0.5)) (void)change();
    die();
    return make_error_code(BaseErrc::io_failed);
  }
  template <class Call>
  auto look(Call call) -> decltype(call()) {
    if (dead) return make_error_code(BaseErrc::io_failed);
    return call();
  }
};

namespace {

using State = CrashableFileSystem::State;

class CrashableFile final : public base::File {
 public:
  CrashableFile(std::shared_ptr<State> state, std::unique_ptr<base::File> file)
      : state_(std::move(state)), file_(std::move(file)) {}

  Result<std::size_t> read_at(base::MutableBytes into, std::uint64_t position) override {
    return state_->look([&] { return file_->read_at(into, position); });
  }
  Result<std::size_t> read_cached_at(base::MutableBytes into, std::uint64_t position) override {
    return state_->look([&] { return file_->read_cached_at(into, position); });
  }
  Result<std::size_t> read_uncached_at(base::MutableBytes into, std::uint64_t position) override {
    return state_->look([&] { return file_->read_uncached_at(into, position); });
  }
  Result<std::size_t> write_at(std::span<const base::Bytes> pieces,
                               std::uint64_t position) override {
    if (state_->dead) return make_error_code(BaseErrc::io_failed);
    if (!state_->dies_here()) return file_->write_at(pieces, position);
    write_some(pieces, position);
    state_->die();
    return make_error_code(BaseErrc::io_failed);
  }
  Result<void> sync_data() override {
    return state_->change([&] { return file_->sync_data(); });
  }
  Result<void> sync_all() override {
    return state_->change([&] { return file_->sync_all(); });
  }
  Result<void> sync_file_system() override {
    return state_->change([&] { return file_->sync_file_system(); });
  }
  Result<void> truncate(std::uint64_t size) override {
    return state_->change([&] { return file_->truncate(size); });
  }
  Result<void> allocate(std::uint64_t position, std::uint64_t bytes) override {
    return state_->change([&] { return file_->allocate(position, bytes); });
  }
  void start_write_back(std::uint64_t position, std::uint64_t bytes) override {
    if (!state_->dead) file_->start_write_back(position, bytes);
  }
  Result<void> finish_write_back(std::uint64_t position, std::uint64_t bytes) override {
    return state_->look([&] { return file_->finish_write_back(position, bytes); });
  }
  void drop_cache(std::uint64_t position, std::uint64_t bytes) override {
    if (!state_->dead) file_->drop_cache(position, bytes);
  }
  Result<std::uint64_t> size() override {
    return state_->look([&] { return file_->size(); });
  }

 private:
  /// A write that the crash interrupts: any number of its first bytes arrive.
  void write_some(std::span<const base::Bytes> pieces, std::uint64_t position) {
    std::size_t total = 0;
    for (const auto& piece : pieces) total += piece.size();
    std::size_t left = state_->random.chance(0.3) ? total : state_->random.below(total + 1);
    for (const auto& piece : pieces) {
      const base::Bytes part = piece.first(std::min(left, piece.size()));
      if (!part.empty()) (void)file_->write_at(std::span(&part, 1), position);
      position += part.size();
      left -= part.size();
    }
  }

  std::shared_ptr<State> state_;
  std::unique_ptr<base::File> file_;
};

/// The real lock lies in the state, where a crash releases it; this handle only points at it.
class CrashableLock final : public base::FileLock {
 public:
  CrashableLock(std::shared_ptr<State> state, std::unique_ptr<base::FileLock> lock)
      : state_(std::move(state)), held_(lock.get()) {
    state_->locks.push_back(std::move(lock));
  }
  ~CrashableLock() override {
    std::erase_if(state_->locks, [this](const auto& lock) { return lock.get() == held_; });
  }

 private:
  std::shared_ptr<State> state_;
  const base::FileLock* held_;
};

}  // namespace

CrashableFileSystem::CrashableFileSystem(base::FileSystem& files, SimRandom random)
    : state_(std::make_shared<State>(files, random)) {}

CrashableFileSystem::~CrashableFileSystem() = default;

void CrashableFileSystem::kill() {
  state_->died = nullptr;
  if (!state_->dead) state_->die();
}

void CrashableFileSystem::kill_after(std::uint64_t calls, std::function<void()> died) {
  state_->calls_left = calls;
  state_->died = std::move(died);
}

bool CrashableFileSystem::dead() const noexcept { return state_->dead; }
std::uint64_t CrashableFileSystem::changes() const noexcept { return state_->changes; }

Result<std::unique_ptr<base::File>> CrashableFileSystem::open(const std::string& path,
                                                              base::OpenMode mode) {
  const auto open_it = [&] { return state_->files.open(path, mode); };
  const bool may_create =
      mode == base::OpenMode::create || mode == base::OpenMode::create_exclusive;
  MQ_TRY(auto file, may_create ? state_->change(open_it) : state_->look(open_it));
  std::unique_ptr<base::File> wrapped = std::make_unique<CrashableFile>(state_, std::move(file));
  return wrapped;
}

Result<void> CrashableFileSystem::make_directory(const std::string& path) {
  return state_->change([&] { return state_->files.make_directory(path); });
}
Result<void> CrashableFileSystem::rename(const std::string& from, const std::string& to) {
  return state_->change([&] { return state_->files.rename(from, to); });
}
Result<void> CrashableFileSystem::remove_file(const std::string& path) {
  return state_->change([&] { return state_->files.remove_file(path); });
}
Result<void> CrashableFileSystem::remove_directory(const std::string& path) {
  return state_->change([&] { return state_->files.remove_directory(path); });
}
Result<void> CrashableFileSystem::sync_directory(const std::string& path) {
  return state_->change([&] { return state_->files.sync_directory(path); });
}
Result<std::vector<base::DirectoryEntry>> CrashableFileSystem::list_directory(
    const std::string& path) {
  return state_->look([&] { return state_->files.list_directory(path); });
}
Result<bool> CrashableFileSystem::exists(const std::string& path) {
  if (state_->dead) return {boost::system::in_place_error, make_error_code(BaseErrc::io_failed)};
  return state_->files.exists(path);
}
Result<std::unique_ptr<base::FileLock>> CrashableFileSystem::lock(const std::string& path) {
  MQ_TRY(auto lock, state_->look([&] { return state_->files.lock(path); }));
  std::unique_ptr<base::FileLock> wrapped =
      std::make_unique<CrashableLock>(state_, std::move(lock));
  return wrapped;
}
std::string CrashableFileSystem::lock_holder(const std::string& path) {
  return state_->dead ? "unknown" : state_->files.lock_holder(path);
}
Result<std::uint64_t> CrashableFileSystem::free_bytes(const std::string& path) {
  return state_->look([&] { return state_->files.free_bytes(path); });
}

}  // namespace mq::testing
