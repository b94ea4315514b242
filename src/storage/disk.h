#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/disk_executor.h"
#include "base/file_system.h"
#include "storage/partition_log.h"

namespace mq::storage {

class CheckedClock;

/// What the identity file of a data directory says.
struct DiskIdentity {
  base::Uuid cluster;
  model::BrokerId broker;
  base::Uuid disk;     ///< random, made with the directory
  base::Uuid journal;  ///< zero: no journal
};

/// Why a data directory cannot be used, with one line for the operator.
struct Refusal {
  Error error;
  std::string text;
};

/// A locked data directory whose identity does not contradict the broker. Made first, so that the
/// embedded metadata store inside it is opened under the lock.
struct DataDirectory {
  std::string path;
  std::unique_ptr<base::FileLock> lock;
  std::optional<DiskIdentity> identity;  ///< none: a fresh directory
};

/// Checks the directory at `path` (made if missing) and takes its lock. Nothing inside it is
/// written before the checks have passed. On an error `refusal` says why: wrong_directory (another
/// broker, or partitions without identity), unknown_format_version, locked (names the holder), io
/// errors.
Result<DataDirectory> open_data_directory(base::FileSystem& files, const std::string& path,
                                          model::BrokerId broker, Refusal& refusal);
/// Reads the identity without a lock. None: a directory without identity file, or no directory.
Result<std::optional<DiskIdentity>> read_identity(base::FileSystem& files, const std::string& path);

/// Where a disk's blocking work runs. Reads and appends have threads of their own, so that syncs,
/// the journal's groups and recovery wait for neither. Tests may give one executor for all.
struct DiskThreads {
  // NOLINTNEXTLINE(google-explicit-constructor): one for all is a way to say it
  DiskThreads(base::DiskExecutor& all) : work(all), cold_reads(all), appends(all), syncs(all) {}
  DiskThreads(base::DiskExecutor& others, base::DiskExecutor& reads, base::DiskExecutor& writes,
              base::DiskExecutor& flushes)
      : work(others), cold_reads(reads), appends(writes), syncs(flushes) {}

  base::DiskExecutor& work;
  base::DiskExecutor& cold_reads;  ///< two threads, as there are two turns at once
  base::DiskExecutor& appends;     ///< used while appends are slow; a log has one under way
  base::DiskExecutor& syncs;       ///< as many at once as one emptying of the drive's cache serves
};

struct DiskConfig {
  base::Uuid cluster;
  model::BrokerId broker;
  base::Uuid incarnation;  ///< of this process
  std::string boot_id;     ///< of the machine's boot; empty: unknown
  std::string mount_id;    ///< of the mount on which the directory lies; empty: unknown

  std::uint64_t tail_cache_bytes = std::uint64_t{32} << 20;  ///< per worker
  std::uint64_t index_stride_bytes = std::uint64_t{64} << 10;
  std::uint64_t write_behind_bytes = std::uint64_t{8} << 20;
  /// What may lie in the page cache alone; appends wait above it.
  std::uint64_t dirty_bytes_max = std::uint64_t{1} << 30;
  std::uint64_t read_ahead_bytes = std::uint64_t{64} << 20;  ///< for readers of cold data
  std::chrono::milliseconds checkpoint_interval{5'000};
  std::chrono::milliseconds memory_sync_interval{60'000};
  std::chrono::milliseconds watermark_interval{5'000};
  std::chrono::milliseconds retention_interval{10'000};
  std::chrono::milliseconds space_interval{1'000};
  /// Where the journal lies; empty: inside the data directory. Elsewhere it gets a directory of its
  /// own there, named by the disk's uuid.
  std::string journal_path;
  std::uint64_t journal_file_bytes_min = std::uint64_t{1} << 20;
  std::uint64_t journal_file_bytes_max = std::uint64_t{64} << 20;
  std::uint32_t journal_files_max = 10;
  /// A file is used as soon as so much of it is there, and grows on by so much at once: groups have
  /// to wait for one piece at most.
  std::uint64_t journal_grow_bytes = std::uint64_t{4} << 20;
  /// More of one partition than this in one round is synced in its segment instead: from about
  /// here on writing it twice takes a disk with a head longer than three or four turns.
  std::uint64_t journal_bypass_bytes = std::uint64_t{4} << 20;
  /// Appends are refused below this much free space, or a tenth of the disk if that is less.
  std::uint64_t low_mark_bytes = std::uint64_t{1} << 30;
  /// How fast finished segments are read again to find damage; 0: not at all.
  std::uint64_t scrub_bytes_per_second = 0;
  std::chrono::milliseconds scrub_interval = std::chrono::hours(24);  ///< a pass begins so often
  /// What append times and ages go by; outlives the disk. Null: the worker's own wall clock.
  const CheckedClock* clock = nullptr;
};

/// One partition as the metadata knows it.
struct LogSpec {
  model::PartitionId id;
  std::string topic_name;
  model::TopicSettings settings;
  base::Runtime* worker = nullptr;  ///< the log lives there; outlives the Disk
};

struct RecoveryProgress {
  std::size_t partitions_done = 0;
  std::size_t partitions = 0;
  std::uint64_t bytes_scanned = 0;  ///< of journal and logs, so far
};

struct RecoverySummary {
  bool clean = false;  ///< a valid clean marker: no log data was read
  /// This disk may have lost what it had confirmed (another boot, a missing run marker, ...).
  bool lossy_suspect = false;
  std::size_t partitions = 0;
  std::uint64_t bytes_scanned = 0;
  std::uint64_t bytes_cut = 0;
  /// Of which the logs' producers were learnt, behind their newest snapshots.
  std::uint64_t producer_bytes_scanned = 0;
  std::vector<model::PartitionId> cut;      ///< a torn tail was cut off
  std::vector<model::PartitionId> offline;  ///< corrupt or of a newer format; their failure() tells
  std::vector<std::string> moved_to_unknown;
  /// Why the journal, or a part of it, could not be read; empty: all of it was.
  std::string journal_problem;
  std::uint64_t journal_bytes_read = 0;
};

/// Since which broker epoch nothing that was confirmed under each durability can be missing; -1: as
/// long as the disk exists. Kept in the journal.
struct IntactSince {
  std::int64_t disk = -1;
  std::int64_t memory = -1;
  friend bool operator==(const IntactSince&, const IntactSince&) = default;
};

/// How far the scrub of a disk is.
struct ScrubStatus {
  bool running = false;  ///< a pass is under way
  std::uint64_t bytes = 0;
  std::uint32_t damaged_segments = 0;
};

/// What lies under unknown/ until somebody removes it, as it was found of late.
struct PutAside {
  std::uint64_t bytes = 0;
  std::uint32_t logs = 0;  ///< or ends of logs
  friend bool operator==(const PutAside&, const PutAside&) = default;
};

/// What of a damaged log stays.
enum class Keep { sound_segments, nothing };

/// One data directory, which is one disk to its owner: its lock and identity, the logs in it, the
/// group-committed flusher, checkpoint, retention and space watch. Lives on its home Runtime; all
/// members are called there. Blocking work runs on the disk executor.
class Disk {
 public:
  /// Takes over a directory from open_data_directory(); writes the identity into a fresh one.
  /// wrong_directory if its cluster is another one (`refusal` tells). Everything given outlives the
  /// Disk.
  static Result<std::unique_ptr<Disk>> open(DataDirectory directory, DiskConfig config,
                                            base::FileSystem& files, DiskThreads threads,
                                            base::Runtime& home, base::Counters& counters,
                                            Refusal& refusal);
  virtual ~Disk() = default;

  /// The broker's epoch of this run, before recover(): from then on something may be missing if
  /// recovery finds reason to think so. Called again whenever the broker has got a new one.
  virtual void set_broker_epoch(std::int64_t epoch) = 0;
  /// After recover().
  [[nodiscard]] virtual IntactSince intact_since() const = 0;
  /// Since which broker epoch nothing that was confirmed of this replica can be missing (-1: as
  /// long as the disk exists): what intact_since() says for the durability that its confirmed ends
  /// counted under, or later, if this replica alone is not what it was: its directory was missing,
  /// it ended below what the disk knew of it, it was damaged, or it was made in this run. From
  /// on_ready() on; of a partition that is not here: the broker's epoch.
  [[nodiscard]] virtual std::int64_t intact_since(const model::PartitionId& id) const = 0;

  /// Opens every partition of `known`, making the ones that are new; once, before start().
  /// Directories of topics in `deleting` stay untouched for delete_topic(); directories that nobody
  /// knows go to unknown/. `progress` (may be empty) is called on the home runtime whenever it has
  /// got on, once a second at most. An error means that the disk cannot be used at all; single
  /// broken partitions are in the summary and have a failure().
  virtual asio::awaitable<Result<RecoverySummary>> recover(
      std::vector<LogSpec> known, std::vector<base::Uuid> deleting,
      std::function<void(const RecoveryProgress&)> progress) = 0;
  /// `ready` is called on the home runtime for each partition from where on find() gives its log
  /// and it may be used: one after the other while recover() goes on with the others. (Only where
  /// the journal cannot be relied on, all of them wait for the last.) Set before recover().
  virtual void on_ready(std::function<void(const model::PartitionId&)> ready) = 0;
  /// After recover(): starts checkpoint, retention, space watch and scrub.
  virtual void start() = 0;
  /// Flushes everything, writes checkpoint and clean marker, closes all logs and releases the lock.
  /// An error: no clean marker, the next start scans.
  virtual asio::awaitable<Result<void>> stop() = 0;

  /// Null if there is none. The log is used on its worker only and lives until delete_log() or
  /// stop().
  [[nodiscard]] virtual PartitionLog* find(const model::PartitionId& id) = 0;
  [[nodiscard]] virtual std::vector<model::PartitionId> partitions() const = 0;
  /// Makes the partitions' directories and first segments durable. Many at once cost little more
  /// than one. All or an error: already_exists, storage_full, io_failed, disk_failed, closed.
  virtual asio::awaitable<Result<void>> create_logs(std::vector<LogSpec> specs) = 0;
  /// The same for one.
  asio::awaitable<Result<PartitionLog*>> create_log(LogSpec spec);
  /// Closes the log (its failure() becomes closed) and removes its directory, in paced steps.
  /// Nothing happens if there is none.
  virtual asio::awaitable<Result<void>> delete_log(model::PartitionId id) = 0;
  /// Gives up what is damaged of a log below what may be cut (failure() is partition_corrupt, or
  /// read_damage() names a place), to be filled again by a healthy replica: the first segment that
  /// does not hold, and what follows it, is kept under unknown/, and the log ends in front of the
  /// first batch that does not hold. Where nothing holds, or nothing shall be kept, an empty log
  /// that begins at `start` takes its place. Returns where the log goes on. find() gives the new
  /// log from then on; the old one is closed, and gone when this returns. First intact_since() of
  /// the replica moves to the broker's epoch, durably. The caller sees to it that the replica is in
  /// no ISR, or nobody else is and nothing was confirmed in that leader epoch. May be tried again
  /// after an error: not_found (no such log), storage_full, io_failed, disk_failed, closed.
  virtual asio::awaitable<Result<model::Offset>> replace_damaged(LogSpec spec, model::Offset start,
                                                                 Keep keep) = 0;
  /// The same for every partition of a topic that has a directory here, open or not.
  virtual asio::awaitable<Result<void>> delete_topic(base::Uuid topic) = 0;
  /// Deletions and replacements under way and later ones end early with `closed`; the next start
  /// does the rest. For a stop that shall not wait for them.
  virtual void give_up_deletions() = 0;

  [[nodiscard]] virtual const DiskIdentity& identity() const = 0;
  [[nodiscard]] virtual const std::string& path() const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< offline for good
  /// What failed first: "fdatasync of /data/b/…: …"; empty while nothing has.
  [[nodiscard]] virtual std::string failure_reason() const = 0;
  [[nodiscard]] virtual bool full() const = 0;  ///< appends are refused for want of space
  [[nodiscard]] virtual std::uint64_t free_bytes() const = 0;
  [[nodiscard]] virtual std::uint64_t used_bytes() const = 0;      ///< by logs
  [[nodiscard]] virtual std::uint64_t low_mark_bytes() const = 0;  ///< below it appends are refused
  /// Appended per second, over the last minutes.
  [[nodiscard]] virtual double write_rate() const = 0;
  [[nodiscard]] virtual ScrubStatus scrub() const = 0;
  [[nodiscard]] virtual PutAside put_aside() const = 0;
  /// Called on the home runtime when failed() or full() changed.
  virtual void on_changed(std::function<void()> changed) = 0;
};

}  // namespace mq::storage
