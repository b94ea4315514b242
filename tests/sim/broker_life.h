#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "broker/broker.h"
#include "sim/broker_machine.h"
#include "support/crashable_file_system.h"
#include "support/sim_disk_executor.h"

namespace mq::sim {

enum class BrokerEnd { clean_stop, kill, power_cut };

/// One process of the broker: the daemon's own Broker class on simulated parts, from start to a
/// clean stop or a crash.
class BrokerLife {
 public:
  explicit BrokerLife(BrokerMachine& machine);
  ~BrokerLife();

  /// Starts it; serving() or over() tells how far it is. `on_recovered` is told of each partition
  /// before it is served, which may be before serving().
  void start(std::function<void(const model::PartitionId&)> on_recovered);
  /// It will die in the middle of its `changes`-th change to the disk from now.
  void die_after(std::uint64_t changes);
  [[nodiscard]] bool serving() const noexcept { return serving_ && !files_.dead(); }
  [[nodiscard]] bool dead() const noexcept { return files_.dead() || refused_; }
  /// It lives and its disk is offline: only a new start helps.
  [[nodiscard]] bool disk_failed() const {
    return serving() && std::ranges::any_of(broker_->core().disks->status(), [](const auto& disk) {
             return disk.state == "failed";
           });
  }
  /// It will die between its `writes`-th write to the metadata store from now and the answer; 0: it
  /// will not.
  void die_at_metadata_write(std::uint64_t writes) noexcept { metadata_writes_left_ = writes; }
  /// The machine's clock is set; now() does not notice.
  void jump_wall_clock(std::int64_t ms);
  /// Ends it. After a crash nothing that it does has an effect any more.
  void end(BrokerEnd how);
  /// Everything in it has ended, so that it may be destroyed.
  [[nodiscard]] bool unwound() const noexcept { return unwound_; }

  [[nodiscard]] broker::Broker& broker() noexcept { return *broker_; }
  [[nodiscard]] const base::Counters& counters() const noexcept { return counters_; }
  /// PAR-1: called after every step of the world.
  void observe();

 private:
  broker::BrokerParts parts();
  asio::awaitable<void> run_start();
  asio::awaitable<void> run_stop();
  void die(const char* where);
  [[nodiscard]] bool disk_is_full() const;

  BrokerMachine& machine_;
  std::function<void(const model::PartitionId&)> on_recovered_;
  testing::SimRandom random_;
  testing::CrashableFileSystem files_;
  std::vector<std::unique_ptr<testing::SimRuntime>> workers_;
  testing::SimDiskExecutor executor_;  // what it still does when it goes may post to workers
  base::Counters counters_;
  std::unique_ptr<base::Network> network_;
  std::unique_ptr<broker::Broker> broker_;
  std::map<model::PartitionId, std::int64_t> high_watermarks_;
  std::uint64_t metadata_writes_left_ = 0;  // 0: no death planned
  bool starting_ = false;
  bool serving_ = false;
  bool ending_ = false;
  bool unwound_ = false;
  bool refused_ = false;
};

/// The process of the moment, for those that outlive it.
struct PresentBroker {
  BrokerLife* life = nullptr;
  std::uint64_t number = 0;  ///< of the life

  [[nodiscard]] bool broken() const { return !life || life->dead() || life->disk_failed(); }
  [[nodiscard]] bool serves() const { return life && life->serving() && !life->disk_failed(); }
  /// The same life as then still does.
  [[nodiscard]] bool serves(std::uint64_t then) const { return number == then && serves(); }
};

}  // namespace mq::sim
