#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <list>

#include "base/runtime.h"

namespace mq::base {

/// Coroutines of one runtime that wait for a condition which its owner announces with notify_all():
/// the condition variable of this code base. Waiters check their condition again after waking. Same
/// thread only.
class WaitList {
 public:
  explicit WaitList(Runtime& runtime) : runtime_(runtime) {}
  ~WaitList();  ///< wakes everyone, as notify_all()
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;

  /// True when notified, false when `deadline` came first. The caller keeps this list alive or
  /// returns at once after waking.
  asio::awaitable<bool> wait_until(TimePoint deadline);
  asio::awaitable<bool> wait();
  /// Wakes all present waiters in the order they came; they run later, from the executor.
  void notify_all();
  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }

 private:
  struct Waiter {
    asio::any_completion_handler<void(bool)> handler;
    Runtime::TimerId timer = 0;
  };
  void add(asio::any_completion_handler<void(bool)> handler, TimePoint deadline);

  Runtime& runtime_;
  std::list<Waiter> waiters_;
};

}  // namespace mq::base
