#include "config/config_value.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/units.h"

namespace mq::config {
namespace {

template <class T>
ValueOr<T> refused(std::string text) {
  return {std::nullopt, std::move(text)};
}

bool is_text(const ConfigValue& value) {
  return value.type == ConfigValue::Type::string || value.type == ConfigValue::Type::plain;
}

}  // namespace

std::string ConfigValue::shown() const {
  const auto safe = base::printable(text, 100);
  return type == Type::string ? fmt::format("\"{}\"", safe) : safe;
}

ValueOr<std::int64_t> read_integer(const ConfigValue& value, std::int64_t min, std::int64_t max) {
  const bool numeric =
      value.type == ConfigValue::Type::integer || value.type == ConfigValue::Type::plain;
  const auto number = numeric ? base::parse_signed(value.text) : std::nullopt;
  if (number && *number >= min && *number <= max) return {number, {}};
  const bool quoted_number =
      value.type == ConfigValue::Type::string && base::parse_signed(value.text).has_value();
  return refused<std::int64_t>(fmt::format("expected a number from {} to {}{}, got {}", min, max,
                                           quoted_number ? " without quotes" : "", value.shown()));
}

ValueOr<bool> read_boolean(const ConfigValue& value) {
  // With quotes too: they were asked for once.
  const bool possible = is_text(value) || value.type == ConfigValue::Type::boolean;
  if (possible && value.text == "true") return {true, {}};
  if (possible && value.text == "false") return {false, {}};
  return refused<bool>(fmt::format("expected true or false, got {}", value.shown()));
}

ValueOr<std::string> read_string(const ConfigValue& value, std::string_view what) {
  if (!is_text(value))
    return refused<std::string>(fmt::format("expected {} in quotes, got {}", what, value.shown()));
  return {value.text, {}};
}

ValueOr<std::uint64_t> read_bytes(const ConfigValue& value, std::uint64_t min, std::uint64_t max) {
  const auto bytes = is_text(value) ? base::parse_bytes(value.text) : std::nullopt;
  if (bytes && *bytes >= min && *bytes <= max) return {bytes, {}};
  if (bytes)
    return refused<std::uint64_t>(fmt::format("expected a size from {} to {}, got {}",
                                              base::format_bytes_exact(min),
                                              base::format_bytes_exact(max), value.shown()));
  const auto bare = base::parse_unsigned(value.text);
  if (bare)
    return refused<std::uint64_t>(
        fmt::format("a size needs its unit; write \"{}\"", base::format_bytes_exact(*bare)));
  return refused<std::uint64_t>(
      fmt::format("expected a size with its unit, such as \"64MiB\", got {}", value.shown()));
}

ValueOr<std::chrono::milliseconds> read_duration(const ConfigValue& value,
                                                 std::chrono::milliseconds min,
                                                 std::chrono::milliseconds max) {
  const auto time = is_text(value) ? base::parse_duration(value.text) : std::nullopt;
  if (time && *time >= min && *time <= max) return {time, {}};
  if (time)
    return refused<std::chrono::milliseconds>(
        fmt::format("expected a time from {} to {}, got {}", base::format_duration_exact(min),
                    base::format_duration_exact(max), value.shown()));
  if (base::parse_unsigned(value.text))
    return refused<std::chrono::milliseconds>(
        fmt::format("a time needs its unit; write \"{0}s\" or \"{0}ms\"", value.text));
  return refused<std::chrono::milliseconds>(
      fmt::format("expected a time with its unit, such as \"30s\", got {}", value.shown()));
}

}  // namespace mq::config
