#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <mutex>

namespace mq::base {
namespace {

using Sink = std::function<void(LogLevel, std::string_view, std::string_view)>;

struct Logger {
  std::mutex mutex;  // guards sink
  Sink sink;
  std::atomic<LogLevel> level{LogLevel::info};
  std::atomic<bool> journal{false};
  std::shared_ptr<spdlog::logger> out;

  Logger()
      : out(std::make_shared<spdlog::logger>("mq",
                                             std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
    out->set_level(spdlog::level::trace);
    out->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    out->flush_on(spdlog::level::info);
  }
};

Logger& logger() {
  static Logger* const instance =
      new Logger;  // never destroyed: threads may log while statics are torn down
  return *instance;
}

/// Sets the priority of a journal entry, sd-daemon(3); the journal takes it off the line.
std::string_view journal_prefix(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "<7>";
    case LogLevel::info:
      return "<6>";
    case LogLevel::warning:
      return "<4>";
    case LogLevel::error:
    case LogLevel::off:
      return "<3>";
  }
  return "<3>";
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

}  // namespace

void configure_log(const LogConfig& config) {
  logger().level = config.level;
  logger().journal = !config.timestamps;
  logger().out->set_pattern(config.timestamps ? "%Y-%m-%dT%H:%M:%S.%eZ %l %v" : "%v",
                            spdlog::pattern_time_type::utc);
}

bool log_enabled(LogLevel level) noexcept {
  return level >= logger().level.load(std::memory_order_relaxed);
}

void write_log(LogLevel level, std::string_view module, std::string_view text) {
  Sink sink;
  {
    std::lock_guard lock(logger().mutex);
    sink = logger().sink;
  }
  if (sink) return sink(level, module, text);
  const auto prefix = logger().journal ? journal_prefix(level) : std::string_view();
  logger().out->log(to_spdlog(level), "{}{}: {}", prefix, module, text);
}

void flush_log() { logger().out->flush(); }

void set_log_sink(Sink sink) {
  std::lock_guard lock(logger().mutex);
  logger().sink = std::move(sink);
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > limit) out += "...";
  return out;
}

}  // namespace mq::base
