#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/log_capture.h"
#include "sim/log_model.h"
#include "storage/disk.h"
#include "support/sim_file_system.h"
#include "support/sim_runtime.h"

namespace mq::sim {

constexpr const char* kStoragePath = "/disk";
constexpr std::uint64_t kStorageBytes = std::uint64_t{64} << 20;
/// A segment that was finished and synced so long ago is in the checkpoint, whatever stalls.
constexpr auto kCheckpointed = std::chrono::seconds(2);

/// How a process may end.
enum class End { clean_stop, kill, power_cut };

/// One partition over all lives: its settings and what its log must hold.
struct StoredPartition {
  StoredPartition(storage::LogSpec s, const std::string& name) : spec(std::move(s)), model(name) {}
  storage::LogSpec spec;
  LogModel model;
  std::int32_t epoch = 0;           // the newest, here or of whom it follows
  bool follows = false;             // in this life: takes batches as another broker stamped them
  std::int64_t confirmed_seen = 0;  // in this life
  bool cutting = false;
  int cuts = 0;  // begun or ended
  /// Durable offsets as they were seen in this life; the first is kCheckpointed old.
  std::deque<std::pair<base::TimePoint, std::int64_t>> durable_seen;
};

/// Damage between two lives that no crash explains: the end of a finished segment is gone. The next
/// life must find it. Then it ends, and the file is whole again; or the log is given up.
struct Damage {
  model::PartitionId partition;
  std::string file;
  std::vector<std::byte> whole;
  bool replacing = false;  // the log is being given up
};

/// What outlives the process: the machine, and what it did last.
class StorageMachine {
 public:
  explicit StorageMachine(std::uint64_t seed);
  /// REC-1: breaks the end off a segment whose roll must be in the checkpoint, if there is one.
  void damage_a_finished_segment();

  /// The first violation ends the run.
  void fail(std::string what);

  testing::Simulator simulator;
  testing::SimRandom random;
  LogCapture capture;
  testing::SimRuntime runtime{simulator};
  testing::SimFileSystem files;
  std::vector<std::unique_ptr<StoredPartition>> partitions;
  base::Uuid cluster = base::Uuid::from_random(1, 2);
  int boots = 1;
  End last_end = End::power_cut;
  bool pages_lost = false;  // by the last end, or by a sync that failed in that life
  bool stopped_well = false;
  bool dirty = false;  // appends were tried since the last clean stop
  std::uint64_t appended = 0;
  std::optional<Damage> damage;
  std::string violation;

 private:
  void add_partition(std::int32_t number);
};

}  // namespace mq::sim
