#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "storage/journal_files.h"
#include "storage/journal_log.h"

namespace mq::storage {

/// What a journal begins with after recovery. Everything below the recovery points is synced.
struct JournalStart {
  std::string directory;
  JournalOwner owner;
  std::uint64_t secret = 0;  ///< random; nonces of files come from it
  JournalDiskState disk;
  std::map<model::PartitionId, JournalLogState> logs;
  /// Of `logs` those that are not recovered yet, and up to where the files of the run before must
  /// be kept for them: until a recovery point has passed it, or give_up(). Empty: none are kept.
  std::map<model::PartitionId, model::Offset> recovering;
  /// What was found; its files are used again.
  std::vector<JournalFileFound> found;
  std::uint64_t first_generation = 0;
  std::uint64_t newest_generation = 0;
  std::uint64_t last_group = 0;
  std::uint32_t last_crc = 0;
  std::shared_ptr<base::FileLock> lock;  ///< of the disk
};

/// The journal of one disk: batches of durability `disk` and everything that changes what recovery
/// must know go into one file, one group after the other, with one fdatasync for all partitions.
/// A durable offset moves when a group is durable that holds the batch, or a recovery point above
/// it. Thread-safe; groups are written on the disk executor, one at a time.
class Journal : public std::enable_shared_from_this<Journal> {
 public:
  Journal(std::shared_ptr<DiskState> disk, std::shared_ptr<Flusher> flusher);

  /// Opens or makes the files and writes the first snapshot, durably: a fresh generation, so that
  /// nothing is ever written behind an old tail. On a disk thread, before anything else. Errors:
  /// storage_full (it may be begun again then), disk_failed.
  Result<void> begin(JournalStart start);

  /// A new log; `end` is its end on the files.
  void attach(const std::shared_ptr<JournalLog>& log);
  /// A batch was written to its segment at `position` of the segment that begins at `segment_base`;
  /// `end` is the log's end behind it.
  struct Batch {
    base::SharedBytes bytes;
    model::Offset base;
    model::Offset segment_base;
    std::uint64_t position = 0;
    SyncPoint end;
  };
  void append(const std::shared_ptr<JournalLog>& log, Batch batch);
  /// What the block at `position` held before the append that ended at `end` wrote it again. The
  /// log's syncs wait for it.
  void image(const std::shared_ptr<JournalLog>& log, std::uint64_t position,
             std::vector<std::byte> bytes, const SyncPoint& end);
  /// The same before an append writes the block again, which it may do when `done` says that the
  /// image is durable. Afterwards image_used() has to follow, with the log's end, also when nothing
  /// was appended: else the image is kept for ever.
  void image_ahead(const std::shared_ptr<JournalLog>& log, std::uint64_t position,
                   std::vector<std::byte> bytes, const SyncPoint& end, JournalDone done);
  void image_used(const std::shared_ptr<JournalLog>& log, const SyncPoint& end, bool appended);
  /// A JournalCut, below whose end everything is synced, or a JournalRestart: until it is in a
  /// group the log is as before, and its recovery point must be free to move, since the group may
  /// be waiting for it. In the group the log gets one more cut, which results from then on have to
  /// name. Nothing may be appended before `done`.
  void note(const std::shared_ptr<JournalLog>& log, JournalContent content, JournalDone done = {});
  /// About the disk (id zero) or a partition that has no log here.
  void note(const model::PartitionId& id, JournalContent content, JournalDone done = {});
  /// The segments are synced up to `point`; results from before the newest cut are dropped.
  void synced(const std::shared_ptr<JournalLog>& log, const SyncPoint& point, std::uint64_t cuts);
  /// A log that was to be recovered stays offline: from now on snapshots say this of it.
  void give_up(const model::PartitionId& id, const JournalLogState& state);
  /// Whoever waits for something durable is told that it never will be.
  void disk_failed();
  /// When all that was noted is written: one more file is begun, and nothing but its snapshot is
  /// ever written into it; concluded() is its number. done(false): there was no free file.
  void conclude(JournalDone done);
  [[nodiscard]] std::uint64_t concluded() const;
  /// No further group begins. The disk executor may still run the last one.
  void end();
  /// Nothing more of this log.
  void close(JournalLog& log);
  /// What a snapshot says now of the disk as a whole.
  [[nodiscard]] JournalDiskState disk_state() const;
  void set_intact_since(const IntactSince& intact, JournalDone done);
  /// Calls `done` when all that was noted without a log is durable.
  void note_disk(JournalDone done);

 private:
  enum class Phase { idle, waiting, running };
  using Item = JournalLog::Item;
  struct Taken {
    model::PartitionId id;
    std::shared_ptr<JournalLog> log;  // null: none
    Item item;
  };
  /// Whom to tell what when the group is durable.
  struct Advance {
    std::shared_ptr<JournalLog> log;
    SyncPoint point;
    std::uint64_t cuts = 0;
  };
  struct Group {
    std::vector<Taken> entries;
    std::vector<Advance> advances;
    std::vector<std::pair<std::shared_ptr<LogSync>, SyncPoint>> bypasses;
  };

  // The queue (journal.cc). Members named *_locked want the lock held.
  void queue_locked(const std::shared_ptr<JournalLog>& log);
  void wake_locked();
  void submit_round();
  void wait_for_more(base::Runtime& runtime, base::Duration span);
  [[nodiscard]] base::Duration window() const;
  void run_round();
  void end_round(bool stalled);
  void conclude_round();
  Group take(std::uint64_t bytes_max, bool only_recovery_points);
  bool take_from_locked(const std::shared_ptr<JournalLog>& log, Group& group,
                        std::uint64_t& bytes_left);
  static void take_cut_locked(const std::shared_ptr<JournalLog>& log, Group& group);
  static void advance(Group& group, const std::shared_ptr<JournalLog>& log, const SyncPoint& point);
  void take_recovery_point_locked(const std::shared_ptr<JournalLog>& log, Group& group);
  void note_taking_part_locked(const Group& group);

  // Writing (journal_writer.cc), inside a round only.
  void encode(const Taken& taken);
  bool commit(Group& group);
  void tell(Group& group, bool durable);
  bool write_group(JournalFile& file, std::uint64_t position);
  bool write_header(JournalFile& file);
  bool retire_before(const JournalFile& taken);
  void settle_needs(const Group& group);
  void free_files();
  bool make_room(bool& stalled);
  bool switch_file(bool alone = false);
  [[nodiscard]] std::uint64_t snapshot_bytes() const;
  [[nodiscard]] std::uint64_t reserve_bytes() const;
  std::unique_ptr<JournalFile> take_free(std::uint64_t bytes_min);
  void build_snapshot(std::uint64_t first_generation);
  enum class Hurry { no, yes };
  void ask_for_recovery_points(Hurry hurry);
  [[nodiscard]] bool recovery_points_due() const;
  [[nodiscard]] bool recovery_points_would_free() const;
  void look_ahead();
  [[nodiscard]] std::uint64_t usable_bytes() const;
  [[nodiscard]] bool has_useful_file() const;
  [[nodiscard]] bool room_comes() const;
  void note_fill_rate();
  bool prepare_file();
  void begin_file(std::uint32_t number, std::uint64_t first, std::uint64_t bytes,
                  const std::shared_ptr<base::FileLock>& disk_lock);
  void grow_later(JournalGrowth growth, std::shared_ptr<base::FileLock> disk_lock);
  void grow(JournalGrowth& growth);
  void take_growth();
  [[nodiscard]] std::uint64_t roomy_bytes() const;
  void make_roomy();
  void take_new_files();
  [[nodiscard]] std::uint64_t group_bytes_max() const;
  [[nodiscard]] std::uint64_t bypass_bytes() const;
  [[nodiscard]] JournalFileHeader header_of(std::uint64_t generation) const;
  bool fail(std::string_view operation, const std::string& path, const Error& error);

  // Beginning (journal_begin.cc).
  Result<void> open_files(const JournalStart& start);
  Result<void> open_file(const JournalStart& start, const JournalFileFound& found);
  Result<std::unique_ptr<JournalFile>> make_file(std::uint32_t number, std::uint64_t bytes);
  Result<void> have_free_file();
  Result<void> keep_old_files(const JournalStart& start);
  void take_given_up();
  void take_unused_images();

  const std::shared_ptr<DiskState> disk_;
  const std::shared_ptr<Flusher> flusher_;
  base::Counter& groups_;
  base::Counter& bytes_;

  mutable std::mutex mutex_;  // guards the following and the contents of every JournalLog
  Phase phase_ = Phase::idle;
  bool begun_ = false;
  bool ended_ = false;
  bool news_ = false;                     // since the round under way began
  std::shared_ptr<base::FileLock> lock_;  // of the disk; kept while files are made
  std::uint64_t ticket_ = 0;              // of the newest wait
  std::deque<std::shared_ptr<JournalLog>> queue_;
  std::vector<Taken> loose_;  // entries without a log
  std::map<model::PartitionId, std::weak_ptr<JournalLog>> logs_;
  std::vector<std::unique_ptr<JournalFile>> new_files_;     // made, not known to a round yet
  std::vector<JournalGrowth> grown_;                        // not known to a round yet
  std::map<model::PartitionId, JournalLogState> given_up_;  // not known to a round yet
  /// Log ends behind images that no append followed, not known to a round yet.
  std::map<model::PartitionId, model::Offset> unused_images_;
  bool making_file_ = false;
  JournalDone conclude_;
  std::uint64_t concluded_ = 0;
  JournalDiskState disk_state_;
  std::size_t expected_logs_ = 0;  // that took part in one of the last two groups
  std::size_t last_logs_ = 0;      // in the last one
  std::uint64_t rounds_ = 0;
  base::TimePoint round_began_{};
  base::Duration group_time_{};  // of late, from its start until it is durable
  base::TimePoint make_file_after_{};

  // Of the round under way.
  std::string directory_;
  JournalOwner owner_;
  std::uint64_t secret_ = 0;
  std::map<model::PartitionId, JournalLogState> states_;
  std::deque<std::unique_ptr<JournalFile>> live_;  // oldest first; the last one is written
  std::vector<std::unique_ptr<JournalFile>> old_;  // of the run before, until the first snapshot
  std::vector<std::unique_ptr<JournalFile>> free_;
  std::uint64_t position_ = 0;
  std::uint64_t generation_ = 0;
  std::uint32_t next_number_ = 0;  // of a file to be made
  std::uint64_t largest_bytes_ = 0;
  std::uint64_t group_number_ = 0;
  std::uint32_t last_crc_ = 0;
  JournalGroupBuilder builder_;
  bool stalled_said_ = false;
  base::TimePoint file_began_{};  // the newest one
  double bytes_per_second_ = 0;   // of the one before
  bool looked_ahead_ = false;     // since the newest file was begun
  bool cramped_ = false;          // a larger file would take what this one does not
  std::uint64_t asked_for_ = 0;   // files of older generations shall get free; 0: none asked for
  base::TimePoint asked_at_{};    // for recovery points
  base::Duration asked_took_{};   // the last time, until the files were free
};

}  // namespace mq::storage
