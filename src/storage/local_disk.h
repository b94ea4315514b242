#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/run_on.h"
#include "base/wait_list.h"
#include "storage/checkpoint_writer.h"
#include "storage/local_log.h"
#include "storage/scrubber.h"

namespace mq::storage {

/// The Disk on one data directory.
class LocalDisk final : public Disk {
 public:
  LocalDisk(DataDirectory directory, DiskConfig config, base::FileSystem& files,
            DiskThreads threads, base::Runtime& home, base::Counters& counters);
  ~LocalDisk() override;

  /// Checks the cluster; writes the identity of a fresh directory.
  Result<void> adopt(Refusal& refusal);

  void set_broker_epoch(std::int64_t epoch) override { broker_epoch_ = epoch; }
  IntactSince intact_since() const override { return journal_->disk_state().intact; }
  std::int64_t intact_since(const model::PartitionId& id) const override;
  asio::awaitable<Result<RecoverySummary>> recover(
      std::vector<LogSpec> known, std::vector<base::Uuid> deleting,
      std::function<void(const RecoveryProgress&)> progress) override;
  void on_ready(std::function<void(const model::PartitionId&)> ready) override {
    ready_ = std::move(ready);
  }
  void start() override;
  asio::awaitable<Result<void>> stop() override;
  PartitionLog* find(const model::PartitionId& id) override;
  std::vector<model::PartitionId> partitions() const override;
  asio::awaitable<Result<void>> create_logs(std::vector<LogSpec> specs) override;
  asio::awaitable<Result<void>> delete_log(model::PartitionId id) override;
  asio::awaitable<Result<model::Offset>> replace_damaged(LogSpec spec, model::Offset start,
                                                         Keep keep) override;
  asio::awaitable<Result<void>> delete_topic(base::Uuid topic) override;
  void give_up_deletions() override { giving_up_deletions_ = true; }
  const DiskIdentity& identity() const override { return identity_; }
  const std::string& path() const override { return state_->path; }
  bool failed() const override { return state_->failed(); }
  std::string failure_reason() const override { return state_->failure_reason(); }
  bool full() const override { return state_->full(); }
  std::uint64_t free_bytes() const override { return free_bytes_; }
  std::uint64_t used_bytes() const override;
  std::uint64_t low_mark_bytes() const override { return low_mark_bytes_; }
  double write_rate() const override { return write_rate_; }
  ScrubStatus scrub() const override { return scrubber_.status(); }
  PutAside put_aside() const override { return put_aside_; }
  void on_changed(std::function<void()> changed) override { changed_ = std::move(changed); }

 private:
  using LogPtr = std::shared_ptr<LocalLog>;
  /// What intact_since() goes by.
  struct Replica {
    std::int64_t since = -1;  // of this one alone; -1: as of the disk
    bool memory = false;      // its confirmed ends counted as those of durability `memory`
  };
  /// What the directory held when this run began.
  struct Found {
    Checkpoint checkpoint;
    bool checkpoint_lost = false;
    std::map<model::PartitionId, CleanMarker::Log> clean;
    bool has_clean_marker = false;
    std::uint64_t journal_group = 0;  // as in the clean marker
    std::optional<RunMarker> run;
    std::set<model::PartitionId> directories;
    std::vector<std::string> strangers;
    std::optional<JournalReplay> replay;
    bool journal_is_new = false;
    bool disk_failed = false;  // in the run before
    Watermarks watermarks;
    DamageList damage;
    bool damage_known = false;  // else the file cannot be read
  };
  struct RecoveryRun;

  // Recovery (local_disk_recovery.cc, local_disk_recovery_logs.cc).
  Result<Found> look();
  Result<void> begin_run(const Found& found);
  Result<void> note_suspected(const Found& found);
  Result<void> write_run_marker();
  Result<void> put_away_unknown(Found& found, const std::set<model::PartitionId>& known,
                                const std::set<base::Uuid>& deleting, RecoverySummary& summary);
  [[nodiscard]] bool lossy_suspect(const Found& found) const;
  [[nodiscard]] IntactSince intact_since(const Found& found) const;
  Result<void> replay(Found& found);
  void restore_unknown(const Found& found, const std::set<model::PartitionId>& known,
                       const std::set<base::Uuid>& deleting);
  Result<void> begin_journal(JournalStart start, bool is_new);
  [[nodiscard]] JournalStart journal_start(const Found& found) const;
  [[nodiscard]] std::string journal_directory() const;
  asio::awaitable<Result<void>> recover_all(RecoveryRun& run);
  asio::awaitable<Result<void>> begin_recovery(RecoveryRun& run);
  void keep_found(const RecoveryRun& run);
  asio::awaitable<Result<void>> begin_journal_early(RecoveryRun& run);
  asio::awaitable<Result<void>> begin_journal_late(RecoveryRun& run);
  asio::awaitable<Result<void>> write_recovered(const RecoveryRun& run);
  asio::awaitable<void> forget_failure(const Found& found);
  asio::awaitable<void> watch_recovery(RecoveryRun& run);
  void say_ready(const model::PartitionId& id);
  asio::awaitable<void> recover_some(RecoveryRun& run);
  [[nodiscard]] bool is_listed(const model::PartitionId& id, const Found& found) const;
  [[nodiscard]] bool lost_with_its_directory(const model::PartitionId& id,
                                             const Found& found) const;
  void note_replica(const LogSpec& spec, const Found& found, bool offline);
  asio::awaitable<Result<void>> record_lost(const LogSpec& spec, const RecoveryRun& run);
  Result<RecoveredLog> recover_one(const LogSpec& spec, const Found& found);
  static bool has_images_above(const SyncPoint& end, const model::PartitionId& id,
                               const Found& found);
  asio::awaitable<Result<void>> forget_images_above(const model::PartitionId& id,
                                                    const RecoveryRun& run);
  Result<void> admit(const LogSpec& spec, RecoveredLog recovered, RecoveryRun& run);
  void keep_offline(const LogSpec& spec, RecoveryRun& run);

  // Running (local_disk.cc, local_disk_space.cc).
  [[nodiscard]] std::vector<std::byte> checkpoint_body() const;
  [[nodiscard]] Result<void> may_create(const std::vector<LogSpec>& specs) const;
  Result<LogPtr> open_log(const LogSpec& spec, RecoveredLog recovered);
  TailBudget& budget_of(base::Runtime& worker);
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] std::vector<LogPtr> logs() const;
  asio::awaitable<void> keep_checkpoint();
  asio::awaitable<bool> checkpoint_wanted(base::TimePoint due);
  asio::awaitable<void> keep_memory_logs_synced();
  asio::awaitable<void> keep_watermarks();
  [[nodiscard]] Watermarks watermarks() const;
  asio::awaitable<Result<void>> write_watermarks();
  asio::awaitable<void> keep_damage();
  asio::awaitable<void> write_damage();
  void forget_damage(const model::PartitionId& id);
  [[nodiscard]] std::vector<model::DamagedPlace> still_damaged(const model::PartitionId& id,
                                                               const RecoveredLog& log,
                                                               const Found& found) const;
  asio::awaitable<void> keep_retention();
  asio::awaitable<void> watch_space();
  asio::awaitable<void> check_space();
  Result<std::uint64_t> look_at_space(std::uint64_t used);
  [[nodiscard]] std::uint64_t low_mark(std::uint64_t free, std::uint64_t used) const;
  void note_write_rate();
  asio::awaitable<bool> pause(std::chrono::milliseconds interval);
  void state_changed();
  void write_behind_all();
  asio::awaitable<void> close_log(LogPtr log);
  asio::awaitable<void> close_and_forget(model::PartitionId id);
  asio::awaitable<Result<void>> remove_directories(std::vector<std::string> names);
  Result<void> remove_some_files(const std::vector<std::string>& names, std::size_t& done);
  asio::awaitable<Result<void>> sync_own_directory();
  asio::awaitable<Result<void>> journal_deletions(std::vector<model::PartitionId> ids);
  asio::awaitable<Result<void>> journal_settled();
  asio::awaitable<std::uint64_t> conclude_journal();
  asio::awaitable<Result<void>> write_clean_marker(std::uint64_t journal_group);
  asio::awaitable<void> end_all();

  // Replacing a damaged log (local_disk_replace.cc).
  struct Remains;
  [[nodiscard]] Result<void> may_replace(const model::PartitionId& id) const;
  asio::awaitable<Result<void>> look_for_remains(Remains& remains);
  asio::awaitable<Result<void>> replace_all(LogSpec spec, model::Offset start);
  asio::awaitable<Result<void>> replace_end(LogSpec spec, Remains& remains);
  asio::awaitable<Result<void>> put_directory_away(model::PartitionId id);
  asio::awaitable<Result<void>> put_end_away(model::PartitionId id, Remains& remains);
  Result<void> moved_away(const model::PartitionId& id, const Result<std::string>& kept);
  asio::awaitable<Result<void>> record_replaced(LogSpec spec, model::Offset start);
  asio::awaitable<Result<void>> record_end(LogSpec spec, const Remains& remains);
  void begin_record(const LogSpec& spec);
  asio::awaitable<Result<void>> serve_replacement(LogSpec spec, Result<RecoveredLog> made);

  std::shared_ptr<DiskState> state_;
  std::shared_ptr<DiskState::Listener> listener_;
  std::shared_ptr<Flusher> flusher_;
  std::shared_ptr<Journal> journal_;
  std::shared_ptr<base::FileLock> lock_;
  std::optional<DiskIdentity> found_identity_;
  DiskIdentity identity_;
  std::map<base::Runtime*, std::unique_ptr<TailBudget>> budgets_;
  std::map<model::PartitionId, LogPtr> logs_;
  std::map<model::PartitionId, Replica> replicas_;
  Checkpoint kept_;  // of logs that are offline: what an earlier run knew of them
  std::map<model::PartitionId, JournalLogState> kept_states_;  // the same for the journal
  CheckpointWriter checkpoint_;
  Scrubber scrubber_;
  Watermarks watermarks_written_;
  std::optional<DamageList> damage_written_;  // none: nobody knows what the file says
  Flusher::Progress checkpointed_;            // what the newest checkpoint knows at least
  base::TaskGroup tasks_;
  base::WaitList wake_;
  std::int64_t broker_epoch_ = -1;
  bool stopping_ = false;
  bool giving_up_deletions_ = false;
  bool checking_space_ = false;
  std::uint64_t free_bytes_ = 0;
  std::uint64_t low_mark_bytes_ = 0;
  double write_rate_ = 0;
  std::uint64_t rated_bytes_ = 0;  // of appends that write_rate_ counts
  base::TimePoint rated_at_{};
  bool reserve_said_ = false;
  PutAside put_aside_;
  base::TimePoint measure_aside_at_{};
  std::function<void()> changed_;
  std::function<void(const model::PartitionId&)> ready_;
};

}  // namespace mq::storage
