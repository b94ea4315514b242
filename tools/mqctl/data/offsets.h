#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mq/consumer.h"

namespace mq::mqctl {

/// One place in a partition, as `consume -o` writes it: start, end, N, +N (from the start) or -N
/// (back from the end).
struct Place {
  enum class From { start, end, zero };
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
  bool not_available = false;  ///< a form that comes later (@TIME)
};
OffsetParse parse_offsets(std::string_view text);

/// The offset it means in a partition that has `range`. Relative places stop at the range's ends; a
/// written number is taken as it is.
std::int64_t resolve(const Place& place, const OffsetRange& range);

}  // namespace mq::mqctl
