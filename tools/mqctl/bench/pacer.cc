#include "mqctl/bench/pacer.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace mq::mqctl {

Pacer::Pacer(double rate, Clock::time_point start) : rate_(rate), start_(start) {
  ::prctl(PR_SET_TIMERSLACK, 1);
}

Pacer::Clock::time_point Pacer::due(std::uint64_t event) const {
  const auto ns = static_cast<double>(event) * 1e9 / rate_;
  return start_ + std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
}

std::uint64_t Pacer::due_count(Clock::time_point now) const {
  if (now < start_) return 0;
  const auto passed = std::chrono::duration<double>(now - start_).count();
  return static_cast<std::uint64_t>(passed * rate_) + 1;
}

bool Pacer::sleep_until(Clock::time_point due, const std::function<bool()>& interrupted) {
  constexpr std::chrono::milliseconds kSlice(100);
  while (true) {
    if (interrupted()) return false;
    const auto now = Clock::now();
    if (now >= due) return true;
    std::this_thread::sleep_until(std::min(due, now + kSlice));
  }
}

}  // namespace mq::mqctl
