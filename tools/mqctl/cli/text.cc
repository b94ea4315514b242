#include "mqctl/cli/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/strings.h"

namespace mq::mqctl {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

std::optional<char> simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case '0':
      return '\0';
    case '\\':
      return '\\';
    default:
      return std::nullopt;
  }
}

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return std::nullopt;
  const auto number = base::parse_unsigned(text.substr(at, count));
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

/// The length of the UTF-8 sequence at the start of `text`, 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (at(0) < 0x80) return 1;
  const std::size_t length = at(0) >= 0xF0 ? 4 : at(0) >= 0xE0 ? 3 : 2;
  if (at(0) < 0xC2 || at(0) > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xC0U) != 0x80) return 0;
  const bool overlong = (at(0) == 0xE0 && at(1) < 0xA0) || (at(0) == 0xF0 && at(1) < 0x90);
  const bool surrogate = at(0) == 0xED && at(1) > 0x9F;
  const bool too_large = at(0) == 0xF4 && at(1) > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

std::string format_age(std::chrono::milliseconds age) {
  struct Unit {
    std::int64_t ms;
    char letter;
  };
  constexpr std::array<Unit, 4> kUnits = {
      {{86'400'000, 'd'}, {3'600'000, 'h'}, {60'000, 'm'}, {1'000, 's'}}};
  std::string text;
  int parts = 0;
  std::int64_t left = age.count();
  for (const auto& unit : kUnits) {
    if (parts == 0 && left < unit.ms && unit.ms != 1'000) continue;
    text += fmt::format("{}{}", left / unit.ms, unit.letter);
    left %= unit.ms;
    if (++parts == 2) break;
  }
  return text;
}

std::string format_time(std::chrono::nanoseconds time) {
  const auto ms = static_cast<double>(time.count()) / 1e6;
  if (ms >= 10'000) return fmt::format("{:.1f} s", ms / 1000);
  if (ms >= 1'000) return fmt::format("{:.2f} s", ms / 1000);
  if (ms >= 100) return fmt::format("{:.0f} ms", ms);
  if (ms >= 10) return fmt::format("{:.1f} ms", ms);
  return fmt::format("{:.2f} ms", ms);
}

std::string format_timestamp(std::int64_t unix_ms) {
  using namespace std::chrono;
  constexpr milliseconds kFirst = sys_days(year(0) / January / 1).time_since_epoch();
  constexpr milliseconds kEnd = sys_days(year(10'000) / January / 1).time_since_epoch();
  if (unix_ms < kFirst.count() || unix_ms >= kEnd.count()) return fmt::format("{}ms", unix_ms);
  const sys_time<milliseconds> time{milliseconds(unix_ms)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss<milliseconds> clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::optional<std::int64_t> parse_timestamp(std::string_view text) {
  using namespace std::chrono;
  if (text.ends_with("ms")) {
    text.remove_suffix(2);
    std::int64_t unix_ms = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), unix_ms);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(unix_ms) : std::nullopt;
  }
  const bool fraction = text.size() == 24;
  if ((!fraction && text.size() != 20) || text.back() != 'Z' || text[4] != '-' || text[7] != '-' ||
      text[10] != 'T' || text[13] != ':' || text[16] != ':' || (fraction && text[19] != '.'))
    return std::nullopt;
  const auto y = digits(text, 0, 4), mo = digits(text, 5, 2), d = digits(text, 8, 2),
             h = digits(text, 11, 2), mi = digits(text, 14, 2), s = digits(text, 17, 2),
             ms = fraction ? digits(text, 20, 3) : std::optional<int>(0);
  if (!y || !mo || !d || !h || !mi || !s || !ms || *h > 23 || *mi > 59 || *s > 59)
    return std::nullopt;
  const year_month_day date{year(*y), month(static_cast<unsigned>(*mo)),
                            day(static_cast<unsigned>(*d))};
  if (!date.ok()) return std::nullopt;
  const auto time = sys_days(date) + hours(*h) + minutes(*mi) + seconds(*s) + milliseconds(*ms);
  return duration_cast<milliseconds>(time.time_since_epoch()).count();
}

std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (const auto plain = simple_escape(text[i])) {
      out += *plain;
      continue;
    }
    if (text[i] != 'x' || i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]);
    const auto low = hex_digit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4U];
    text += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (unsigned k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kBase64[group >> (18U - 6U * k) & 63U] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t group = 0;
    std::size_t padding = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const char c = text[i + k];
      const auto digit = kBase64.find(c);
      if (c == '=' && i + 4 == text.size() && k >= 2) {
        ++padding;
      } else if (digit == std::string_view::npos || padding > 0) {
        return std::nullopt;
      }
      group = group << 6U | (c == '=' ? 0U : static_cast<std::uint32_t>(digit));
    }
    for (std::size_t k = 0; k < 3 - padding; ++k)
      bytes += static_cast<char>(group >> (16U - 8U * k) & 255U);
  }
  return bytes;
}

}  // namespace mq::mqctl
