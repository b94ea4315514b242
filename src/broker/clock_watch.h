#pragma once

#include <string>

#include "base/runtime.h"
#include "model/ids.h"
#include "protocol/pull_image.h"
#include "storage/checked_clock.h"

namespace mq::broker {

/// Follows what the controller says of the brokers' wall clocks, and gives the alarm when this
/// broker's is off or nobody knows which one is right (LOG-14). On the home runtime.
class ClockWatch {
 public:
  /// Everything given outlives it.
  ClockWatch(model::BrokerId broker, storage::CheckedClock& clock, base::Runtime& home);

  /// What an answer of the controller said, and when that was.
  void note(const protocol::ClusterTime& time, base::TimePoint at);
  /// What is wrong, what that means and what to do; empty: nothing.
  [[nodiscard]] std::string alarm() const;
  /// How far the clock is ahead of the median of all; nothing: it was not compared.
  [[nodiscard]] std::optional<std::int64_t> ahead_ms() const { return clock_.ahead_ms(home_); }

 private:
  enum class State : std::uint8_t { well, off, split, unknown };
  [[nodiscard]] State state() const;
  void tell();

  model::BrokerId broker_;
  storage::CheckedClock& clock_;
  base::Runtime& home_;
  base::TimePoint began_;
  protocol::ClusterTime known_;  ///< the newest one that says anything
  State told_ = State::well;
};

}  // namespace mq::broker
