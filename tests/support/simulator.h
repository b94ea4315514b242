#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/runtime.h"
#include "support/pause_gate.h"
#include "support/sim_random.h"

namespace mq::testing {

/// One simulated world: a queue of ready work, a clock that jumps to the next timer when nothing is
/// ready, and one seed. Everything in it runs on the calling thread, so a seed replays exactly.
///
/// Build it first and destroy it last: runtimes, networks and disks refer to it. Coroutines that
/// still wait when it goes are destroyed where they stand, so components must have been stopped.
class Simulator {
 public:
  using TimerId = base::Runtime::TimerId;

  explicit Simulator(std::uint64_t seed);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] base::TimePoint now() const noexcept { return now_; }
  [[nodiscard]] SimRandom& random() noexcept { return random_; }
  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return executor_; }
  /// The same for the threads of one process, which `gate` stops.
  [[nodiscard]] boost::asio::any_io_executor executor(PauseGate& gate) {
    return GatedExecutor(context_->get_executor(), gate);
  }

  /// While `gate` is shut what comes due waits there. Null: nothing stops it.
  TimerId start_timer(base::TimePoint due, std::function<void()> fire, PauseGate* gate = nullptr);
  /// False also for one that waits at its gate.
  bool cancel_timer(TimerId timer);
  /// One that has waited at `gate`: fires in one of the next steps, under its old number.
  void fire_soon(TimerId timer, std::function<void()> fire, PauseGate& gate);

  /// Runs one ready handler, or else the next timer. False when nothing is left to do.
  bool step();
  /// Steps until `condition` holds; false when `limit` of simulated time passed, nothing is left to
  /// do, or the world is stuck.
  bool run_until(const std::function<bool()>& condition, base::Duration limit);
  void run_for(base::Duration span);

  /// Time passes inside the running step, as for a thread that sleeps in a system call. What comes
  /// due meanwhile fires afterwards, late.
  void pass(base::Duration span) {
    now_ += span;
    steps_at_this_instant_ = 0;
  }

  /// Called after every step.
  void on_step(std::function<void()> check) { checks_.push_back(std::move(check)); }

  /// True when far too many steps passed without the clock moving, or in all: a loop that waits for
  /// nothing. step() then refuses.
  [[nodiscard]] bool stuck() const noexcept { return stuck_; }
  void set_step_limit(std::uint64_t steps) noexcept { step_limit_ = steps; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  /// Remembers what happened, for the report of a failing seed and for comparing two runs.
  void trace(std::string line);
  [[nodiscard]] std::uint64_t trace_hash() const noexcept { return trace_hash_; }
  /// The newest lines, oldest first.
  [[nodiscard]] std::string recent_trace() const;

 private:
  void count_step();
  void fire_next_timer();

  std::uint64_t seed_;
  SimRandom random_;
  std::optional<boost::asio::io_context> context_{1};  // destroyed by hand, before what follows
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  boost::asio::any_io_executor executor_;
  base::TimePoint now_{std::chrono::hours(1)};
  struct Timer {
    std::function<void()> fire;
    PauseGate* gate;
  };
  std::map<std::pair<base::TimePoint, TimerId>, Timer> timers_;
  std::unordered_map<TimerId, base::TimePoint> due_of_;
  TimerId next_timer_ = 1;
  std::vector<std::function<void()>> checks_;
  std::uint64_t steps_ = 0;
  std::uint64_t steps_at_this_instant_ = 0;
  std::uint64_t step_limit_ = 50'000'000;
  bool stuck_ = false;
  std::deque<std::string> trace_;
  std::uint64_t trace_hash_ = 0;
};

}  // namespace mq::testing
