#include "mqctl/cli/console.h"

#include <unistd.h>

#include <cerrno>

namespace mq::mqctl {
namespace {
constexpr std::size_t kBufferBytes = std::size_t{256} << 10;
}

void Output::write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (error_ != 0) return;
  buffer_.append(text);
  if (buffer_.size() >= kBufferBytes) flush_locked();
}

bool Output::flush() {
  const std::lock_guard lock(mutex_);
  return flush_locked();
}

bool Output::flush_locked() {
  if (error_ == 0 && !buffer_.empty()) error_ = write_all(buffer_);
  buffer_.clear();
  return error_ == 0;
}

int Output::error() const {
  const std::lock_guard lock(mutex_);
  return error_ == EPIPE ? 0 : error_;
}

bool Output::ended() const {
  const std::lock_guard lock(mutex_);
  return error_ != 0;
}

int FdOutput::write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::ptrdiff_t FdInput::read(std::span<char> into) {
  const ssize_t got = ::read(fd_, into.data(), into.size());
  return got < 0 ? -errno : got;
}

void Console::notice(std::string_view line) const {
  err.write(line);
  err.write("\n");
  err.flush();
}

std::optional<std::string> Console::ask(std::string_view question) const {
  err.write(question);
  err.flush();
  std::string line;
  char next = 0;
  while (true) {
    const auto got = in.read({&next, 1});
    if (got == -EINTR && !interrupted()) continue;
    if (got <= 0) return std::nullopt;
    if (next == '\n') return line;
    line += next;
  }
}

std::optional<std::string> Console::variable(const std::string& name) const {
  auto value = env ? env(name) : std::nullopt;
  if (value && value->empty()) value.reset();
  return value;
}

bool Console::err_is_lively(bool no_color) const {
  return err_is_terminal && !no_color && !variable("NO_COLOR") && variable("TERM") != "dumb";
}

}  // namespace mq::mqctl
