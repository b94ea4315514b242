#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "base/wait_list.h"

namespace mq::net {

/// A bound on the bytes that one worker's requests hold at a time. Whoever reads a frame takes its
/// size first and waits while the budget is spent; meanwhile the socket is not read and TCP pushes
/// back. First come, first served. On one runtime; outlives every lease.
class MemoryBudget {
 public:
  MemoryBudget(base::Runtime& runtime, std::size_t bytes) : runtime_(runtime), limit_(bytes) {}
  ~MemoryBudget();  ///< nobody waits, nothing is taken
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// Suspends until `bytes` are free. More than the whole budget counts as the whole budget, so
  /// that every request can run, alone if need be. Returns what was taken, to be given to
  /// release().
  asio::awaitable<std::size_t> take(std::size_t bytes);
  /// False if it would have to wait, also behind others. `bytes` is at most limit().
  bool try_take(std::size_t bytes);
  void release(std::size_t bytes);

  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiters_.size(); }

 private:
  struct Waiter {
    std::size_t bytes;
    base::WaitList granted_list;
    bool granted = false;
  };

  base::Runtime& runtime_;
  std::size_t limit_;
  std::size_t used_ = 0;
  std::deque<Waiter*> waiters_;  // each lies in the frame of its take()
};

/// Bytes taken from a budget, given back when this goes away.
class Lease {
 public:
  Lease() = default;
  /// `bytes` have been taken from `budget`.
  Lease(MemoryBudget& budget, std::size_t bytes) noexcept : budget_(&budget), bytes_(bytes) {}
  Lease(Lease&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Lease& operator=(Lease&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Lease() { give_back(); }

  void give_back() noexcept;
  /// Gives back all but `bytes`.
  void shrink(std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  MemoryBudget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace mq::net
