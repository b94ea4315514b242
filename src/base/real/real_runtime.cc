#include "base/real/real_runtime.h"

#include <sys/random.h>
#include <time.h>

#include "base/check.h"

namespace mq::base {

std::uint64_t secure_random() {
  std::uint64_t value = 0;
  MQ_CHECK(::getrandom(&value, sizeof value, 0) == sizeof value, "getrandom failed");
  return value;
}

RealRuntime::RealRuntime()
    : work_(asio::make_work_guard(context_)),
      executor_(context_.get_executor()),
      alarm_(context_),
      random_(secure_random()) {}

RealRuntime::~RealRuntime() = default;

TimePoint RealRuntime::now() { return std::chrono::steady_clock::now(); }

std::int64_t RealRuntime::wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::int64_t RealRuntime::coarse_wall_clock_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

std::uint64_t RealRuntime::random() { return random_(); }

Runtime::TimerId RealRuntime::start_timer(TimePoint due, std::function<void()> fire) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(due, id), std::move(fire));
  due_of_.emplace(id, due);
  if (due < armed_for_) arm();
  return id;
}

bool RealRuntime::cancel_timer(TimerId timer) {
  const auto found = due_of_.find(timer);
  if (found == due_of_.end()) return false;
  timers_.erase(std::pair(found->second, timer));
  due_of_.erase(found);
  return true;  // the alarm stays armed: waking once for nothing is cheaper than a system call per
                // cancelled wait
}

void RealRuntime::arm() {
  if (timers_.empty()) {
    armed_for_ = TimePoint::max();
    return;
  }
  armed_for_ = timers_.begin()->first.first;
  alarm_.expires_at(armed_for_);
  alarm_.async_wait([this](const boost::system::error_code& error) {
    if (!error) fire_due();
  });
}

void RealRuntime::fire_due() {
  const TimePoint limit = now();
  while (!timers_.empty() && timers_.begin()->first.first <= limit) {
    auto first = timers_.begin();
    due_of_.erase(first->first.second);
    auto fire = std::move(first->second);
    timers_.erase(first);
    fire();
  }
  arm();
}

void RealRuntime::run() { context_.run(); }

bool RealRuntime::run_one_until(TimePoint due) { return context_.run_one_until(due) > 0; }

std::size_t RealRuntime::poll() { return context_.poll(); }

void RealRuntime::resume() { context_.restart(); }

void RealRuntime::stop() { context_.stop(); }

}  // namespace mq::base
