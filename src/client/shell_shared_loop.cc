#include "client/shell_shared_loop.h"

#include <utility>

namespace mq::client {

void SharedLoop::serve() {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (guest_ && visits_ == seen) {  // a long visit
      io_asleep_ = true;
      io_turn_.wait(lock, [this] { return !io_asleep_; });
    } else if (running_) {  // in nudge()
      io_turn_.wait(lock);
    } else if (guest_ || Clock::now() < loan_until_) {
      // Guests that come and go need not wake this thread every time.
      seen = visits_;
      io_turn_.wait_until(lock, guest_ ? Clock::now() + kLoan : loan_until_);
    } else {
      serve_once(lock);
    }
  }
}

void SharedLoop::serve_once(std::unique_lock<std::mutex>& lock) {
  running_ = true;
  pressing_ = false;
  on_loan_ = false;
  lock.unlock();
  runtime_.run();
  bool quiet = std::exchange(stepped_back_, false);
  if (quiet) {
    runtime_.resume();
    // What was posted before this store has its turn here, what is posted later is nudged.
    on_loan_ = true;
    quiet = runtime_.poll() == 0;
  }
  lock.lock();
  runtime_.resume();
  running_ = false;
  stepped_back_ = false;
  if (quiet && !pressing_) loan_until_ = Clock::now() + kLoan;
  guest_turn_.notify_one();
}

void SharedLoop::step_back() {
  const auto now = Clock::now();
  if (now - std::exchange(quiet_since_, now) < kPause) return;
  stepped_back_ = true;
  runtime_.stop();
}

void SharedLoop::nudge() {
  if (!on_loan_) return;
  std::unique_lock lock(mutex_);
  if (running_ || guest_ || stopped_) {
    pressing_ = true;
    return;
  }
  running_ = true;
  lock.unlock();
  run_posted();
  lock.lock();
  running_ = false;
  on_loan_ = false;
  loan_until_ = {};
  io_turn_.notify_one();
  guest_turn_.notify_one();
}

// An exception that leaves a handler ends the process, as it does in the I/O thread.
void SharedLoop::run_posted() noexcept {
  runtime_.poll();
  stepped_back_ = false;
  runtime_.resume();
}

void SharedLoop::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  io_asleep_ = false;
  runtime_.stop();
  io_turn_.notify_one();
}

bool SharedLoop::visit(Clock::time_point deadline, const std::function<bool()>& done) {
  std::unique_lock lock(mutex_);
  if (guest_ || stopped_) return false;
  guest_ = true;
  pressing_ = false;
  ++visits_;
  if (running_) {
    runtime_.stop();
    guest_turn_.wait(lock, [this] { return !running_; });
  }
  running_ = true;
  while (!stopped_) {
    lock.unlock();
    const bool over = run_until(deadline, done);
    lock.lock();
    runtime_.resume();
    if (over) break;
  }
  stepped_back_ = false;  // a guest does so anyway
  running_ = false;
  leave_locked();
  return true;
}

bool SharedLoop::run_until(Clock::time_point deadline, const std::function<bool()>& done) noexcept {
  bool turned = false;
  while (!done()) {
    if (runtime_.run_one_until(deadline)) {
      turned = true;
    } else {
      if (Clock::now() >= deadline || done()) break;
      return false;
    }
  }
  // A guest that is sent away all the time still brings the loop on.
  if (!turned) runtime_.poll();
  return true;
}

void SharedLoop::leave_locked() {
  guest_ = false;
  loan_until_ = pressing_ ? Clock::time_point{} : Clock::now() + kLoan;
  if (!io_asleep_ && !pressing_) return;
  io_asleep_ = false;
  io_turn_.notify_one();
}

void SharedLoop::hurry() {
  const std::lock_guard lock(mutex_);
  if (guest_ || running_) {
    pressing_ = true;
  } else if (loan_until_ != Clock::time_point{}) {
    loan_until_ = {};
    io_turn_.notify_one();
  }
}

}  // namespace mq::client
