#include "support/sim_disk_executor.h"

#include <algorithm>
#include <map>

namespace mq::testing {

struct SimDiskExecutor::State {
  State(Simulator& s, SimDiskTimes t)
      : simulator(s), times(t), random(s.random().fork()), free_at(t.threads, s.now()) {}

  base::Duration draw() {
    auto span = random.duration(times.work_min, times.work_max);
    if (random.chance(times.stall_chance))
      span += random.duration(base::Duration(0), times.stall_max);
    return span;
  }

  Simulator& simulator;
  SimDiskTimes times;
  SimRandom random;
  std::vector<base::TimePoint> free_at;  // one entry per thread
  std::map<Simulator::TimerId, std::function<void()>> running;
};

SimDiskExecutor::SimDiskExecutor(Simulator& simulator, SimDiskTimes times)
    : state_(std::make_shared<State>(simulator, times)) {}

SimDiskExecutor::~SimDiskExecutor() {
  while (!state_->running.empty()) {
    auto first = state_->running.extract(state_->running.begin());
    state_->simulator.cancel_timer(first.key());
    first.mapped()();
  }
}

void SimDiskExecutor::submit(std::function<void()> work) {
  auto& thread = *std::min_element(state_->free_at.begin(), state_->free_at.end());
  thread = std::max(thread, state_->simulator.now()) + state_->draw();
  auto id = std::make_shared<Simulator::TimerId>();
  *id = state_->simulator.start_timer(thread, [state = state_, id] {
    auto done = state->running.extract(*id);
    if (!done.empty()) done.mapped()();
  });
  state_->running.emplace(*id, std::move(work));
}

std::size_t SimDiskExecutor::waiting() const noexcept { return state_->running.size(); }

}  // namespace mq::testing
