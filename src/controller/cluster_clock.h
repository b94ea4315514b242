#pragma once

#include <map>
#include <optional>
#include <set>

#include "base/runtime.h"
#include "model/ids.h"
#include "protocol/pull_image.h"

namespace mq::controller {

/// What the wall clocks of the brokers say together, of which each tells its own with every pull.
/// They are compared on the controller's monotonic clock; its own wall clock is one of them.
class ClusterClock {
 public:
  void told(model::BrokerId broker, std::int64_t wall_clock_ms, base::TimePoint now);
  /// `live` are the brokers that live, `registered` is how many there are with those that are away.
  /// The median counts where more than half of those that live are within ten seconds of it.
  [[nodiscard]] protocol::ClusterTime time(const std::set<model::BrokerId>& live,
                                           std::size_t registered, base::TimePoint now) const;

 private:
  /// A pull that was long under way makes a clock seem late, never early: the later one of two
  /// counts.
  struct Reading {
    std::int64_t last_ms = 0;  ///< at 0 of the monotonic clock
    std::int64_t before_ms = 0;
    base::TimePoint at;
  };
  std::map<model::BrokerId, Reading> readings_;
};

}  // namespace mq::controller
