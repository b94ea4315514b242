#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/disk_executor.h"
#include "support/simulator.h"

namespace mq::testing {

/// How long the simulated disk's threads take for one piece of work.
struct SimDiskTimes {
  std::size_t threads = 2;
  base::Duration work_min = std::chrono::microseconds(50);
  base::Duration work_max = std::chrono::milliseconds(5);
  double stall_chance = 0.01;
  base::Duration stall_max = std::chrono::milliseconds(500);
};

/// Runs disk work in the simulated world's thread after a drawn delay. Work starts in the order it
/// came; with several threads it may end in another. The destructor runs what is left, as the real
/// one does.
class SimDiskExecutor final : public base::DiskExecutor {
 public:
  /// `gate` stops its threads; null: nothing does.
  SimDiskExecutor(Simulator& simulator, SimDiskTimes times, PauseGate* gate = nullptr);
  ~SimDiskExecutor() override;
  void submit(std::function<void()> work) override;
  [[nodiscard]] std::size_t waiting() const noexcept;
  /// What comes from now on waits at least so long.
  void stall(base::Duration span);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace mq::testing
