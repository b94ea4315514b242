#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mq::faults {

/// Microseconds of the monotonic clock, as Python's time.monotonic() counts seconds.
inline std::int64_t monotonic_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

/// Who sent a record, and which of theirs it is.
struct LoadKey {
  int writer = 0;
  std::uint64_t number = 0;

  friend bool operator==(const LoadKey&, const LoadKey&) = default;
};

/// How long values may be; MQ_LOAD_BYTES of the environment.
inline std::uint64_t value_bytes_max() {
  static const char* const text = std::getenv("MQ_LOAD_BYTES");
  static const std::uint64_t bytes = text == nullptr ? 300 : std::strtoull(text, nullptr, 10);
  return std::max<std::uint64_t>(bytes, 1);
}

/// The value of a record follows from its key, so that a reader knows whether the bytes are right.
inline std::string value_of(const LoadKey& key) {
  auto value = fmt::format("{}:{}:", key.writer, key.number);
  value.append(key.number * 7919 % value_bytes_max(), static_cast<char>('a' + key.number % 26));
  return value;
}

/// Nothing when nobody can have sent it.
inline std::optional<LoadKey> key_of(std::string_view value) {
  LoadKey key;
  unsigned long long number = 0;
  const std::string text(value.substr(0, 40));
  if (std::sscanf(text.c_str(), "%d:%llu:", &key.writer, &number) != 2) return std::nullopt;
  key.number = number;
  if (value_of(key) != value) return std::nullopt;
  return key;
}

/// What happened, one line each, on stdout; history.py reads them. From any thread.
class LoadHistory {
 public:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    std::lock_guard lock(mutex_);
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_.push_back('\n');
    if (text_.size() >= (1u << 16)) write();
  }
  /// What was said is in the file then, in whole lines.
  void flush() {
    std::lock_guard lock(mutex_);
    write();
  }

 private:
  void write() {
    std::fwrite(text_.data(), 1, text_.size(), stdout);
    std::fflush(stdout);
    text_.clear();
  }

  std::mutex mutex_;
  std::string text_;
};

}  // namespace mq::faults
