#include "client/core/log.h"

namespace mq::client {
namespace {

constexpr auto kQuiet = std::chrono::seconds(10);
constexpr std::size_t kSubjectsMax = 1000;

}  // namespace

void Log::warning(const std::string& subject, std::string_view text) {
  const base::TimePoint now = runtime_.now();
  if (quiet_until_.size() > kSubjectsMax) quiet_until_.clear();
  base::TimePoint& until = quiet_until_[subject];
  if (until > now) return;
  until = now + kQuiet;
  line(LogLevel::warning, text);
}

void Log::line(LogLevel level, std::string_view text) {
  if (!sink_) return;
  try {
    sink_(level, text);
  } catch (...) {
    // The application's function failed to take a line; there is no better place to say so.
  }
}

}  // namespace mq::client
