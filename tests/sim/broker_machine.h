#pragma once

#include <memory>
#include <string>

#include "metadata/memory_store.h"
#include "sim/log_capture.h"
#include "sim/violation.h"
#include "support/sim_file_system.h"
#include "support/sim_network.h"
#include "support/sim_runtime.h"

namespace mq::sim {

constexpr std::uint64_t kDiskBytes = std::uint64_t{128} << 20;

/// What outlives every process of a simulated world with one broker: clock, network, disk, the
/// metadata store's contents. The first violation ends the run.
struct BrokerMachine {
  explicit BrokerMachine(std::uint64_t seed);

  void fail(std::string what);
  [[nodiscard]] bool failed() const noexcept { return !violation.empty(); }
  /// Runs a check whose Violation is noted instead of thrown.
  template <class Check>
  void checked(Check check) {
    try {
      check();
    } catch (const std::exception& broken) {
      fail(broken.what());
    }
  }
  /// The same for a coroutine; a violation inside one must not vanish in a log line.
  asio::awaitable<void> guarded(asio::awaitable<void> task);
  void spawn(std::string what, asio::awaitable<void> task);

  testing::Simulator simulator;
  testing::SimRandom random;
  LogCapture capture;
  testing::SimRuntime runtime{simulator};
  testing::SimNetwork network;
  testing::SimFileSystem files;
  std::shared_ptr<metadata::MemoryStoreState> metadata =
      std::make_shared<metadata::MemoryStoreState>();
  /// One of the next syncs fails; its disk is offline from then on.
  void plan_sync_fault();
  [[nodiscard]] bool sync_fault_struck() const { return files.faults_struck() > strikes_seen_; }
  /// At the end of a process: the next one's disk works.
  void forget_faults();

  int boots = 1;
  std::string violation;

 private:
  std::uint64_t strikes_seen_ = 0;
};

}  // namespace mq::sim
