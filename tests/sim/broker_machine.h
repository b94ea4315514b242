#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metadata/memory_store.h"
#include "sim/log_capture.h"
#include "sim/violation.h"
#include "support/sim_file_system.h"
#include "support/sim_network.h"
#include "support/sim_runtime.h"

namespace mq::sim {

/// Where broker `number` stands.
[[nodiscard]] inline std::string rack_name(std::uint64_t number) {
  return "rack-" + std::to_string(number);
}

constexpr std::uint64_t kDiskBytes = std::uint64_t{128} << 20;

/// What outlives every process of a simulated world with brokers: clock, network, the disk of a
/// world with one, the metadata store's contents. The first violation ends the run.
class BrokerMachine {
 public:
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

  /// One of the next syncs fails; its disk is offline from then on.
  void plan_sync_fault();
  [[nodiscard]] bool sync_fault_struck() const { return files.faults_struck() > strikes_seen_; }
  /// So many of a hundred calls of the metadata store are refused, or have an unknown outcome.
  void set_metadata_faults(std::uint64_t percent) noexcept { metadata_fault_percent_ = percent; }
  /// The same for a while.
  asio::awaitable<void> disturb_metadata();
  /// Some did, in this process.
  [[nodiscard]] bool metadata_struck() const noexcept { return metadata_struck_; }
  /// The process that uses it is dead: nothing it does has an effect.
  void cut_off_metadata(bool cut) noexcept { metadata_cut_off_ = cut; }
  /// At the end of a process: the next one's disk works.
  void forget_faults();

  testing::Simulator simulator;
  testing::SimRandom random;
  LogCapture capture;
  testing::SimRuntime runtime{simulator};
  testing::SimNetwork network;
  testing::SimFileSystem files;
  std::shared_ptr<metadata::MemoryStoreState> metadata =
      std::make_shared<metadata::MemoryStoreState>();
  std::vector<std::string> bootstrap{"broker:9500"};  ///< of the clients
  int boots = 1;
  std::int64_t clock_skew_ms = 0;  // of the broker's wall clock
  std::int64_t lowest_skew_ms = 0;
  /// A day may have passed between two batches, after which a log forgets producers.
  bool producers_forgotten = false;
  /// It may have passed between two tries of one batch.
  bool retries_forgotten = false;
  /// Brokers and consumers say where they stand.
  bool racks = false;
  /// Bits change on disks: what only a damaged replica has is refused by name.
  bool bits_change = false;
  /// A leader was elected that lacked records, in a topic that allows it.
  bool records_given_up = false;
  std::string violation;

 private:
  metadata::StoreFault draw_metadata_fault();

  std::uint64_t strikes_seen_ = 0;
  std::uint64_t metadata_fault_percent_ = 0;
  bool metadata_struck_ = false;
  bool metadata_cut_off_ = false;
};

}  // namespace mq::sim
