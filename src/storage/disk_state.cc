#include "storage/disk_state.h"

#include "base/log.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

constexpr auto kSlowAppend = std::chrono::milliseconds(10);
constexpr auto kSlowFor = std::chrono::seconds(1);
constexpr std::uint64_t kSpaceCheckBytes = std::uint64_t{32} << 20;

}  // namespace

DiskState::DiskState(std::string disk_path, DiskConfig disk_config, base::FileSystem& file_system,
                     DiskThreads threads, base::Runtime& home_runtime,
                     base::Counters& broker_counters)
    : path(std::move(disk_path)),
      config(std::move(disk_config)),
      files(file_system),
      executor(threads.work),
      home(home_runtime),
      counters(broker_counters),
      cold_reads(
          std::make_shared<ColdReads>(threads.cold_reads, home, config.journal_path.empty())),
      read_ahead(config.read_ahead_bytes),
      append_threads(threads.appends),
      sync_threads(threads.syncs) {}

void DiskState::fail(std::string_view operation, const std::string& file, Error error) {
  {
    const std::lock_guard lock(reason_mutex_);
    if (failed_.load()) return;
    failure_reason_ = fmt::format("{} of {} failed: {}", operation, file, error.message());
    failed_.store(true, std::memory_order_release);
  }
  base::log_error("storage", "disk {} is offline: {} of {} failed: {}", path, operation, file,
                  error.message());
  counters.get("storage_disks_failed_total").add();
  announce();
  // For the next start on this boot; another boot tells by itself, so it need not be synced.
  executor.submit([&file_system = files, to = path + "/" + std::string(kFailedFile)] {
    static_cast<void>(file_system.open(to, base::OpenMode::create));
  });
}

std::string DiskState::failure_reason() const {
  const std::lock_guard lock(reason_mutex_);
  return failure_reason_;
}

void DiskState::set_full(bool full) {
  if (full_.exchange(full) == full) return;
  if (full) {
    base::log_warning("storage", "disk {} is full: appends are refused until there is space", path);
  } else {
    base::log_info("storage", "disk {} has space again: appends go on", path);
  }
  announce();
}

bool DiskState::note_appended(std::uint64_t bytes) noexcept {
  const auto before = appended_.fetch_add(bytes, std::memory_order_relaxed);
  return before / kSpaceCheckBytes != (before + bytes) / kSpaceCheckBytes;
}

void DiskState::note_append_time(base::TimePoint now, base::Duration took) noexcept {
  if (took <= kSlowAppend) [[likely]]
    return;
  counters.get("storage_slow_appends_total").add();
  const auto until = base::Duration((now + kSlowFor).time_since_epoch()).count();
  if (slow_until_.load(std::memory_order_relaxed) < until) slow_until_ = until;
}

void DiskState::announce() {
  home.post([held = std::weak_ptr(listener_.load())] {
    if (const auto listener = held.lock()) listener->changed();
  });
}

void DiskState::ask_for_space_check() {
  home.post([held = std::weak_ptr(listener_.load())] {
    if (const auto listener = held.lock()) listener->check_space();
  });
}

void DiskState::ask_for_write_behind() {
  home.post([held = std::weak_ptr(listener_.load())] {
    if (const auto listener = held.lock()) listener->write_behind();
  });
}

void DiskState::note_damage() {
  home.post([held = std::weak_ptr(listener_.load())] {
    if (const auto listener = held.lock()) listener->damaged();
  });
}

void DiskState::note_sealed() {
  home.post([held = std::weak_ptr(listener_.load())] {
    if (const auto listener = held.lock()) listener->sealed();
  });
}

}  // namespace mq::storage
