#pragma once

#include <algorithm>
#include <chrono>

#include "mq/config.h"

namespace mq::client {

/// `now` plus a wait that the application chose: Duration::max() is its way to say for ever, and
/// less than nothing is nothing.
template <class TimePoint>
TimePoint deadline_after(TimePoint now, Duration wait) {
  constexpr Duration kForEver = std::chrono::hours(24 * 365 * 100);  // fits nanoseconds
  return now + std::clamp(wait, Duration::zero(), kForEver);
}

}  // namespace mq::client
