#include "mqctl/data/offsets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace mq::mqctl {
namespace {

std::optional<Place> parse_place(std::string_view text) {
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

OffsetParse parse_offsets(std::string_view text) {
  if (text.find('@') != std::string_view::npos)
    return {std::nullopt, "offsets by time (@TIME) are not in this release", true};
  const auto parts = base::split(text, ':');
  OffsetParse parse;
  if (parts.size() > 2) {
    parse.error = fmt::format("\"{}\" has more than one colon", text);
    return parse;
  }
  OffsetSpan span;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto place = parse_place(parts[i]);
    if (!place) {
      parse.error = fmt::format("\"{}\" is not start, end, N, +N or -N", parts[i]);
      return parse;
    }
    if (i == 0)
      span.start = *place;
    else
      span.end = *place;
  }
  parse.span = span;
  return parse;
}

std::int64_t resolve(const Place& place, const OffsetRange& range) {
  switch (place.from) {
    case Place::From::start:
      return place.by > range.end - range.start ? range.end : range.start + place.by;
    case Place::From::end:
      return std::max(range.start, range.end + place.by);
    case Place::From::zero:
      break;
  }
  return place.by;
}

}  // namespace mq::mqctl
