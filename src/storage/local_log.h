#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/wait_list.h"
#include "model/record_batch.h"
#include "storage/disk.h"
#include "storage/flusher.h"
#include "storage/journal.h"
#include "storage/log_recovery.h"
#include "storage/segment_reader.h"
#include "storage/tail_cache.h"

namespace mq::storage {

/// A segment that is no longer written and durable in its file.
struct FinishedSegment {
  model::Offset base;
  model::Offset start;  ///< what lies below is given to nobody: the log begins there
  std::uint64_t bytes = 0;
};

/// The PartitionLog on a local disk. Shared between its Disk and the work under way for it (reads,
/// retention, sync results). Its members belong to the worker; open() may be called elsewhere as
/// long as nobody else knows the log yet.
class LocalLog final : public PartitionLog, public std::enable_shared_from_this<LocalLog> {
 public:
  /// What makes a checkpoint durable that knows the new log start; called on the worker.
  using PersistLogStart = std::function<asio::awaitable<Result<void>>()>;

  /// Opens the active segment of `recovered`. An error: the file cannot be opened.
  static Result<std::shared_ptr<LocalLog>> open(const LogSpec& spec, std::string directory,
                                                RecoveredLog recovered,
                                                std::shared_ptr<DiskState> disk,
                                                std::shared_ptr<Flusher> flusher,
                                                std::shared_ptr<Journal> journal,
                                                TailBudget& tail_budget, PersistLogStart persist);
  ~LocalLog() override;

  const model::PartitionId& id() const override { return spec_.id; }
  const std::string& topic_name() const override { return spec_.topic_name; }
  Result<AppendInfo> append(base::Buffer owner, base::MutableBytes batch) override;
  Result<AppendInfo> append(base::Buffer owner, base::MutableBytes batch,
                            const model::RecordBatchView& parsed) override;
  bool appends_inline() const override;
  bool write_back_lags() const override { return disk_->write_behind->wants_more(); }
  asio::awaitable<Result<AppendInfo>> append_later(base::Buffer owner, base::MutableBytes batch,
                                                   model::RecordBatchView parsed) override;
  Result<AppendInfo> append_replicated(base::Buffer owner, base::Bytes batch) override;
  asio::awaitable<Result<AppendInfo>> append_replicated_later(base::Buffer owner,
                                                              base::Bytes batch) override;
  const ProducerState* find_producer(std::int64_t producer_id) override;
  bool has_room_for_a_producer() const override { return producers_.has_room(); }
  model::Offset log_start_offset() const override { return log_start_; }
  model::Offset log_end_offset() const override { return end_.offset; }
  model::Offset durable_offset() const override { return synced_.offset; }
  model::Offset confirmed_end() const override { return confirmed_; }
  model::LeaderEpoch leader_epoch() const override { return leader_epoch_; }
  model::LeaderEpoch last_batch_epoch() const override { return end_.leader_epoch; }
  Result<void> start_epoch(model::LeaderEpoch epoch) override;
  const std::vector<EpochStart>& epoch_starts() const override { return epoch_starts_; }
  Result<ReadResult> read(model::Offset from, model::Offset limit, std::size_t bytes_max) override;
  asio::awaitable<Result<ReadResult>> read_from_disk(model::Offset from, model::Offset limit,
                                                     std::size_t bytes_max) override;
  asio::awaitable<Result<TimeLookup>> find_time(std::int64_t time_ms) override;
  asio::awaitable<Result<void>> trim(model::Offset to) override;
  asio::awaitable<Result<void>> truncate(model::Offset to, model::LeaderEpoch epoch) override;
  asio::awaitable<Result<void>> keep_aside(model::Offset from) override;
  asio::awaitable<Result<void>> restart_at(model::Offset start, model::LeaderEpoch epoch) override;
  void set_high_watermark_hint(model::Offset offset) override {
    high_watermark_hint_.store(offset.value(), std::memory_order_relaxed);
  }
  model::Offset high_watermark_hint() const override;
  void set_retention_limit(model::Offset limit) override { retention_limit_ = limit; }
  void on_changed(std::function<void()> changed) override { changed_ = std::move(changed); }
  Error failure() const override;
  void set_settings(const model::TopicSettings& settings) override;
  const model::TopicSettings& settings() const override { return spec_.settings; }
  /// As it was set; -1: never. Any thread.
  [[nodiscard]] model::Offset recent_high_watermark_hint() const noexcept {
    return model::Offset(high_watermark_hint_.load(std::memory_order_relaxed));
  }
  std::uint64_t bytes_on_disk() const override { return sealed_bytes_ + end_.position; }
  /// bytes_on_disk() as of lately, on any thread.
  [[nodiscard]] std::uint64_t recent_bytes() const noexcept {
    return recent_bytes_.load(std::memory_order_relaxed);
  }
  std::uint32_t segments() const override { return static_cast<std::uint32_t>(sealed_.size() + 1); }
  std::string failure_text() const override;
  std::string read_damage() const override;
  std::vector<model::DamagedPlace> damaged_places() const override;

  /// What a snapshot of the journal says of the log when nothing is under way.
  [[nodiscard]] JournalLogState journal_state() const;

  // For the Disk.
  [[nodiscard]] base::Runtime& worker() const noexcept { return *spec_.worker; }
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] const std::shared_ptr<LogSync>& sync_state() const noexcept { return sync_; }
  [[nodiscard]] bool offline() const noexcept { return static_cast<bool>(failure_); }
  /// Not written back yet. Any thread.
  [[nodiscard]] std::uint64_t dirty_bytes() const noexcept { return dirty_->now(); }
  enum class Behind { whole_strides, everything };
  /// Has what may be written back written back.
  void write_behind(Behind how);
  [[nodiscard]] std::uint64_t stride_bytes() const;
  /// Asks for a sync of everything written, whatever the durability.
  void request_sync();
  void request_sync_without_hurry();
  /// No more appends; begins to sync.
  void begin_stop();
  /// Records it in the journal and waits until that is durable.
  asio::awaitable<Result<void>> journaled(JournalContent content);
  /// After begin_stop(): true once all is synced, the index of the active segment is written and
  /// what was allocated ahead is given back; false when the disk failed first.
  asio::awaitable<bool> finish_stop();
  /// Rolls an old active segment and removes what is past its age or above the size limit.
  asio::awaitable<void> apply_retention();
  /// failure() becomes `closed`; returns when nothing is under way any more.
  asio::awaitable<void> close();
  void disk_changed();
  /// What a scrub may look at, ascending.
  [[nodiscard]] std::vector<FinishedSegment> finished_segments() const;
  /// A scrub has found a segment damaged there.
  void report_scrub_damage(const model::DamagedPlace& place, const std::string& what);
  /// All that recovery found is synced in the segments: the journal may forget it.
  void note_recovered();
  /// The same of a log that was cut, which is done now; returns when that is durable.
  asio::awaitable<Result<void>> record_recovered();

 private:
  /// A segment that is no longer written.
  struct Sealed {
    model::Offset base;
    model::Offset end;
    std::uint64_t bytes = 0;
    std::int64_t last_append_time_ms = -1;     // -1: in its index
    std::shared_ptr<base::File> file;          // null: not open
    std::shared_ptr<const OffsetIndex> index;  // null: not loaded
  };
  /// Where a reader stopped, so that the next read needs no search.
  struct Cursor {
    model::Offset offset;
    model::Offset segment_base;
    std::uint64_t position = 0;
    bool cold = false;
  };
  /// One read of one segment, ready to run here or on a disk thread.
  struct ReadPlan {
    model::Offset base;
    std::uint64_t bytes = 0;
    std::uint64_t index_bytes = 0;  // what a loaded or rebuilt index covers
    std::shared_ptr<base::File> file;
    bool needs_index = false;
    bool cold = false;  // the read before, which ended here, had to wait for the disk
    SegmentRead read;
    model::DamagedPlace damage;
    std::shared_ptr<const SegmentIndex> loaded;
    void read_from(const TimeIndex::Place& place) {
      read.position = place.position;
      read.at = place.base_offset;
    }
  };
  /// One search for a time in one segment, ready to run on a disk thread.
  struct TimePlan {
    std::int64_t time_ms = 0;
    model::Offset base;
    std::uint64_t bytes = 0;
    std::uint64_t index_bytes = 0;  // what a loaded or rebuilt index covers
    std::shared_ptr<base::File> file;
    bool needs_index = true;
    TimeIndex::Place near;
    std::uint64_t damage = 0;
    std::shared_ptr<const TimeIndex> loaded;
  };
  struct ExpiredSegment {
    model::Offset base;
    std::uint64_t bytes = 0;
  };

  LocalLog(const LogSpec& spec, std::string directory, RecoveredLog recovered,
           std::shared_ptr<base::File> active, std::shared_ptr<DiskState> disk,
           std::shared_ptr<Flusher> flusher, std::shared_ptr<Journal> journal,
           TailBudget& tail_budget, PersistLogStart persist);
  void attach();

  /// A batch on its way in.
  struct Incoming {
    base::Buffer owner;
    model::RecordBatchView parsed;
    base::MutableBytes to_stamp;  // the same bytes; empty: another broker has stamped them
    [[nodiscard]] bool replicated() const noexcept { return to_stamp.empty(); }
  };

  // Appending (local_log_append.cc).
  [[nodiscard]] Result<void> takes_appends() const;
  [[nodiscard]] Result<void> may_append(const Incoming& incoming) const;
  [[nodiscard]] std::int64_t append_time_of(const Incoming& incoming) const;
  [[nodiscard]] std::int64_t own_append_time_ms() const;
  [[nodiscard]] AppendInfo stamp(const Incoming& incoming, std::int64_t time_ms) const;
  Result<AppendInfo> append_now(Incoming incoming);
  Result<void> wrote(base::Bytes batch, const Result<std::size_t>& taken);
  void written(const AppendInfo& info, Incoming incoming);
  void follow_epoch(const AppendInfo& info);
  [[nodiscard]] bool has_room() const;
  asio::awaitable<void> wait_for_room();
  asio::awaitable<Result<void>> roll_first(const Incoming& incoming);
  asio::awaitable<Result<AppendInfo>> append_when_possible(Incoming incoming);
  asio::awaitable<Result<AppendInfo>> append_on_thread(Incoming incoming);

  // Segments and their space (local_log_segments.cc).
  static constexpr std::uint64_t kAllocateFrom = std::uint64_t{64}
                                                 << 10;  // small ones take nothing
  static constexpr std::uint64_t kAllocateStepMin = std::uint64_t{1} << 20;
  [[nodiscard]] bool must_roll(const model::RecordBatchView& batch, std::int64_t time_ms) const;
  [[nodiscard]] bool rolls_soon() const;
  Result<void> roll();
  using Opened = Result<std::unique_ptr<base::File>>;
  Result<void> roll_into(Opened opened);
  asio::awaitable<void> make_next_file(Opened& opened);
  asio::awaitable<Result<void>> roll_later();
  asio::awaitable<Result<void>> roll_idle();
  void allocate_ahead();
  void allocated(std::uint64_t end, Error error);
  void write_index(const Sealed& sealed, OffsetIndex index, TimeIndex times);
  [[nodiscard]] std::uint64_t segment_bytes_max() const;
  [[nodiscard]] std::int64_t segment_age_ms_max() const;
  [[nodiscard]] std::string path_of(const std::string& name) const {
    return directory_ + "/" + name;
  }

  // Producers (local_log_producers.cc).
  void note_producer(const model::RecordBatchView& batch, std::uint64_t position);
  void snapshot_producers();
  asio::awaitable<void> snapshot_producers_of_the_end();
  std::function<void()> next_snapshot();
  std::string pop_snapshot();
  void forget_producers_below(model::Offset log_start);

  // State (local_log.cc).
  void on_durable(const SyncPoint& point);
  void wake() { wake_.notify_all(); }
  void confirm();
  void changed() const;

  // The journal, and what is written back (local_log_journal.cc).
  void journal_append(base::SharedBytes batch, model::Offset base, std::uint64_t position);
  [[nodiscard]] bool needs_image(std::uint64_t position, std::uint64_t begun) const;
  [[nodiscard]] bool needs_image() const;
  [[nodiscard]] std::vector<std::byte> block_below(std::uint64_t position);
  asio::awaitable<std::vector<std::byte>> load_block_below(std::uint64_t position);
  void block_is_lost(const Result<std::size_t>& got);
  void journal_image(std::uint64_t position);
  asio::awaitable<bool> image_first();

  // Reading (local_log_read.cc).
  Result<void> check_readable(model::Offset from) const;
  [[nodiscard]] ReadPlan plan(model::Offset from, model::Offset limit, std::size_t bytes_max);
  [[nodiscard]] Sealed* find_sealed(model::Offset offset);
  Result<ReadResult> read_planned(ReadPlan& plan);
  class ColdTurn;
  [[nodiscard]] IndexedSegment indexed(model::Offset base, std::uint64_t bytes, bool whole,
                                       std::shared_ptr<base::File> file) const;
  Result<void> prepare_on_disk(ReadPlan& plan) const;
  [[nodiscard]] ReadResult take_ahead(const ReadPlan& plan, SegmentReadResult done,
                                      std::size_t bytes_max) const;
  void install(const ReadPlan& plan);
  void remember_cursor(const ReadPlan& plan, const SegmentReadResult& result, bool cold);
  Error report_damage(const ReadPlan& plan, const Error& error);
  void note_damage(const model::DamagedPlace& place, const std::string& what);
  void write_damage_down() const;
  void keep_open(model::Offset base);

  // Cutting (local_log_cut.cc).
  class Cut;
  asio::awaitable<Result<void>> may_cut(model::LeaderEpoch epoch);
  asio::awaitable<Result<void>> cut_off(model::Offset to, model::LeaderEpoch epoch);
  asio::awaitable<Result<void>> begin_anew(model::Offset start, model::LeaderEpoch epoch);
  asio::awaitable<Result<void>> end_at(std::shared_ptr<Cut> cut, model::LeaderEpoch epoch);
  void forget_above(const Cut& cut);
  asio::awaitable<Result<void>> finish_cut();
  static asio::awaitable<void> finish_cut_later(std::shared_ptr<LocalLog> self);
  asio::awaitable<void> until_cut();

  // Looking for a time (local_log_time.cc).
  asio::awaitable<Result<model::Offset>> find_segment_by_time(std::int64_t time_ms);
  [[nodiscard]] TimePlan plan_time(model::Offset base, std::int64_t time_ms);
  Result<std::optional<TimedBatch>> search_time(TimePlan& plan) const;

  // Retention and trim (local_log_retention.cc).
  asio::awaitable<Result<void>> raise_durably(model::Offset to);
  [[nodiscard]] model::Offset segment_of(model::Offset offset) const;
  [[nodiscard]] bool synced_past(model::Offset to, model::Offset kept) const;
  static asio::awaitable<void> remove_trimmed(std::shared_ptr<LocalLog> self);
  void end_retaining();
  asio::awaitable<void> roll_if_old(std::int64_t now_ms);
  asio::awaitable<Result<void>> load_append_time(model::Offset base);
  [[nodiscard]] std::optional<std::int64_t> retention_time_ms() const;
  asio::awaitable<model::Offset> find_new_start(std::optional<std::int64_t> now_ms);
  [[nodiscard]] bool is_expired(const Sealed& sealed, std::uint64_t bytes_behind,
                                std::optional<std::int64_t> now_ms) const;
  void raise_log_start(model::Offset new_start);
  asio::awaitable<void> remove_expired();

  /// Counts work that uses the log across a suspension; close() waits for the last.
  class Visit {
   public:
    explicit Visit(LocalLog& log) : log_(log.shared_from_this()) { ++log_->visits_; }
    ~Visit() {
      if (--log_->visits_ == 0 || log_->cutting_) log_->wake_.notify_all();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    std::shared_ptr<LocalLog> log_;
  };

  LogSpec spec_;
  const std::string directory_;
  const std::shared_ptr<DiskState> disk_;
  const std::shared_ptr<Flusher> flusher_;
  const std::shared_ptr<Journal> journal_;
  const PersistLogStart persist_;
  std::shared_ptr<LogSync> sync_;
  std::shared_ptr<JournalLog> journal_log_;
  std::uint64_t cuts_ = 0;  // results of the journal from before the last one are dropped
  // The last append's block needs no image as long as no sync began since.
  std::uint64_t imaged_at_sync_ = ~std::uint64_t{0};
  std::uint64_t imaged_block_ = ~std::uint64_t{0};
  // The journal holds durably what lies in the block below this end of the active segment.
  std::uint64_t image_ahead_ = ~std::uint64_t{0};

  Error failure_;
  std::function<void()> changed_;
  base::WaitList wake_;
  int visits_ = 0;

  model::Offset log_start_;
  SyncPoint end_;     // the log end, in the active segment
  SyncPoint whole_;   // the newest one that does not reach into the block of end_
  SyncPoint synced_;  // below it every byte is durable, in segment or journal
  model::Offset confirmed_;
  model::Offset retention_limit_;  // -1: none
  model::LeaderEpoch leader_epoch_;
  bool may_append_ = false;  // start_epoch() came
  bool stopping_ = false;
  std::vector<EpochStart> epoch_starts_;
  std::atomic<std::int64_t> high_watermark_hint_{-1};

  ProducerTable producers_;
  BatchPlace last_batch_;
  std::deque<model::Offset> snapshots_;  // whose files are there or being written, ascending
  std::uint64_t snapshot_position_ = 0;  // of the newest one in the active segment, or its start

  std::deque<Sealed> sealed_;
  std::uint64_t sealed_bytes_ = 0;
  std::atomic<std::uint64_t> recent_bytes_{0};
  std::vector<model::Offset> open_sealed_;  // those with an open file, least recently used first
  std::shared_ptr<base::File> active_;
  OffsetIndex active_index_;
  std::uint64_t active_index_from_;                       // it knows nothing below this position
  std::shared_ptr<const OffsetIndex> active_head_index_;  // which this one covers, once loaded
  TimeIndex active_times_;  // as active_index_, and knows nothing below the same position
  std::shared_ptr<const TimeIndex> active_head_times_;

  std::uint64_t allocated_ = 0;
  std::uint64_t allocate_step_;
  bool allocating_ = false;
  base::TimePoint allocate_looked_at_{};
  std::uint64_t allocate_looked_at_position_ = 0;
  std::uint64_t written_behind_ = 0;
  const std::uint64_t first_stride_;  // of a file
  std::shared_ptr<DirtyBytes> dirty_ = std::make_shared<DirtyBytes>();
  bool writing_ = false;     // a disk thread appends
  bool rolling_ = false;     // a disk thread makes the next segment's file, and nobody appends
  bool imaging_ = false;     // an append waits for an image, or was not made behind one yet
  bool wants_room_ = false;  // and will be told of it

  TailCache tail_;
  std::array<Cursor, 4> cursors_;
  std::size_t next_cursor_ = 0;

  std::vector<ExpiredSegment> expired_;  // below the log start, to be removed
  bool retaining_ = false;               // someone raises the log start, removes segments or cuts
  bool cutting_ = false;                 // truncate() is under way
  bool cut_pending_ = false;             // cut in the files; not recorded as done yet
  model::Offset wanted_start_;           // of a trim that could not be made durable yet
  /// By segment, where it is known to be damaged.
  std::map<model::Offset, model::DamagedPlace> damage_;
  std::string problem_;  // that recovery has met
  /// What keep_aside() has copied: from there to the end that the log had after so many cuts.
  struct KeptAside {
    model::Offset from;
    model::Offset end;
    std::uint64_t cuts = 0;
  } kept_aside_;
};

}  // namespace mq::storage
