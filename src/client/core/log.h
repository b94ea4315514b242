#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/runtime.h"
#include "mq/config.h"

namespace mq::client {

/// One client object's log lines, on its runtime's thread. Repeats are held back: for each
/// `subject` (a broker, a topic) at most one warning in ten seconds, whatever it says.
class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;

  Log(base::Runtime& runtime, Sink sink) : runtime_(runtime), sink_(std::move(sink)) {}

  void warning(const std::string& subject, std::string_view text);
  void line(LogLevel level, std::string_view text);

 private:
  base::Runtime& runtime_;
  Sink sink_;
  std::map<std::string, base::TimePoint> quiet_until_;
};

}  // namespace mq::client
