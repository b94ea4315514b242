#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "base/real/real_runtime.h"

namespace mq::client {

/// Decides which thread runs a client object's event loop: one at a time, its I/O thread or an
/// application's thread that has to wait for the loop anyway. What the loop brings then wakes the
/// waiting thread itself, and no second thread between.
///
/// A guest that leaves keeps the loop on loan for a moment in which nobody runs it, since the
/// usual guest is back in microseconds (a poll loop) and handing the loop over costs two
/// switches between threads. Then the I/O thread has it again. An I/O thread that expects nothing
/// steps back in the same way, so that the next thread with something to send can do it itself.
class SharedLoop {
 public:
  using Clock = std::chrono::steady_clock;
  /// The longest time in which nobody runs the loop.
  static constexpr std::chrono::milliseconds kLoan{2};
  /// Work that comes more often than this is left to the I/O thread, which hardly sleeps then.
  static constexpr std::chrono::microseconds kPause{500};

  explicit SharedLoop(base::RealRuntime& runtime) : runtime_(runtime) {}
  SharedLoop(const SharedLoop&) = delete;
  SharedLoop& operator=(const SharedLoop&) = delete;

  /// The I/O thread's life: runs the loop whenever nobody else does, until stop().
  void serve();
  /// Ends serve() and the guest's stay.
  void stop();

  /// Runs the loop in the calling thread until `done` or `deadline`; looks at `done` after every
  /// turn of the loop and after interrupt(). False, having done nothing: there is a guest already,
  /// or stop() was called.
  bool visit(Clock::time_point deadline, const std::function<bool()>& done);
  /// Makes a guest look at its `done`. From any thread, also within the loop.
  void interrupt() { runtime_.stop(); }
  /// In the loop: nothing is expected for now, the I/O thread may leave the loop on loan. Ignored
  /// when that was so less than kPause ago.
  void step_back();
  /// Behind a post: when the loop is on loan, runs what is posted here and now, and then wakes the
  /// I/O thread. Cheap when it is not. With no lock held that the loop's work might take.
  void nudge();
  /// Whether nudge() would try.
  [[nodiscard]] bool on_loan() const noexcept { return on_loan_; }
  /// Ends the loan, or lets the guest leave without one: there is work that should not wait.
  void hurry();

 private:
  /// Turns of the loop until `done`, `deadline` or interrupt(); true for the first two.
  bool run_until(Clock::time_point deadline, const std::function<bool()>& done) noexcept;
  void leave_locked();
  void run_posted() noexcept;
  /// The I/O thread's stay in the loop, with the mutex but for the time in which it runs.
  void serve_once(std::unique_lock<std::mutex>& lock);

  base::RealRuntime& runtime_;
  std::atomic<bool> on_loan_{false};  ///< the I/O thread has stepped back, or is about to
  // Of the thread in the loop.
  bool stepped_back_ = false;
  Clock::time_point quiet_since_{};
  std::mutex mutex_;  // guards everything below
  std::condition_variable io_turn_;
  std::condition_variable guest_turn_;
  bool running_ = false;   ///< a thread is in the loop, or about to enter or leave it
  bool guest_ = false;     ///< a guest runs the loop or waits for it
  bool pressing_ = false;  ///< no loan for whoever runs it now
  bool stopped_ = false;
  bool io_asleep_ = false;  ///< until it is notified
  std::uint64_t visits_ = 0;
  Clock::time_point loan_until_{};
};

}  // namespace mq::client
