#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/runtime.h"

namespace mq::testing {

class Simulator;

/// Stops all threads of one simulated process and lets them go on (SIGSTOP, SIGCONT). What they
/// would have done meanwhile waits, timers that came due included; the rest of the world goes on.
/// Outlives all that runs behind it.
class PauseGate {
 public:
  using TimerId = base::Runtime::TimerId;

  explicit PauseGate(Simulator& simulator) : simulator_(simulator) {}

  [[nodiscard]] bool paused() const noexcept { return paused_; }
  void pause() noexcept { paused_ = true; }
  /// All that waits is ready now, in the order in which it came.
  void resume();

  void hold(std::function<void()> work) { work_.push_back(std::move(work)); }
  void hold_timer(TimerId timer, std::function<void()> fire) {
    timers_.emplace(timer, std::move(fire));
  }
  /// Of one that came due and waits here; false if none does.
  bool cancel_timer(TimerId timer) { return timers_.erase(timer) > 0; }

 private:
  Simulator& simulator_;
  bool paused_ = false;
  std::vector<std::function<void()>> work_;
  std::map<TimerId, std::function<void()>> timers_;
};

/// The world's executor behind a gate.
class GatedExecutor {
 public:
  using Inner = boost::asio::io_context::executor_type;

  GatedExecutor(Inner inner, PauseGate& gate) noexcept : inner_(inner), gate_(&gate) {}

  [[nodiscard]] boost::asio::execution_context& query(
      boost::asio::execution::context_t) const noexcept {
    return inner_.context();
  }
  [[nodiscard]] GatedExecutor require(boost::asio::execution::blocking_t::possibly_t how) const {
    return {boost::asio::require(inner_, how), *gate_};
  }
  [[nodiscard]] GatedExecutor require(boost::asio::execution::blocking_t::never_t how) const {
    return {boost::asio::require(inner_, how), *gate_};
  }
  template <class Work>
  void execute(Work&& work) const {
    if (!gate_->paused()) return inner_.execute(std::forward<Work>(work));
    auto held = std::make_shared<std::decay_t<Work>>(std::forward<Work>(work));
    gate_->hold([held] { std::move (*held)(); });
  }
  friend bool operator==(const GatedExecutor& one, const GatedExecutor& other) noexcept {
    return one.inner_ == other.inner_ && one.gate_ == other.gate_;
  }
  friend bool operator!=(const GatedExecutor& one, const GatedExecutor& other) noexcept {
    return !(one == other);
  }

 private:
  Inner inner_;
  PauseGate* gate_;
};

}  // namespace mq::testing
