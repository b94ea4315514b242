#include "broker/rate_limited_log.h"

namespace mq::broker {

void RateLimitedLog::warn(base::TimePoint now, const std::string& kind, const std::string& text) {
  std::uint64_t left_out = 0;
  {
    std::lock_guard lock(mutex_);
    Kind& entry = kinds_[kind];
    if (now < entry.next_line) {
      ++entry.left_out;
      return;
    }
    left_out = std::exchange(entry.left_out, 0);
    entry.next_line = now + interval_;
  }
  if (left_out == 0) return base::log_warning("listener", "{}", text);
  base::log_warning("listener", "{} ({} more like it since the last line)", text, left_out);
}

}  // namespace mq::broker
