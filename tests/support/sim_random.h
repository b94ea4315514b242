#pragma once

#include <chrono>
#include <cstdint>

#include "base/runtime.h"

namespace mq::testing {

/// The one source of chance in a simulation: splitmix64, so that a seed means the same on every
/// machine and library version.
class SimRandom {
 public:
  explicit SimRandom(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// In [0, n); 0 for n = 0.
  std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : next() % n; }
  /// In [low, high], both included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) noexcept {
    return low + below(high - low + 1);
  }
  bool chance(double probability) noexcept {
    return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
  }
  base::Duration duration(base::Duration low, base::Duration high) noexcept {
    return base::Duration(static_cast<std::int64_t>(between(
        static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count()))));
  }
  /// A generator of its own, so that one component's draws do not shift another's.
  SimRandom fork() noexcept { return SimRandom(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace mq::testing
