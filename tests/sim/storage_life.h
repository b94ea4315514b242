#pragma once

#include <functional>
#include <memory>

#include "base/counters.h"
#include "sim/storage_machine.h"
#include "support/crashable_file_system.h"
#include "support/sim_disk_executor.h"

namespace mq::sim {

/// With less free than this a refusal is no wonder; the low mark lies well below.
constexpr std::uint64_t kShortBytes = std::uint64_t{8} << 20;

/// One process: everything that a crash takes with it.
class StorageLife {
 public:
  explicit StorageLife(StorageMachine& machine)
      : machine_(machine),
        random_(machine.random.fork()),
        files_(machine.files, machine.random.fork()),
        executor_(machine.simulator, {}) {}

  void run();
  /// True when everything has ended, so that this may be destroyed.
  [[nodiscard]] bool unwound() const noexcept { return unwound_; }
  /// Called after every step of the world.
  void observe();

 private:
  storage::DiskConfig config();
  asio::awaitable<void> live();
  asio::awaitable<bool> open_and_recover();
  void check_damage_was_found(const storage::RecoverySummary& summary);
  asio::awaitable<bool> get_over_damage();
  asio::awaitable<void> check_recovered(StoredPartition& partition);
  asio::awaitable<void> append_loop(StoredPartition& partition);
  asio::awaitable<void> append_one(StoredPartition& partition, storage::PartitionLog& log);
  asio::awaitable<base::Result<storage::AppendInfo>> append(StoredPartition& partition,
                                                            storage::PartitionLog& log,
                                                            base::SharedBytes batch);
  asio::awaitable<base::Result<storage::AppendInfo>> follow(StoredPartition& partition,
                                                            storage::PartitionLog& log,
                                                            base::SharedBytes batch);
  void check_epochs(StoredPartition& partition, storage::PartitionLog& log);
  asio::awaitable<void> cut_one(StoredPartition& partition, storage::PartitionLog& log);
  asio::awaitable<void> restart_one(StoredPartition& partition, storage::PartitionLog& log);
  void changed_ends(StoredPartition& partition);
  void check_refused(StoredPartition& partition, storage::PartitionLog& log,
                     const base::Error& error);
  asio::awaitable<void> read_loop(StoredPartition& partition);
  asio::awaitable<void> read_one(StoredPartition& partition, storage::PartitionLog& log);
  asio::awaitable<void> trouble_loop();
  asio::awaitable<void> stop();
  asio::awaitable<void> guarded(asio::awaitable<void> task);
  void spawn(std::string what, asio::awaitable<void> task) {
    tasks_.spawn(std::move(what), guarded(std::move(task)));
  }
  [[nodiscard]] bool alive() const noexcept {
    return !files_.dead() && !ending_ && machine_.violation.empty();
  }
  [[nodiscard]] bool fault_struck() const {
    return fault_planned_ && machine_.files.faults_struck() > strikes_before_;
  }
  void note_durable(StoredPartition& partition, std::int64_t offset);
  void end_it(End how);
  bool run_until(const std::function<bool()>& done, base::Duration limit, std::string_view what);

  StorageMachine& machine_;
  testing::SimRandom random_;
  testing::CrashableFileSystem files_;
  testing::SimDiskExecutor executor_;
  base::Counters counters_;
  base::TaskGroup tasks_{machine_.runtime};
  std::unique_ptr<storage::Disk> disk_;
  bool serving_ = false;
  bool ending_ = false;
  bool unwound_ = false;
  bool stopped_ = false;
  bool fault_planned_ = false;
  bool space_was_short_ = false;
  std::uint64_t strikes_before_ = machine_.files.faults_struck();
  base::TimePoint space_short_until_{};
};

}  // namespace mq::sim
