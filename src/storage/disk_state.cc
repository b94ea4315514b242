#include "storage/disk_state.h"

#include "base/log.h"

namespace mq::storage {
namespace {

constexpr std::uint64_t kSpaceCheckBytes = std::uint64_t{32} << 20;

}  // namespace

DiskState::DiskState(std::string disk_path, DiskConfig disk_config, base::FileSystem& file_system,
                     base::DiskExecutor& disk_executor, base::Runtime& home_runtime,
                     base::Counters& broker_counters)
    : path(std::move(disk_path)),
      config(std::move(disk_config)),
      files(file_system),
      executor(disk_executor),
      home(home_runtime),
      counters(broker_counters) {}

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

void DiskState::note_sealed() {
  home.post([held = std::weak_ptr(listener_.load())] {
    if (const auto listener = held.lock()) listener->sealed();
  });
}

}  // namespace mq::storage
