#include "support/simulator.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace mq::testing {
namespace {

constexpr std::uint64_t kStepsPerInstantMax = 2'000'000;
constexpr std::size_t kTraceLines = 400;

}  // namespace

Simulator::Simulator(std::uint64_t seed)
    : seed_(seed),
      random_(seed),
      work_(boost::asio::make_work_guard(*context_)),
      executor_(context_->get_executor()) {}

Simulator::~Simulator() {
  // What a destroyed coroutine cleans up may cancel timers, so the map is emptied from the side.
  auto left = std::move(timers_);
  timers_.clear();
  due_of_.clear();
  left.clear();
  work_.reset();
  executor_ = {};
  context_.reset();
}

Simulator::TimerId Simulator::start_timer(base::TimePoint due, std::function<void()> fire,
                                          PauseGate* gate) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(due, id), Timer{std::move(fire), gate});
  due_of_.emplace(id, due);
  return id;
}

void Simulator::fire_soon(TimerId timer, std::function<void()> fire, PauseGate& gate) {
  timers_.emplace(std::pair(now_, timer), Timer{std::move(fire), &gate});
  due_of_.emplace(timer, now_);
}

bool Simulator::cancel_timer(TimerId timer) {
  const auto found = due_of_.find(timer);
  if (found == due_of_.end()) return false;
  const auto held = timers_.extract(std::pair(found->second, timer));
  due_of_.erase(found);
  return true;
}

void Simulator::fire_next_timer() {
  auto first = timers_.begin();
  if (first->first.first > now_) {
    now_ = first->first.first;
    steps_at_this_instant_ = 0;
  }
  auto held = timers_.extract(first);
  const TimerId id = held.key().second;
  due_of_.erase(id);
  auto& timer = held.mapped();
  if (timer.gate && timer.gate->paused()) return timer.gate->hold_timer(id, std::move(timer.fire));
  timer.fire();
}

void Simulator::count_step() {
  if (++steps_ >= step_limit_ || ++steps_at_this_instant_ >= kStepsPerInstantMax) stuck_ = true;
}

bool Simulator::step() {
  if (stuck_) return false;
  if (context_->poll_one() == 0) {
    if (timers_.empty()) return false;
    fire_next_timer();
  }
  count_step();
  for (const auto& check : checks_) check();
  return true;
}

bool Simulator::run_until(const std::function<bool()>& condition, base::Duration limit) {
  const auto deadline = now_ + limit;
  const auto alarm = start_timer(deadline, [] {});  // the clock stops there, however idle the world
  while (!condition()) {
    if (now_ >= deadline || !step()) {
      cancel_timer(alarm);
      return condition();
    }
  }
  cancel_timer(alarm);
  return true;
}

void Simulator::run_for(base::Duration span) {
  const auto end = now_ + span;
  run_until([this, end] { return now_ >= end; }, span);
}

void Simulator::trace(std::string line) {
  line = fmt::format(
      "{:>12.6f} {}",
      std::chrono::duration<double>(now_.time_since_epoch() - std::chrono::hours(1)).count(), line);
  trace_hash_ = base::xxh3_64(base::as_bytes(line)) ^ (trace_hash_ * 0x100000001b3ull);
  trace_.push_back(std::move(line));
  if (trace_.size() > kTraceLines) trace_.pop_front();
}

std::string Simulator::recent_trace() const {
  std::string text;
  for (const auto& line : trace_) text += line + "\n";
  return text;
}

}  // namespace mq::testing
