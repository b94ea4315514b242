#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/counters.h"
#include "base/disk_executor.h"
#include "base/file_system.h"
#include "base/runtime.h"
#include "storage/cold_reads.h"
#include "storage/damage_notes.h"
#include "storage/disk.h"
#include "storage/read_ahead.h"
#include "storage/write_behind.h"

namespace mq::storage {

/// What a disk and its logs share on all threads: whether it has failed or is full, and through
/// what it is reached. Work on the disk's threads keeps it alive.
class DiskState {
 public:
  DiskState(std::string path, DiskConfig config, base::FileSystem& files, DiskThreads threads,
            base::Runtime& home, base::Counters& counters);

  const std::string path;
  const DiskConfig config;
  base::FileSystem& files;
  base::DiskExecutor& executor;
  base::Runtime& home;
  base::Counters& counters;
  const std::shared_ptr<ColdReads> cold_reads;
  ReadAhead read_ahead;
  DamageNotes damage;
  std::shared_ptr<WriteBehind> write_behind;  // set before the first log
  base::DiskExecutor& append_threads;
  base::DiskExecutor& sync_threads;

  /// Where something long is written: in turn with those who read, when the head is shared so.
  [[nodiscard]] base::DiskExecutor& writers_turn() const {
    return cold_reads->takes_turns() ? cold_reads->strides() : executor;
  }

  /// An append took `took` until `now`, on whatever thread. Any thread.
  void note_append_time(base::TimePoint now, base::Duration took) noexcept;
  /// One of the last second's appends slept: they go through the append thread until none does, so
  /// that no worker sleeps with them. Any thread.
  [[nodiscard]] bool appends_are_slow(base::TimePoint now) const noexcept {
    return now.time_since_epoch().count() < slow_until_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// REC-5: from now on nothing of this disk is synced or served. Logs the first reason.
  void fail(std::string_view operation, const std::string& file, Error error);
  [[nodiscard]] std::string failure_reason() const;

  [[nodiscard]] bool full() const noexcept { return full_.load(std::memory_order_relaxed); }
  void set_full(bool full);

  /// Read by recovery so far. Any thread.
  void note_recovery_read(std::uint64_t bytes) noexcept {
    recovery_read_.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t recovery_read() const noexcept {
    return recovery_read_.load(std::memory_order_relaxed);
  }

  /// Counts appended bytes; true each time so many came together that the free space should be
  /// looked at before the next tick.
  [[nodiscard]] bool note_appended(std::uint64_t bytes) noexcept;

  /// All that was appended since the start. Any thread.
  [[nodiscard]] std::uint64_t appended_bytes() const noexcept {
    return appended_.load(std::memory_order_relaxed);
  }

  /// The free space should be looked at now. Any thread.
  void ask_for_space_check();

  /// A finished segment has become durable. Any thread.
  void note_sealed();
  /// `damage` has changed. Any thread.
  void note_damage();
  /// All logs should write behind what they have, soon. Any thread.
  void ask_for_write_behind();

  /// What the Disk does, on the home runtime, when something happened on another thread.
  struct Listener {
    std::function<void()> changed;  ///< failed() or full()
    std::function<void()> check_space;
    std::function<void()> sealed;
    std::function<void()> damaged;
    std::function<void()> write_behind;
  };
  /// Set and given up on the home runtime; after that nothing is called any more.
  void listen(std::shared_ptr<Listener> listener) { listener_.store(std::move(listener)); }

 private:
  void announce();

  mutable std::mutex reason_mutex_;  // guards failure_reason_
  std::string failure_reason_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> full_{false};
  std::atomic<std::uint64_t> appended_{0};
  std::atomic<std::uint64_t> recovery_read_{0};
  std::atomic<base::Duration::rep> slow_until_{std::numeric_limits<base::Duration::rep>::min()};
  std::atomic<std::shared_ptr<Listener>> listener_;
};

}  // namespace mq::storage
