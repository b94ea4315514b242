#include "mqctl/data/offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/strings.h"
#include "base/units.h"
#include "mqctl/cli/text.h"

namespace mq::mqctl {
namespace {

/// Where the place that `text` begins with ends: times have colons of their own.
std::size_t place_bytes(std::string_view text) {
  const auto colon = text.find(':');
  const auto date = text.find('T');
  if (!text.starts_with('@') || colon == std::string_view::npos || date > colon) return colon;
  const auto zone = text.find('Z', date);
  return zone == std::string_view::npos ? colon : text.find(':', zone);
}

std::optional<Place> parse_place(std::string_view text, std::int64_t now_ms) {
  if (text.starts_with('@') || text == "now") {
    const auto time = parse_time(text == "now" ? text : text.substr(1), now_ms);
    if (!time) return std::nullopt;
    return Place{Place::From::time, *time};
  }
  if (text == "start") return Place{Place::From::start, 0};
  if (text == "end") return Place{Place::From::end, 0};
  if (text.empty()) return std::nullopt;
  const char sign = text.front();
  const bool relative = sign == '+' || sign == '-';
  const auto number = base::parse_unsigned(relative ? text.substr(1) : text);
  if (!number || *number > INT64_MAX) return std::nullopt;
  const auto by = static_cast<std::int64_t>(*number);
  if (sign == '+') return Place{Place::From::start, by};
  if (sign == '-') return Place{Place::From::end, -by};
  return Place{Place::From::zero, by};
}

}  // namespace

std::int64_t wall_clock_ms() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())
      .time_since_epoch()
      .count();
}

std::optional<std::int64_t> parse_time(std::string_view text, std::int64_t now_ms) {
  if (text == "now") return now_ms;
  if (text.starts_with('-')) {
    const auto back = base::parse_duration(text.substr(1));
    if (!back) return std::nullopt;
    return std::max<std::int64_t>(0, now_ms - back->count());
  }
  if (const auto number = base::parse_unsigned(text); number && *number <= INT64_MAX)
    return static_cast<std::int64_t>(*number);
  return parse_timestamp(text);
}

OffsetParse parse_offsets(std::string_view text, std::int64_t now_ms) {
  OffsetParse parse;
  OffsetSpan span;
  for (std::string_view rest = text;; rest = rest.substr(place_bytes(rest) + 1)) {
    const auto bytes = place_bytes(rest);
    const bool first = rest.data() == text.data();
    const auto place = parse_place(rest.substr(0, bytes), now_ms);
    if (!place) {
      parse.error =
          fmt::format("\"{}\" is not start, end, N, +N, -N or @TIME", rest.substr(0, bytes));
      return parse;
    }
    if (first) {
      span.start = *place;
    } else if (!span.end) {
      span.end = *place;
    } else {
      parse.error = fmt::format("\"{}\" has more than one colon", text);
      return parse;
    }
    if (bytes == std::string_view::npos) break;
  }
  parse.span = span;
  return parse;
}

std::int64_t resolve(const Place& place, const OffsetRange& range, std::int64_t at_time) {
  switch (place.from) {
    case Place::From::start:
      return place.by > range.end - range.start ? range.end : range.start + place.by;
    case Place::From::end:
      return std::max(range.start, range.end + place.by);
    case Place::From::time:
      return at_time;
    case Place::From::zero:
      break;
  }
  return place.by;
}

}  // namespace mq::mqctl
