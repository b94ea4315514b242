#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mq::mqctl {

/// A buffered output that remembers its first failure. Thread-safe: a client library's log lines
/// come from its own thread.
///
/// A reader that went away (EPIPE) is not a failure: it has all that it wanted, so the rest is
/// dropped and the command ends quietly. Any other error is kept for the command's exit code.
class Output {
 public:
  virtual ~Output() = default;
  void write(std::string_view text);
  /// Hands everything to the system now. False when nothing more can be written.
  bool flush();
  /// The errno of the first failed write, 0 when there was none or the reader went away.
  [[nodiscard]] int error() const;
  /// Nothing more can be written, for either reason.
  [[nodiscard]] bool ended() const;

 protected:
  /// Writes all of it; 0 or an errno value.
  virtual int write_all(std::string_view text) = 0;

 private:
  bool flush_locked();

  mutable std::mutex mutex_;  // guards all below
  std::string buffer_;
  int error_ = 0;
};

class FdOutput final : public Output {
 public:
  explicit FdOutput(int fd) : fd_(fd) {}

 private:
  int write_all(std::string_view text) override;
  int fd_;
};

class Input {
 public:
  virtual ~Input() = default;
  /// At least one byte, 0 at the end, or a negative errno (-EINTR when a signal came).
  virtual std::ptrdiff_t read(std::span<char> into) = 0;
};

class FdInput final : public Input {
 public:
  explicit FdInput(int fd) : fd_(fd) {}
  std::ptrdiff_t read(std::span<char> into) override;

 private:
  int fd_;
};

/// Everything outside the process that a command touches besides the network: the three streams,
/// the environment and Ctrl-C. Tests give their own.
struct Console {
  Output& out;
  Output& err;
  Input& in;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  std::function<std::optional<std::string>(const std::string&)> env;
  /// True once Ctrl-C or SIGTERM came; long commands look at it several times a second.
  std::function<bool()> interrupted = [] { return false; };

  /// A line for people on stderr, at once.
  void notice(std::string_view line) const;
  /// Asks on stderr, reads one line from stdin; nothing at its end.
  [[nodiscard]] std::optional<std::string> ask(std::string_view question) const;
  /// An environment variable that is set and not empty.
  [[nodiscard]] std::optional<std::string> variable(const std::string& name) const;
  /// Colour and redrawing are for a terminal that wants them.
  [[nodiscard]] bool err_is_lively(bool no_color) const;
};

}  // namespace mq::mqctl
