#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "integration/faults/child_process.h"
#include "support/temp_dir.h"

namespace mq::faults {

/// One mqbroker with a data directory of its own that lasts over restarts, on a fixed free port of
/// 127.0.0.1.
class BrokerProcess {
 public:
  /// `extra` is appended to broker.toml.
  explicit BrokerProcess(const std::string& extra = {});

  /// Clients are told to come to this port of 127.0.0.1 instead; before start().
  void advertise(int port);
  /// Returns once it says that it is ready; throws after 20 s.
  void start();
  void kill9() { child_->kill_now(); }
  /// SIGTERM; the exit code.
  int stop();
  void pause() const;
  void resume() const;

  [[nodiscard]] ChildProcess& child() { return *child_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string data() const { return dir_ / "data"; }
  [[nodiscard]] std::string config_file() const { return dir_ / "broker.toml"; }
  /// What it wrote so far, over all starts.
  [[nodiscard]] std::string log() const;
  [[nodiscard]] const testing::TempDir& dir() const noexcept { return dir_; }

 private:
  [[nodiscard]] std::size_t starts() const;

  void write_config(int advertised) const;

  testing::TempDir dir_;
  std::string extra_;
  int port_;
  std::unique_ptr<ChildProcess> child_;
};

/// Path of a program of this build: "mqbroker", "mqctl".
std::string program(const std::string& name);

}  // namespace mq::faults
