#pragma once

#include <string>

namespace mq::broker {

/// systemd's notification protocol (sd_notify(3)); without a service manager nothing happens.
class ServiceManager {
 public:
  void ready(const std::string& status);
  /// Shown by `systemctl status`. Also asks for more time, since whoever calls it has made progress
  /// in a start or stop.
  void working(const std::string& status);
  void stopping();

  /// True if standard error is the journal, which has timestamps of its own.
  [[nodiscard]] static bool logs_to_journal();
};

}  // namespace mq::broker
