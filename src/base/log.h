#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>

namespace mq::base {

/// Diagnostics for operators, never data. One logger per process; lines go to standard error until
/// configured. Thread-safe. Text from a peer must go through printable() first.
enum class LogLevel { debug, info, warning, error, off };

struct LogConfig {
  LogLevel level = LogLevel::info;
  bool timestamps = true;  ///< off under systemd, whose journal has its own
};

void configure_log(const LogConfig& config);
bool log_enabled(LogLevel level) noexcept;
void write_log(LogLevel level, std::string_view module, std::string_view text);
void flush_log();
/// Sends lines to `sink` instead (tests, the client library's callback); an empty function restores
/// standard error.
void set_log_sink(
    std::function<void(LogLevel, std::string_view module, std::string_view text)> sink);

template <class... Args>
void log_debug(std::string_view module, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::debug))
    write_log(LogLevel::debug, module, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(std::string_view module, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::info))
    write_log(LogLevel::info, module, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(std::string_view module, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::warning))
    write_log(LogLevel::warning, module, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(std::string_view module, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::error))
    write_log(LogLevel::error, module, fmt::format(format, std::forward<Args>(args)...));
}

/// `text` cut to `limit` bytes with control bytes and bytes above 0x7e written as \xNN, so that no
/// peer can forge or colour a log line.
std::string printable(std::string_view text, std::size_t limit = 80);

}  // namespace mq::base
