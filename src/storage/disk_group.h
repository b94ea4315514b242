#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "storage/disk.h"

namespace mq::storage {

/// What people want to know of one disk.
struct DiskStatus {
  std::string path;
  base::Uuid disk;     ///< zero: it could not be opened
  std::string state;   ///< "ok", "full", "failed", "recovering"
  std::string reason;  ///< why it is not ok
  std::uint64_t used_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint32_t partitions = 0;
  std::uint64_t write_rate = 0;  ///< bytes appended per second, of late
  ScrubStatus scrub;
  PutAside aside;
  IntactSince intact;  ///< -1: not known yet
};

/// All data directories of one broker. A partition lives on one disk for life; which one is found
/// by looking where its directory is. A disk that fails takes its own partitions offline and no
/// others.
///
/// Lives on the home runtime, where all members are called. The first disk is the one whose absence
/// no broker survives: the embedded metadata store is on it, and the list of disks, by which a disk
/// that is missing is told from one that never was (else the partitions on it would be made anew,
/// empty).
class DiskGroup {
 public:
  struct Member {
    std::string path;
    std::unique_ptr<Disk> disk;  ///< null: it could not be opened, `reason` says why
    std::string reason;
    base::DiskExecutor* executor = nullptr;
  };
  /// The first member has a disk. Everything given outlives the group.
  DiskGroup(std::vector<Member> members, base::FileSystem& files, base::Runtime& home);

  /// As Disk::set_broker_epoch(), for all of them.
  void set_broker_epoch(std::int64_t epoch);
  /// As Disk::recover() for all of them at once. A disk that cannot be used is left out: its
  /// partitions are named in the log and not served. An error, with refusal(): a partition that is
  /// on two disks, or no disk that can be used.
  asio::awaitable<Result<RecoverySummary>> recover(
      std::vector<LogSpec> known, std::vector<base::Uuid> deleting,
      std::function<void(const RecoveryProgress&)> progress);
  /// As Disk::on_changed(), for all of them; also when what is known to be damaged changed.
  void on_changed(const std::function<void()>& changed);
  /// As Disk::on_ready(), for all of them.
  void on_ready(const std::function<void(const model::PartitionId&)>& ready);
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  void start();
  /// All of them; the first error, if any disk has not stopped cleanly.
  asio::awaitable<Result<void>> stop();

  [[nodiscard]] PartitionLog* find(const model::PartitionId& id) const;
  /// Each on the disk that has the most room for one more partition, where a disk that is written
  /// much counts for less; one that was tried before stays where it was. Errors: those of
  /// Disk::create_logs(); storage_full or disk_failed when no disk takes any.
  asio::awaitable<Result<void>> create_logs(std::vector<LogSpec> specs);
  /// As Disk::intact_since(), of the disk where the replica is; the broker's epoch if there is
  /// none.
  [[nodiscard]] std::int64_t intact_since(const model::PartitionId& id) const;
  /// As Disk::replace_damaged().
  asio::awaitable<Result<model::Offset>> replace_damaged(LogSpec spec, model::Offset start,
                                                         Keep keep);
  /// From every disk that can be reached. disk_failed: the rest can go only after a start at which
  /// all disks are there.
  asio::awaitable<Result<void>> delete_topic(base::Uuid topic);
  void give_up_deletions();

  [[nodiscard]] std::vector<base::Uuid> disks() const;
  [[nodiscard]] std::vector<DiskStatus> status() const;
  /// Partitions that the metadata puts here and no disk that could be read has.
  [[nodiscard]] const std::set<model::PartitionId>& missing() const noexcept { return missing_; }

 private:
  struct Run;

  asio::awaitable<Result<void>> look(Run& run);
  void assign(Run& run, std::vector<LogSpec> known);
  asio::awaitable<Result<std::vector<std::string>>> absent_disks();
  asio::awaitable<void> recover_one(Run& run, std::size_t member);
  void leave_out(std::size_t member, std::string reason);
  [[nodiscard]] Result<std::size_t> roomiest(const std::vector<std::size_t>& added) const;
  [[nodiscard]] bool usable(std::size_t member) const;
  [[nodiscard]] double busiest() const;

  std::vector<Member> members_;
  base::FileSystem& files_;
  base::Runtime& home_;
  std::map<model::PartitionId, std::size_t> placed_;  // where a directory may be
  std::set<model::PartitionId> missing_;
  bool absent_ = false;  // a disk of an earlier run is not there
  std::int64_t broker_epoch_ = -1;
  std::set<std::size_t> recovering_;  // members under way in recover()
  std::string refusal_;
};

}  // namespace mq::storage
