#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/counters.h"
#include "base/disk_executor.h"
#include "base/file_system.h"
#include "base/runtime.h"

namespace mq::storage {

/// How much of one log's segments may still lie in the page cache alone, as byte counts since the
/// start: everything below `clean` has been written back or synced.
struct DirtyBytes {
  std::atomic<std::uint64_t> appended{0};
  std::atomic<std::uint64_t> clean{0};
  [[nodiscard]] std::uint64_t now() const noexcept {
    const auto reached = clean.load(std::memory_order_relaxed);
    const auto all = appended.load(std::memory_order_relaxed);
    return all > reached ? all - reached : 0;
  }
};

/// Write-behind of one disk and its budget of dirty bytes. What is appended goes to the disk in
/// large strides, one behind the other, on a disk thread; the kernel is never left with so much
/// that it stops a worker to write it. Half the budget used: smaller strides of all logs are asked
/// for. All of it: appends have to wait until there is room again. Says nothing about durability.
/// Thread-safe.
class WriteBehind final : public std::enable_shared_from_this<WriteBehind> {
 public:
  struct Stride {
    std::shared_ptr<base::File> file;
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
    std::shared_ptr<DirtyBytes> log;
    std::uint64_t clean = 0;  ///< of `log`, when it is written
  };
  struct Hooks {
    /// Asks all logs for what they have. Any thread.
    std::function<void()> more;
    /// A write-back failed. On a disk thread.
    std::function<void(const base::Error&)> failed;
    /// Where strides wait for their turn at a head that others want as well; null: they need not.
    std::function<base::DiskExecutor*()> turns;
    /// What was written in such a turn leaves the drive's cache in it: whoever syncs next would
    /// have to wait for that. On a disk thread.
    std::function<void()> turn_ends;
  };

  WriteBehind(base::DiskExecutor& threads, base::Counters& counters, std::uint64_t budget,
              Hooks hooks);

  void appended(DirtyBytes& log, std::uint64_t bytes);
  void write(Stride stride);
  /// The log's bytes up to `clean` are on their way no more: written back, synced or removed.
  void settled(DirtyBytes& log, std::uint64_t clean);

  /// The logs have been asked for more.
  void heard() noexcept { asked_ = false; }
  /// So much is dirty that also small strides are wanted.
  [[nodiscard]] bool wants_more() const noexcept {
    return dirty_.load(std::memory_order_relaxed) >= budget_ / 2;
  }
  [[nodiscard]] bool has_room() const noexcept {
    return dirty_.load(std::memory_order_relaxed) < budget_;
  }
  /// `call` runs once, on `runtime`, when there is room again or nobody will make any.
  void when_room(base::Runtime& runtime, std::function<void()> call);
  /// Wakes all who wait, for good: the disk has failed or stops.
  void end();
  [[nodiscard]] std::uint64_t dirty() const noexcept { return dirty_.load(); }

 private:
  struct Waiter {
    base::Runtime& runtime;
    std::function<void()> call;
  };
  void run();
  void write_in_turn(base::DiskExecutor& turns, Stride stride);
  void finish(const Stride& stride);
  void wake();

  base::DiskExecutor& threads_;
  const std::uint64_t budget_;
  const Hooks hooks_;
  base::Counter& waits_;
  std::atomic<std::uint64_t> dirty_{0};
  std::atomic<bool> asked_{false};  // for more, and not heard yet

  std::mutex mutex_;  // guards the following
  std::deque<Stride> queue_;
  bool running_ = false;
  bool ended_ = false;
  std::vector<Waiter> waiters_;
};

}  // namespace mq::storage
