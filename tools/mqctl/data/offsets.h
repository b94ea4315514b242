#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mq/consumer.h"

namespace mq::mqctl {

/// One place in a partition, as `consume -o` writes it: start, end, N, +N (from the start), -N
/// (back from the end), or @TIME: the first record that the broker appended then or later. TIME is
/// RFC 3339 in UTC, milliseconds since 1970, a duration back from now (-1h) or now.
struct Place {
  enum class From { start, end, zero, time };  ///< time: `by` is in ms since 1970
  From from = From::start;
  std::int64_t by = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// START or START:END; END is exclusive, and without it reading goes on.
struct OffsetSpan {
  Place start;
  std::optional<Place> end;
  friend bool operator==(const OffsetSpan&, const OffsetSpan&) = default;
};

struct OffsetParse {
  std::optional<OffsetSpan> span;
  std::string error;
};
/// `now_ms` is what relative times count back from.
OffsetParse parse_offsets(std::string_view text, std::int64_t now_ms);
/// "2026-11-29T14:20:07Z", "1700000000000", "-1h", "now".
std::optional<std::int64_t> parse_time(std::string_view text, std::int64_t now_ms);
/// Of this machine, in ms since 1970.
std::int64_t wall_clock_ms();

/// The offset it means in a partition that has `range`. Relative places stop at the range's ends; a
/// written number is taken as it is. `at_time` is what the broker found for a place by time.
std::int64_t resolve(const Place& place, const OffsetRange& range, std::int64_t at_time = -1);

}  // namespace mq::mqctl
