#include "support/sim_disk_executor.h"

#include <algorithm>
#include <map>

namespace mq::testing {

struct SimDiskExecutor::State {
  State(Simulator& s, SimDiskTimes t, PauseGate* g)
      : simulator(s), times(t), gate(g), random(s.random().fork()), free_at(t.threads, s.now()) {}

  base::Duration draw() {
    auto span = random.duration(times.work_min, times.work_max);
    if (random.chance(times.stall_chance))
      span += random.duration(base::Duration(0), times.stall_max);
    return span;
  }

  Simulator& simulator;
  SimDiskTimes times;
  PauseGate* gate;
  SimRandom random;
  std::vector<base::TimePoint> free_at;  // one entry per thread
  std::map<Simulator::TimerId, std::function<void()>> running;
};

SimDiskExecutor::SimDiskExecutor(Simulator& simulator, SimDiskTimes times, PauseGate* gate)
    : state_(std::make_shared<State>(simulator, times, gate)) {}

SimDiskExecutor::~SimDiskExecutor() {
  while (!state_->running.empty()) {
    auto first = state_->running.extract(state_->running.begin());
    if (!state_->simulator.cancel_timer(first.key()) && state_->gate)
      state_->gate->cancel_timer(first.key());
    first.mapped()();
  }
}

void SimDiskExecutor::submit(std::function<void()> work) {
  auto& thread = *std::min_element(state_->free_at.begin(), state_->free_at.end());
  thread = std::max(thread, state_->simulator.now()) + state_->draw();
  auto id = std::make_shared<Simulator::TimerId>();
  const auto work_off = [state = state_, id] {
    auto done = state->running.extract(*id);
    if (!done.empty()) done.mapped()();
  };
  *id = state_->simulator.start_timer(thread, work_off, state_->gate);
  state_->running.emplace(*id, std::move(work));
}

void SimDiskExecutor::stall(base::Duration span) {
  for (auto& thread : state_->free_at) thread = std::max(thread, state_->simulator.now() + span);
}

std::size_t SimDiskExecutor::waiting() const noexcept { return state_->running.size(); }

}  // namespace mq::testing
