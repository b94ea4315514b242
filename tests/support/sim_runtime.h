#pragma once

#include <string>

#include "base/runtime.h"
#include "support/simulator.h"

namespace mq::testing {

/// One node's runtime in a simulated world: the world's clock and queue, a wall clock that may be
/// wrong, randomness of its own. Outlives what runs on it.
class SimRuntime final : public base::Runtime {
 public:
  explicit SimRuntime(Simulator& simulator)
      : simulator_(simulator),
        random_(simulator.random().fork()),
        executor_(simulator.executor()) {}
  /// One of a process that `gate` stops.
  SimRuntime(Simulator& simulator, PauseGate& gate)
      : simulator_(simulator),
        random_(simulator.random().fork()),
        gate_(&gate),
        executor_(simulator.executor(gate)) {}

  const asio::any_io_executor& executor() override { return executor_; }
  base::TimePoint now() override { return simulator_.now(); }
  std::int64_t wall_clock_ms() override {
    return kWallClockStartMs + wall_clock_skew_ms_ +
           std::chrono::duration_cast<std::chrono::milliseconds>(
               simulator_.now().time_since_epoch())
               .count();
  }
  std::uint64_t random() override { return random_.next(); }
  TimerId start_timer(base::TimePoint due, std::function<void()> fire) override {
    return simulator_.start_timer(due, std::move(fire), gate_);
  }
  bool cancel_timer(TimerId timer) override {
    return simulator_.cancel_timer(timer) || (gate_ && gate_->cancel_timer(timer));
  }

  /// Moves the wall clock, forwards or back; now() does not notice.
  void jump_wall_clock(std::int64_t ms) noexcept { wall_clock_skew_ms_ += ms; }
  [[nodiscard]] Simulator& simulator() noexcept { return simulator_; }

 private:
  static constexpr std::int64_t kWallClockStartMs = 1'800'000'000'000;

  Simulator& simulator_;
  SimRandom random_;
  PauseGate* gate_ = nullptr;
  asio::any_io_executor executor_;
  std::int64_t wall_clock_skew_ms_ = 0;
};

}  // namespace mq::testing
