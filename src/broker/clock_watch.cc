#include "broker/clock_watch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/log.h"

namespace mq::broker {
namespace {

using protocol::ClockVerdict;

/// Brokers that start together tell their clocks one after the other.
constexpr base::Duration kToldAfter = std::chrono::seconds(60);

std::string span(std::int64_t ms) {
  const double seconds = static_cast<double>(std::abs(ms)) / 1000;
  if (seconds < 180) return fmt::format("{:.1f} s", seconds);
  if (seconds < 3 * 3600) return fmt::format("{:.1f} minutes", seconds / 60);
  if (seconds < 72.0 * 3600) return fmt::format("{:.1f} hours", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

}  // namespace

ClockWatch::ClockWatch(model::BrokerId broker, storage::CheckedClock& clock, base::Runtime& home)
    : broker_(broker), clock_(clock), home_(home), began_(home.now()) {}

void ClockWatch::note(const protocol::ClusterTime& time, base::TimePoint at) {
  if (time.verdict != ClockVerdict::unknown) known_ = time;
  switch (time.verdict) {
    case ClockVerdict::unknown:
      break;  // what was known goes on
    case ClockVerdict::alone:
      clock_.believe();
      break;
    case ClockVerdict::agreed:
      clock_.compare_with(time.median_ms, at);
      break;
    case ClockVerdict::split:
      clock_.doubt();
      break;
  }
  tell();
}

ClockWatch::State ClockWatch::state() const {
  if (clock_.is_off(home_)) return State::off;
  if (known_.verdict == ClockVerdict::split) return State::split;
  const bool silent = known_.verdict == ClockVerdict::unknown;
  return silent && home_.now() - began_ >= kToldAfter ? State::unknown : State::well;
}

std::string ClockWatch::alarm() const {
  switch (state()) {
    case State::well:
      break;
    case State::off: {
      const auto ahead_ms = clock_.ahead_ms(home_).value_or(0);
      return fmt::format(
          "the clock of broker {} is {} {} the median of the cluster's clocks: until it is right "
          "its "
          "new records get the time of the median, and it deletes nothing for its age; correct it "
          "(is an NTP service running on its machine?)",
          broker_, span(ahead_ms), ahead_ms > 0 ? "ahead of" : "behind");
    }
    case State::split:
      return fmt::format(
          "the clocks of the {} brokers are up to {} apart, and no time has a majority: until they "
          "agree nothing is deleted for its age; correct those that are wrong (is an NTP service "
          "running on every machine?)",
          known_.brokers, span(known_.spread_ms));
    case State::unknown:
      return fmt::format(
          "broker {} has no other broker to compare its clock with: until one is back it deletes "
          "nothing for its age",
          broker_);
  }
  return {};
}

/// Once for each change.
void ClockWatch::tell() {
  const auto now = state();
  if (std::exchange(told_, now) == now) return;
  if (now == State::well)
    base::log_info("broker", "the clocks of the brokers agree; what is old is deleted again");
  else
    base::log_warning("broker", "{}", alarm());
}

}  // namespace mq::broker
