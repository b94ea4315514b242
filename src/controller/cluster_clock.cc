#include "controller/cluster_clock.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace mq::controller {
namespace {

constexpr std::int64_t kToleranceMs = 10'000;
/// Of a broker that has said nothing for longer nobody knows the clock any more.
constexpr base::Duration kFresh = std::chrono::seconds(30);

std::int64_t ms_of(base::TimePoint at) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

}  // namespace

void ClusterClock::told(model::BrokerId broker, std::int64_t wall_clock_ms, base::TimePoint now) {
  if (wall_clock_ms <= 0) return;
  const auto reading_ms = wall_clock_ms - ms_of(now);
  const auto [found, first] = readings_.try_emplace(broker);
  auto& reading = found->second;
  const bool stale = first || now - reading.at > kFresh;
  reading.before_ms = stale ? reading_ms : reading.last_ms;
  reading.last_ms = reading_ms;
  reading.at = now;
}

protocol::ClusterTime ClusterClock::time(const std::set<model::BrokerId>& live,
                                         std::size_t registered, base::TimePoint now) const {
  protocol::ClusterTime time;
  if (registered == 1) {
    time.verdict = protocol::ClockVerdict::alone;
    return time;
  }
  std::vector<std::int64_t> clocks;
  for (const auto& [broker, reading] : readings_) {
    if (live.contains(broker) && now - reading.at <= kFresh)
      clocks.push_back(std::max(reading.last_ms, reading.before_ms));
  }
  time.brokers = static_cast<std::uint32_t>(clocks.size());
  if (clocks.size() < 2) return time;
  std::ranges::sort(clocks);
  const auto median = clocks[(clocks.size() - 1) / 2];
  const auto agreeing = static_cast<std::size_t>(std::ranges::count_if(
      clocks, [&](std::int64_t clock) { return std::abs(clock - median) <= kToleranceMs; }));
  if (2 * agreeing > live.size()) {
    time.verdict = protocol::ClockVerdict::agreed;
    time.median_ms = median + ms_of(now);
  } else if (clocks.size() == live.size()) {
    time.verdict = protocol::ClockVerdict::split;
    time.spread_ms = clocks.back() - clocks.front();
  }
  return time;
}

}  // namespace mq::controller
