#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace mq::mqctl {

/// Keeps an open loop: event i is due at start + i / rate, whatever happened to those before it.
///
/// Waits by sleeping, never by spinning; the calling thread's timer slack is made as small as the
/// kernel allows, so that a sleep ends within microseconds of its time. One thread.
class Pacer {
 public:
  using Clock = std::chrono::steady_clock;

  /// `rate` is per second, above 0.
  Pacer(double rate, Clock::time_point start);
  [[nodiscard]] Clock::time_point due(std::uint64_t event) const;
  /// How many events are due at `now`: an index below it needs no sleep.
  [[nodiscard]] std::uint64_t due_count(Clock::time_point now) const;
  /// False when `interrupted` became true first.
  static bool sleep_until(Clock::time_point due, const std::function<bool()>& interrupted);

 private:
  double rate_;
  Clock::time_point start_;
};

}  // namespace mq::mqctl
