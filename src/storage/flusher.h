#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "storage/disk_files.h"
#include "storage/disk_state.h"

namespace mq::storage {

/// One log's part in flushing: what is to be synced, and what has been. Made by the log; its
/// contents belong to the Flusher's lock.
class LogSync {
 public:
  /// `ended` runs on `worker` after each sync of this log, with what is durable now or nothing; it
  /// must tolerate that the log has gone.
  using Ended = std::function<void(const std::optional<SyncPoint>&)>;
  /// `moved` runs on a disk thread when the recovery point has moved; `cuts` are those that the log
  /// had when the sync began.
  using Moved = std::function<void(const SyncPoint&, std::uint64_t cuts)>;
  LogSync(base::Runtime& worker, std::string directory, LogCheckpoint reached,
          std::shared_ptr<base::File> active, std::shared_ptr<DirtyBytes> dirty, Ended ended,
          Moved moved)
      : worker_(worker),
        dirty_(std::move(dirty)),
        directory_(std::move(directory)),
        ended_(std::move(ended)),
        moved_(std::move(moved)),
        claimed_(reached.recovery_point.position),
        target_(reached.recovery_point),
        active_(std::move(active)),
        reached_(std::move(reached)) {}

 private:
  friend class Flusher;
  struct Sealing {
    std::shared_ptr<base::File> file;  // open until synced: it must be the descriptor that wrote
    SealedSegment segment;
  };

  base::Runtime& worker_;
  const std::shared_ptr<DirtyBytes> dirty_;
  const std::string directory_;
  const Ended ended_;
  const Moved moved_;
  std::atomic<std::uint64_t> syncs_begun_{0};
  std::atomic<std::uint64_t> claimed_;
  std::atomic<bool> in_step_{false};

  bool queued_ = false;
  bool queued_for_step_ = false;
  bool syncing_ = false;
  bool closed_ = false;
  SyncPoint target_;
  std::shared_ptr<base::File> active_;
  std::vector<Sealing> sealing_;
  bool directory_changed_ = false;
  int images_ = 0;           // that the journal has not written yet
  bool wants_sync_ = false;  // when it has
  std::uint64_t cuts_ = 0;
  LogCheckpoint reached_;
};

/// Group commit of one disk: one round of fdatasync at a time on the disk executor, which takes
/// every log that asked meanwhile, and of those that are in no hurry a few. Only here do recovery
/// points move (REC-2). Thread-safe.
class Flusher : public std::enable_shared_from_this<Flusher> {
 public:
  explicit Flusher(std::shared_ptr<DiskState> disk);

  /// Opens what sync_file_system() is called on, which reports errors from now on. On a disk
  /// thread, before anything is written.
  Result<void> hold(const std::string& path);

  /// What the drive has been given leaves its cache. Says nothing about durability. On a disk
  /// thread.
  void empty_cache();

  /// Everything up to `end` is written; make it durable soon.
  void request(const std::shared_ptr<LogSync>& log, const SyncPoint& end);
  using Wanted = std::vector<std::pair<std::shared_ptr<LogSync>, SyncPoint>>;
  void request(const Wanted& wanted);
  /// The same in steps of a few logs. On a disk with a head each log costs a seek, and whoever
  /// syncs anything there meanwhile, as the journal does, waits until the disk has done all of
  /// them: so he waits for one step.
  void request_without_hurry(const Wanted& wanted);
  /// Nobody waits for the disk any more but for the last syncs: no more steps.
  void hurry();
  /// The log is synced in such a step, for a moment. What is appended to it meanwhile would be
  /// written by its sync as well, with seeks of its own.
  [[nodiscard]] bool in_step(const LogSync& log) const noexcept {
    return log.in_step_.load(std::memory_order_acquire);
  }
  /// A block of the log that may be synced already was written again: no sync of the log begins
  /// until image_written() says that its earlier content is in the journal.
  void expect_image(LogSync& log);
  void image_written(const std::shared_ptr<LogSync>& log);
  /// Rises with every sync of the log that begins.
  [[nodiscard]] std::uint64_t syncs_begun(const LogSync& log) const noexcept;
  /// Where that ends in the active segment which counts as synced, or will when a sync that has
  /// begun ends.
  [[nodiscard]] std::uint64_t claimed(const LogSync& log) const noexcept;
  /// The log was cut and ends at `end` in `active` now, which is synced. Results of syncs from
  /// before are dropped.
  void cut(LogSync& log, const SyncPoint& end, std::shared_ptr<base::File> active,
           std::uint64_t cuts);
  /// The log goes on at `start` in a new file in its directory; the one before is finished.
  void rolled(LogSync& log, const SealedSegment& finished, std::shared_ptr<base::File> active,
              const SyncPoint& start);
  void set_log_start(LogSync& log, model::Offset log_start_offset);
  void set_epoch_starts(LogSync& log, std::vector<EpochStart> epoch_starts);
  /// No more syncs of this log begin.
  void close(LogSync& log);
  /// A sync is under way; `ended` will be called. Until then its files may not be removed.
  [[nodiscard]] bool syncing(const LogSync& log) const;

  /// Every byte below it is synced in the segments.
  [[nodiscard]] SyncPoint recovery_point(const LogSync& log) const;
  /// The journal has not written yet what a block held.
  [[nodiscard]] bool awaits_image(const LogSync& log) const;
  /// What the checkpoint may say of the log now.
  [[nodiscard]] LogCheckpoint reached(const LogSync& log) const;
  /// `changes` rises whenever reached() of any log changed, `rolls` with each finished segment that
  /// became durable.
  struct Progress {
    std::uint64_t changes = 0;
    std::uint64_t rolls = 0;
  };
  [[nodiscard]] Progress progress() const;

 private:
  struct Job {
    std::shared_ptr<LogSync> log;
    SyncPoint target;
    SyncPoint reached;  // when the sync began
    std::shared_ptr<base::File> active;
    std::vector<LogSync::Sealing> sealing;
    bool directory_changed = false;
    std::uint64_t cuts = 0;
    std::uint64_t appended = 0;  // of the dirty bytes, when the sync began

    /// All is durable already.
    [[nodiscard]] bool idle() const {
      return target == reached && sealing.empty() && !directory_changed;
    }
    /// Where in `active` that begins which is to be synced.
    [[nodiscard]] std::uint64_t active_from() const {
      return reached.segment_base == target.segment_base ? reached.position : 0;
    }
  };
  struct Step {
    std::vector<Job> jobs;
    base::TimePoint began;
    bool sound = true;
    std::atomic<std::size_t> left{0};
    std::atomic<base::Duration::rep> waited{0};  // until the first of them was synced
  };
  using LogSyncs = std::vector<std::shared_ptr<LogSync>>;
  void queue_locked(const std::shared_ptr<LogSync>& log);
  void begin_round_if_wanted(std::unique_lock<std::mutex> lock);
  void submit_round();
  void run_round();
  void put_off_locked();
  void sync_all(const LogSyncs& logs);
  LogSyncs take_step_locked();
  bool prepare(const LogSyncs& step);
  void begin_step(std::vector<Job> jobs);
  void sync_one(Step& step, Job& job);
  void end_round();
  struct Stretch {
    std::shared_ptr<base::File> file;
    std::uint64_t from = 0;
    std::uint64_t bytes = 0;
    std::string directory;
  };
  std::vector<Stretch> stretches_before(const LogSyncs& step) const;
  static std::vector<Stretch> stretches_of(const std::vector<Job>& jobs);
  bool write_back(const std::vector<Stretch>& stretches);
  void note_step(std::size_t logs, base::Duration waited);
  std::vector<Job> take_jobs(const LogSyncs& logs, bool step);
  std::optional<Job> take_job(const std::shared_ptr<LogSync>& log, bool step);
  Result<void> sync_together(const std::vector<Job>& jobs);
  Result<void> trim_sealing(const Job& job);
  Result<void> sync(const Job& job);
  Result<void> sync_file(base::File& file, const std::string& directory);
  void finish(Job& job, bool synced);

  const std::shared_ptr<DiskState> disk_;
  base::Counter& syncs_;  // one per file and round
  base::Counter& steps_;
  std::shared_ptr<base::File> held_;
  mutable std::mutex mutex_;  // guards everything below and the contents of every LogSync
  LogSyncs queue_;
  std::deque<std::shared_ptr<LogSync>> without_hurry_;
  LogSyncs prepared_;      // the next step, whose bytes are mostly on the disk
  std::size_t step_logs_;  // so many of them at once
  bool round_running_ = false;
  bool hurry_ = false;
  Progress progress_;
};

}  // namespace mq::storage
