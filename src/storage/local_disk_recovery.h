#pragma once

#include <functional>
#include <set>
#include <vector>

#include "storage/local_disk.h"
#include "storage/space_reserve.h"

namespace mq::storage {

inline bool is_full(const Error& error) {
  return error == make_error_code(base::BaseErrc::no_space) ||
         error == make_error_code(StorageErrc::storage_full);
}

/// Does something that takes space, with the reserve when there is none.
template <class Attempt>
auto with_reserve(DiskState& disk, Attempt attempt) -> decltype(attempt()) {
  auto done = attempt();
  while (!done && is_full(done.error()) && give_up_reserve_slice(disk.files, disk.path))
    done = attempt();
  return done;
}

/// One recover() call, shared by the coroutines that work on it.
struct LocalDisk::RecoveryRun {
  explicit RecoveryRun(base::Runtime& home) : wake(home) {}

  std::vector<LogSpec> specs;
  std::set<model::PartitionId> known;
  std::set<base::Uuid> deleting;
  std::size_t next = 0;
  Found found;
  RecoverySummary summary;
  RecoveryProgress progress;
  std::function<void(const RecoveryProgress&)> report;
  Error error;
  bool early = false;             // the journal has begun: a recovered partition may be served
  std::size_t in_checkpoint = 0;  // partitions that were done when the newest one was written
  /// With a cut that was not done: the checkpoint comes first, then the journal may forget it, then
  /// they are served.
  std::vector<model::PartitionId> cut;
  bool ended = false;
  base::WaitList wake;
};

}  // namespace mq::storage
