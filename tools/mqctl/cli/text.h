#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mq::mqctl {

/// "4m12s", "3d4h", "12s": the two largest parts.
std::string format_age(std::chrono::milliseconds age);
/// "12 ms", "1.24 s", "0.31 ms": three digits.
std::string format_time(std::chrono::nanoseconds time);
/// RFC 3339 in UTC with milliseconds: "2026-11-29T14:20:07.113Z". It has four digits for the year;
/// a time outside of them is milliseconds since 1970: "253402300800000ms".
std::string format_timestamp(std::int64_t unix_ms);
/// The opposite, exactly; also takes whole seconds, and any time in milliseconds. Nothing for other
/// text.
std::optional<std::int64_t> parse_timestamp(std::string_view text);

/// \n, \t, \r, \0, \\ and \xHH become the bytes they stand for; nothing when another letter or no
/// letter follows a backslash.
std::optional<std::string> unescape(std::string_view text);

bool is_utf8(std::string_view text) noexcept;
std::string to_hex(std::string_view bytes);
std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

}  // namespace mq::mqctl
