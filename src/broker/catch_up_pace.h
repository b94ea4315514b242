#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/runtime.h"

namespace mq::broker {

/// How fast all replicas together that are not in sync may fetch from this broker: turns one behind
/// the other, in the order in which they were asked for. Thread-safe.
class CatchUpPace {
 public:
  /// 0, and at first: as fast as they can. Before the first use.
  void set_rate(std::uint64_t bytes_per_second) noexcept { rate_ = bytes_per_second; }

  [[nodiscard]] bool limited() const noexcept { return rate_ > 0; }
  /// The time from which on so much may be sent. For what is sent already: the next ones wait.
  base::TimePoint reserve(std::uint64_t bytes, base::TimePoint now) noexcept {
    const auto began = now.time_since_epoch().count();
    const auto cost = cost_of(bytes);
    auto due = due_.load(std::memory_order_relaxed);
    auto turn = std::max(due, began);
    while (!due_.compare_exchange_weak(due, turn + cost, std::memory_order_relaxed))
      turn = std::max(due, began);
    return base::TimePoint(base::Duration(turn));
  }

 private:
  [[nodiscard]] base::Duration::rep cost_of(std::uint64_t bytes) const noexcept {
    const double seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
    return static_cast<base::Duration::rep>(seconds *
                                            static_cast<double>(base::Duration::period::den) /
                                            static_cast<double>(base::Duration::period::num));
  }

  std::uint64_t rate_ = 0;
  std::atomic<base::Duration::rep> due_{0};  // the beginning of the next turn
};

}  // namespace mq::broker
