#pragma once

#include <string>

#include "base/log.h"
#include "support/simulator.h"

namespace mq::sim {

/// Sends the product's log lines into the trace of one world for as long as it lives.
class LogCapture {
 public:
  explicit LogCapture(testing::Simulator& simulator) {
    base::set_log_sink(
        [&simulator](base::LogLevel, std::string_view module, std::string_view text) {
          simulator.trace("  log " + std::string(module) + ": " + std::string(text));
        });
  }
  ~LogCapture() { base::set_log_sink({}); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
};

}  // namespace mq::sim
