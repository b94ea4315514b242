#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mq::base {

/// Sizes and times as people write them in broker.toml, topic settings and flags. A unit is always
/// needed: a bare number is an error, so that nobody mistakes seconds for milliseconds.

/// "64MiB", "10GB", "512KiB", "100B": B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB
/// (powers of 1024). Whole numbers; nothing on overflow, sign, blank or unknown unit.
std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept;

/// "14d", "30s", "500ms", "2h", "5m": ms, s, m, h, d, w. Whole numbers of one unit.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept;

/// The shortest exact form that parse_bytes reads back: 67108864 is "64MiB".
std::string format_bytes_exact(std::uint64_t bytes);
std::string format_duration_exact(std::chrono::milliseconds duration);

/// Rounded for people: "812.4 GiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace mq::base
