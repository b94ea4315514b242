#include "support/pause_gate.h"

#include "support/simulator.h"

namespace mq::testing {

void PauseGate::resume() {
  paused_ = false;
  for (auto& work : std::exchange(work_, {})) boost::asio::post(simulator_.executor(), work);
  // They can still be cancelled until they run.
  for (auto& [timer, fire] : std::exchange(timers_, {}))
    simulator_.fire_soon(timer, std::move(fire), *this);
}

}  // namespace mq::testing
