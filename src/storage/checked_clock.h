#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/runtime.h"

namespace mq::storage {

/// A broker's wall clock as far as it is to be believed: compared with a time that others have
/// told, which goes on by the monotonic clock, so that a step is noticed at once (LOG-14). Where
/// the two are too far apart, records get the time of the others, and nothing is deleted for its
/// age.
///
/// Written by one thread; read by any, each with its own runtime.
class CheckedClock {
 public:
  static constexpr std::int64_t kToleranceMs = 10'000;

  /// The time for what is appended now.
  [[nodiscard]] std::int64_t append_time_ms(base::Runtime& runtime) const;
  /// The time by which what is old may go; nothing: no age is to be trusted now.
  [[nodiscard]] std::optional<std::int64_t> retention_time_ms(base::Runtime& runtime) const;
  /// How far the wall clock is ahead of what the others say; nothing: they have said nothing.
  [[nodiscard]] std::optional<std::int64_t> ahead_ms(base::Runtime& runtime) const;
  /// The same, and that is too far.
  [[nodiscard]] bool is_off(base::Runtime& runtime) const;

  /// There is nobody to compare with.
  void believe();
  /// The others' time was `time_ms` at `at`.
  void compare_with(std::int64_t time_ms, base::TimePoint at);
  /// The others do not agree with each other; what they said before goes on.
  void doubt();

 private:
  enum class Trust : std::uint8_t { unknown, own, compared, doubted };
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

  std::atomic<std::int64_t> others_ms_{kNone};  ///< their time at 0 of the monotonic clock
  std::atomic<Trust> trust_{Trust::unknown};
};

}  // namespace mq::storage
