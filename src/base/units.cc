#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/strings.h"

namespace mq::base {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 9> kSizes{{{"TiB", 1ull << 40},
                                      {"GiB", 1ull << 30},
                                      {"MiB", 1ull << 20},
                                      {"KiB", 1ull << 10},
                                      {"TB", 1'000'000'000'000},
                                      {"GB", 1'000'000'000},
                                      {"MB", 1'000'000},
                                      {"KB", 1'000},
                                      {"B", 1}}};
constexpr std::array<Unit, 6> kTimes{{{"w", 7ull * 86'400'000},
                                      {"d", 86'400'000},
                                      {"h", 3'600'000},
                                      {"m", 60'000},
                                      {"s", 1'000},
                                      {"ms", 1}}};

template <std::size_t N>
std::optional<std::uint64_t> parse_with(std::string_view text,
                                        const std::array<Unit, N>& units) noexcept {
  const auto digits = text.find_first_not_of("0123456789");
  if (digits == std::string_view::npos || digits == 0) return std::nullopt;
  const auto number = parse_unsigned(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const auto& unit : units) {
    if (unit.name != text.substr(digits)) continue;
    if (*number >
        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / unit.factor)
      return std::nullopt;
    return *number * unit.factor;
  }
  return std::nullopt;
}

template <std::size_t N>
std::string format_with(std::uint64_t value, const std::array<Unit, N>& units) {
  for (const auto& unit : units) {
    if (value != 0 && value % unit.factor == 0)
      return fmt::format("{}{}", value / unit.factor, unit.name);
  }
  return fmt::format("0{}", units.back().name);
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
  return parse_with(text, kSizes);
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept {
  const auto value = parse_with(text, kTimes);
  if (!value) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*value));
}

std::string format_bytes_exact(std::uint64_t bytes) { return format_with(bytes, kSizes); }

std::string format_duration_exact(std::chrono::milliseconds duration) {
  return format_with(static_cast<std::uint64_t>(duration.count()), kTimes);
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array<std::string_view, 5> kNames{"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (value /= 1024; value >= 1024 && unit + 1 < kNames.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kNames[unit]);
}

}  // namespace mq::base
