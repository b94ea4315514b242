#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/log.h"
#include "base/runtime.h"

namespace mq::broker {

/// Warnings that peers can cause: one line per kind and interval; the next line says how many were
/// left out. Thread-safe.
class RateLimitedLog {
 public:
  explicit RateLimitedLog(base::Duration interval = std::chrono::seconds(10))
      : interval_(interval) {}

  /// `kind` is one of a fixed set of names, never a peer's text.
  void warn(base::TimePoint now, const std::string& kind, const std::string& text);

 private:
  struct Kind {
    base::TimePoint next_line{};
    std::uint64_t left_out = 0;
  };

  base::Duration interval_;
  std::mutex mutex_;  // guards kinds_
  std::map<std::string, Kind> kinds_;
};

}  // namespace mq::broker
