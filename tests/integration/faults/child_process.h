#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace mq::faults {

/// One child process of a test. Its output goes to a file. Whatever happens to the test, the child
/// is killed and waited for.
class ChildProcess {
 public:
  /// Starts `command` (a program's path and its arguments); output and errors go to `output_file`.
  ChildProcess(const std::vector<std::string>& command, const std::string& output_file);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void signal(int number) const;
  /// How it ended: the exit code, or 128 + signal. Nothing if it still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);
  [[nodiscard]] bool running();
  /// kill -9, and gone.
  void kill_now();

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// A TCP port of 127.0.0.1 that nobody uses just now.
int free_port();

}  // namespace mq::faults
