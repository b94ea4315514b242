#pragma once

#include <atomic>
#include <thread>

#include "base/unique_fd.h"

namespace mq::faults {

/// A TCP port in front of a broker that can be told to misbehave. Runs a thread of its own.
class Relay {
 public:
  enum class Mode {
    pass,              ///< forwards both ways
    swallow,           ///< connections that exist now stay open and carry nothing any more
    drop_answers,      ///< carries what clients send, and loses what comes back
    accept_and_close,  ///< new connections are closed at once, old ones too
  };

  explicit Relay(int target_port);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  void set(Mode mode) { mode_ = mode; }
  /// Connections accepted so far.
  [[nodiscard]] int accepted() const noexcept { return accepted_; }

 private:
  void run();

  int target_port_;
  base::UniqueFd listener_;
  int port_ = 0;
  std::atomic<Mode> mode_{Mode::pass};
  std::atomic<int> accepted_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace mq::faults
