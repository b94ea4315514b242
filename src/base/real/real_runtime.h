#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <random>

#include "base/runtime.h"

namespace mq::base {

/// A Runtime on one io_context and the machine's clocks. The thread that is in run(),
/// run_one_until() or poll() is its thread.
class RealRuntime final : public Runtime {
 public:
  RealRuntime();
  ~RealRuntime() override;

  const asio::any_io_executor& executor() override { return executor_; }
  TimePoint now() override;
  std::int64_t wall_clock_ms() override;
  std::int64_t coarse_wall_clock_ms() override;
  std::uint64_t random() override;
  TimerId start_timer(TimePoint due, std::function<void()> fire) override;
  bool cancel_timer(TimerId timer) override;

  /// Serves until stop(). One thread at a time, here and in the next two.
  void run();
  /// Waits for something to do and does it; false at `due` and after stop().
  bool run_one_until(TimePoint due);
  /// Does what can be done without waiting; how much that was.
  std::size_t poll();
  /// From any thread; what is queued stays queued.
  void stop();
  /// After stop(), and with no thread inside: the next run() serves again.
  void resume();
  asio::io_context& context() { return context_; }

 private:
  void arm();
  void fire_due();

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::any_io_executor executor_;
  asio::basic_waitable_timer<std::chrono::steady_clock> alarm_;
  TimePoint armed_for_ = TimePoint::max();
  std::map<std::pair<TimePoint, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, TimePoint> due_of_;
  TimerId next_timer_ = 1;
  std::mt19937_64 random_;
};

/// Cryptographic-quality random bytes from the operating system, for uuids and client instances.
std::uint64_t secure_random();

}  // namespace mq::base
