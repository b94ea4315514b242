#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/asio.h"

namespace mq::base {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// One thread's clock, timers, randomness and executor: everything through which code waits. A
/// daemon has one Runtime per worker thread (base/real/real_runtime.h); the simulator runs many on
/// one thread with a clock that jumps.
///
/// All members belong to the runtime's own thread, except post(), executor() and the clocks, which
/// any thread may call.
class Runtime {
 public:
  using TimerId = std::uint64_t;  ///< never 0

  virtual ~Runtime() = default;

  [[nodiscard]] virtual const asio::any_io_executor& executor() = 0;
  /// Monotonic; the only clock that decides anything about waiting.
  [[nodiscard]] virtual TimePoint now() = 0;
  /// Milliseconds since 1970, for append times and display. May jump.
  [[nodiscard]] virtual std::int64_t wall_clock_ms() = 0;
  /// The same, up to a few milliseconds late, and cheap enough to be read for every record.
  [[nodiscard]] virtual std::int64_t coarse_wall_clock_ms() { return wall_clock_ms(); }
  /// Not predictable from outside.
  [[nodiscard]] virtual std::uint64_t random() = 0;

  /// Calls `fire` once on this runtime's thread at or after `due`.
  virtual TimerId start_timer(TimePoint due, std::function<void()> fire) = 0;
  /// False if it has fired already (or never was).
  virtual bool cancel_timer(TimerId timer) = 0;

  /// Suspends until `due`; honours cancellation (`op || runtime.sleep_until(t)`).
  asio::awaitable<void> sleep_until(TimePoint due);
  asio::awaitable<void> sleep_for(Duration duration) { return sleep_until(now() + duration); }

  void post(std::function<void()> work);
  /// Starts a coroutine on this runtime; an exception that leaves it is logged under `what`.
  void spawn(std::string what, asio::awaitable<void> task);
};

/// Coroutines that one component started and must see ended before it goes away. Same thread only.
class TaskGroup {
 public:
  explicit TaskGroup(Runtime& runtime) : runtime_(runtime) {}
  ~TaskGroup();  ///< all tasks have ended by then
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void spawn(std::string what, asio::awaitable<void> task);
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// Returns when no task runs. The owner has told them to stop.
  asio::awaitable<void> wait();

 private:
  void ended();

  Runtime& runtime_;
  std::size_t running_ = 0;
  std::function<void()> when_empty_;
};

}  // namespace mq::base
