#include "storage/checked_clock.h"

#include <cstdlib>

namespace mq::storage {
namespace {

std::int64_t ms_of(base::TimePoint at) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

bool too_far(std::int64_t apart_ms) { return std::abs(apart_ms) > CheckedClock::kToleranceMs; }

}  // namespace

std::optional<std::int64_t> CheckedClock::ahead_ms(base::Runtime& runtime) const {
  const auto others_ms = others_ms_.load(std::memory_order_acquire);
  if (others_ms == kNone) return std::nullopt;
  return runtime.wall_clock_ms() - (others_ms + ms_of(runtime.now()));
}

bool CheckedClock::is_off(base::Runtime& runtime) const {
  const auto ahead = ahead_ms(runtime);
  return ahead && too_far(*ahead);
}

std::int64_t CheckedClock::append_time_ms(base::Runtime& runtime) const {
  const auto own_ms = runtime.wall_clock_ms();
  const auto others_ms = others_ms_.load(std::memory_order_acquire);
  if (others_ms == kNone) return own_ms;
  const auto theirs_ms = others_ms + ms_of(runtime.now());
  return too_far(own_ms - theirs_ms) ? theirs_ms : own_ms;
}

std::optional<std::int64_t> CheckedClock::retention_time_ms(base::Runtime& runtime) const {
  const auto trust = trust_.load(std::memory_order_acquire);
  const bool trusted = trust == Trust::own || (trust == Trust::compared && !is_off(runtime));
  return trusted ? std::optional(runtime.wall_clock_ms()) : std::nullopt;
}

void CheckedClock::believe() {
  others_ms_.store(kNone, std::memory_order_release);
  trust_.store(Trust::own, std::memory_order_release);
}

void CheckedClock::compare_with(std::int64_t time_ms, base::TimePoint at) {
  others_ms_.store(time_ms - ms_of(at), std::memory_order_release);
  trust_.store(Trust::compared, std::memory_order_release);
}

void CheckedClock::doubt() { trust_.store(Trust::doubted, std::memory_order_release); }

}  // namespace mq::storage
