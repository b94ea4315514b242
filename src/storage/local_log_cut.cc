#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "storage/batch_scanner.h"
#include "storage/local_log.h"
#include "storage/log_files.h"
#include "storage/producer_recovery.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {

using model::LeaderEpoch;
using model::Offset;

namespace {
constexpr auto kFinishCutAgain = std::chrono::seconds(1);
}  // namespace

/// One cut, or the beginning anew of an empty log: where it goes, and the work on a disk thread
/// before and after its record is durable.
class LocalLog::Cut {
 public:
  static Cut at(const LocalLog& log, Offset to) {
    Cut cut(log, to);
    cut.base = log.end_.segment_base;
    cut.bytes_ = log.end_.position;
    for (const auto& sealed : log.sealed_) {
      cut.segments_.push_back({sealed.base, sealed.bytes});
      if (sealed.base <= to && to < sealed.end) {
        cut.base = sealed.base;
        cut.bytes_ = sealed.bytes;
      }
    }
    for (const auto& sealed : log.sealed_) {
      if (sealed.end == cut.base) cut.before_ = sealed.base;
    }
    cut.segments_.push_back({log.end_.segment_base, log.end_.position});
    cut.file = cut.base == log.end_.segment_base ? log.active_ : nullptr;
    return cut;
  }
  static Cut restart(const LocalLog& log, Offset start) {
    Cut cut(log, start);
    cut.base = start;
    cut.anew = true;
    cut.segments_.push_back({start, 0});
    return cut;
  }

  /// Finds the place, or makes the new segment; what is in the log stays. offset_out_of_range: no
  /// batch begins there.
  Result<void> look();
  /// The record of the cut is durable: nothing above it may stay.
  Result<void> carry_out();
  /// What the log remembers of producers now.
  Result<RecoveredProducers> find_producers(Offset log_start, std::vector<Offset> snapshots);
  [[nodiscard]] JournalContent record(LeaderEpoch epoch) const {
    if (anew) return JournalRestart{point, epoch, -1};
    return JournalCut{point, epoch};
  }

  bool anew = false;
  Offset base;  ///< of the segment that is written on
  std::shared_ptr<base::File> file;
  SyncPoint point;
  OffsetIndex index{Offset(0), 0};
  TimeIndex times{Offset(0), 0};

 private:
  Cut(const LocalLog& log, Offset to) : disk_(log.disk_), log_(log), to_(to) {}

  Result<void> look_before();
  Result<void> make_segment();

  const std::shared_ptr<DiskState> disk_;
  const LocalLog& log_;  // what never changes of it
  const Offset to_;
  std::uint64_t bytes_ = 0;
  std::optional<Offset> before_;  // the segment before
  std::vector<ProducerRecoverySpec::Segment> segments_;
};

Result<void> LocalLog::Cut::look() {
  if (anew) {
    MQ_TRY_VOID(make_segment());
  } else if (!file) {
    MQ_TRY(file, disk_->files.open(log_.path_of(segment_file_name(base)), base::OpenMode::write));
  }
  index = OffsetIndex(base, disk_->config.index_stride_bytes);
  times = TimeIndex(base, disk_->config.index_stride_bytes);
  point.offset = point.segment_base = base;
  point.leader_epoch = LeaderEpoch(-1);
  if (anew) return {};
  if (to_ == base) return look_before();
  BatchScanner scanner(*file, {0, base, {}, false}, bytes_, BatchScanner::Depth::headers);
  while (point.offset < to_) {
    MQ_TRY_VOID(scanner.next());
    if (scanner.at_end() || scanner.state() != BatchState::good)
      return StorageErrc::partition_corrupt;
    const auto& batch = scanner.view();
    index.note(point.offset, point.position);
    times.note(batch.append_time_ms(), point.offset, point.position);
    if (point.position == 0) point.segment_first_append_time_ms = batch.append_time_ms();
    point.offset = batch.end_offset();
    point.position += scanner.batch_bytes();
    point.leader_epoch = batch.leader_epoch();
    point.append_time_ms = batch.append_time_ms();
  }
  if (point.offset != to_) return StorageErrc::offset_out_of_range;
  return {};
}

/// The last batch that stays is the last one of the segment before, if that is still there.
Result<void> LocalLog::Cut::look_before() {
  if (!before_) return {};
  const auto segment =
      std::ranges::find(segments_, *before_, &ProducerRecoverySpec::Segment::base_offset);
  MQ_TRY(const auto found,
         find_segment_index(log_.indexed(*before_, segment->bytes, true, nullptr)));
  point.leader_epoch = found.last_leader_epoch;
  point.append_time_ms = found.last_append_time_ms;
  return {};
}

/// Above the log end: a start that does not find it recorded takes it for a torn tail.
Result<void> LocalLog::Cut::make_segment() {
  auto opened = disk_->files.open(log_.path_of(segment_file_name(base)), base::OpenMode::create);
  if (!opened && opened.error() == make_error_code(base::BaseErrc::no_space))
    return StorageErrc::storage_full;
  if (!opened) return StorageErrc::io_failed;
  file = *std::move(opened);
  MQ_TRY(const auto size, file->size());
  if (size != 0) return StorageErrc::io_failed;
  return {};
}

/// From the end, so that a crash in between leaves a log without a gap.
Result<void> LocalLog::Cut::carry_out() {
  if (anew) return empty_log_directory(disk_->files, log_.directory_, base);
  while (segments_.back().base_offset != base) {
    const Offset gone = segments_.back().base_offset;
    MQ_TRY_VOID(remove_segment_caches(disk_->files, log_.directory_, gone));
    MQ_TRY_VOID(remove_if_there(disk_->files, log_.path_of(segment_file_name(gone))));
    segments_.pop_back();
  }
  segments_.back().bytes = point.position;
  MQ_TRY_VOID(remove_segment_caches(disk_->files, log_.directory_, base));
  MQ_TRY_VOID(file->truncate(point.position));
  MQ_TRY_VOID(file->sync_all());
  return disk_->files.sync_directory(log_.directory_);
}

Result<RecoveredProducers> LocalLog::Cut::find_producers(Offset log_start,
                                                         std::vector<Offset> snapshots) {
  ProducerRecoverySpec spec;
  spec.partition = log_.spec_.id;
  spec.directory = log_.directory_;
  spec.log_start_offset = log_start;
  spec.segments = segments_;
  spec.end = point;
  spec.snapshots = std::move(snapshots);
  return recover_producers(disk_->files, spec);
}

/// Waits until nobody else moves the log's ends.
asio::awaitable<Result<void>> LocalLog::may_cut(LeaderEpoch epoch) {
  MQ_CO_TRY_VOID(check_readable(log_start_));
  while ((retaining_ || writing_) && !failure() && !stopping_) co_await wake_.wait();
  MQ_CO_TRY_VOID(check_readable(log_start_));
  if (stopping_) co_return make_error_code(StorageErrc::closed);
  if (epoch < leader_epoch_) co_return make_error_code(StorageErrc::stale_leader_epoch);
  co_return Result<void>();
}

asio::awaitable<Result<void>> LocalLog::truncate(Offset to, LeaderEpoch epoch) {
  const Visit visit(*this);
  MQ_CO_TRY_VOID(co_await may_cut(epoch));
  if (to < std::max(log_start_, wanted_start_) || to > end_.offset)
    co_return make_error_code(StorageErrc::offset_out_of_range);
  if (to == end_.offset) co_return Result<void>();
  if (cut_pending_) co_return make_error_code(StorageErrc::storage_full);
  retaining_ = true;
  cutting_ = true;
  const auto cut = co_await cut_off(to, epoch);
  cutting_ = false;
  end_retaining();
  co_return cut;
}

asio::awaitable<Result<void>> LocalLog::keep_aside(Offset from) {
  const Visit visit(*this);
  MQ_CO_TRY_VOID(check_readable(log_start_));
  if (from >= end_.offset) co_return Result<void>();
  const KeptAside& before = kept_aside_;
  if (before.end == end_.offset && before.cuts == cuts_ && before.from <= from)
    co_return Result<void>();  // the cut behind it is tried again
  std::vector<SegmentBytes> segments;
  for (const auto& sealed : sealed_) {
    if (sealed.end > from) segments.push_back({sealed.base, sealed.bytes});
  }
  if (end_.position > 0) segments.push_back({end_.segment_base, end_.position});
  const auto disk = disk_;
  Result<std::string> kept = make_error_code(StorageErrc::closed);
  const auto work = [&] {
    kept = copy_segments_away(disk->files, disk->path, spec_.id.text(), segments);
  };
  co_await disk->executor.run(work);
  if (failure()) co_return failure();
  if (!kept && kept.error() == make_error_code(base::BaseErrc::no_space))
    co_return make_error_code(StorageErrc::storage_full);
  if (!kept) {
    disk->fail("keeping what is cut", directory_, kept.error());
    co_return make_error_code(StorageErrc::disk_failed);
  }
  base::log_warning("storage", "partition {} ({}): what lies behind offset {} is kept as {}",
                    spec_.id.text(), spec_.topic_name, from, *kept);
  kept_aside_ = {from, end_.offset, cuts_};
  co_return Result<void>();
}

asio::awaitable<Result<void>> LocalLog::restart_at(Offset start, LeaderEpoch epoch) {
  const Visit visit(*this);
  MQ_CO_TRY_VOID(co_await may_cut(epoch));
  if (start < std::max(end_.offset, wanted_start_))
    co_return make_error_code(StorageErrc::offset_out_of_range);
  if (cut_pending_) co_return make_error_code(StorageErrc::storage_full);
  retaining_ = true;
  cutting_ = true;
  const auto done = co_await begin_anew(start, epoch);
  cutting_ = false;
  end_retaining();
  co_return done;
}

asio::awaitable<void> LocalLog::until_cut() {
  while (cutting_ && !failure()) co_await wake_.wait();
}

asio::awaitable<Result<void>> LocalLog::cut_off(Offset to, LeaderEpoch epoch) {
  // What stays has to be synced by the descriptors that wrote it, and the finished segments among
  // it known as such: the recovery point has left them.
  const Offset kept = segment_of(to);
  while (true) {
    const bool synced = synced_past(to, kept);
    if (synced && visits_ <= 1) break;
    if (failure()) co_return failure();
    if (stopping_) co_return make_error_code(StorageErrc::closed);  // which waits for us, too
    if (!synced) flusher_->request(sync_, end_);
    co_await wake_.wait();
  }
  if (failure()) co_return failure();
  auto cut = std::make_shared<Cut>(Cut::at(*this, to));
  co_return co_await end_at(std::move(cut), epoch);
}

/// LOG-13
asio::awaitable<Result<void>> LocalLog::begin_anew(Offset start, LeaderEpoch epoch) {
  while (visits_ > 1 && !failure() && !stopping_) co_await wake_.wait();
  if (failure()) co_return failure();
  if (stopping_) co_return make_error_code(StorageErrc::closed);
  auto cut = std::make_shared<Cut>(Cut::restart(*this, start));
  co_return co_await end_at(std::move(cut), epoch);
}

asio::awaitable<Result<void>> LocalLog::end_at(std::shared_ptr<Cut> cut, LeaderEpoch epoch) {
  Result<void> done;
  const auto look = [&] { done = cut->look(); };
  co_await disk_->executor.run(look);
  MQ_CO_TRY_VOID(done);
  if (failure()) co_return failure();
  // The log stays as it is until the record is durable, which may take a recovery point of ours.
  const Offset old_end = end_.offset;
  const bool early = MQ_MUTANT("cut_holds_syncs_back_early");
  if (early) flusher_->expect_image(*sync_);
  auto wait = std::make_shared<JournalWait>(*spec_.worker);
  journal_->note(journal_log_, cut->record(epoch), JournalWait::done(wait));
  const auto recorded = co_await JournalWait::until_durable(wait);
  MQ_CO_TRY_VOID(recorded);
  if (failure()) co_return failure();
  // LOG-12: from here on the log ends there, or the disk fails.
  if (!early)
    flusher_->expect_image(*sync_);  // holds syncs back: a recovery point would say that it is done
  ++cuts_;
  forget_above(*cut);
  Result<RecoveredProducers> producers = make_error_code(StorageErrc::closed);
  std::vector<Offset> snapshots(snapshots_.begin(), snapshots_.end());
  if (cut->anew) snapshots.clear();
  const auto carry_out = [&] {
    done = cut->carry_out();
    if (!done) return disk_->fail("cut", directory_, done.error());
    producers = cut->find_producers(log_start_, std::move(snapshots));
  };
  co_await disk_->executor.run(carry_out);
  if (failure()) co_return failure();
  if (!producers || !producers->problem.empty()) {
    failure_ = StorageErrc::partition_corrupt;
    changed();
    co_return failure();
  }
  producers_ = std::move(producers->table);
  last_batch_ = producers->last_batch;
  snapshots_.assign(producers->snapshots.begin(), producers->snapshots.end());
  snapshot_position_ = end_.position;
  cut_pending_ = true;
  const auto finished = co_await finish_cut();
  if (failure()) co_return failure();
  if (!finished) spec_.worker->spawn("storage cut", finish_cut_later(shared_from_this()));
  base::log_warning("storage", "partition {} ({}): {} from offset {} to {} by epoch {}",
                    spec_.id.text(), spec_.topic_name, cut->anew ? "begun anew" : "cut back",
                    old_end, end_.offset, epoch);
  changed();
  co_return Result<void>();
}

/// The checkpoint first, before the journal may forget the cut; then that it is done in the files.
asio::awaitable<Result<void>> LocalLog::finish_cut() {
  MQ_CO_TRY_VOID(co_await persist_());
  JournalContent point = JournalRecoveryPoint{end_};
  const auto noted = co_await journaled(point);
  MQ_CO_TRY_VOID(noted);
  flusher_->image_written(sync_);
  cut_pending_ = false;
  co_return Result<void>();
}

/// On a full disk. Until then appends are refused, which they are there anyway.
asio::awaitable<void> LocalLog::finish_cut_later(std::shared_ptr<LocalLog> self) {
  const Visit visit(*self);
  while (self->cut_pending_ && !self->failure() && !self->stopping_) {
    co_await self->wake_.wait_until(self->spec_.worker->now() + kFinishCutAgain);
    if (self->failure() || self->stopping_) co_return;
    static_cast<void>(co_await self->finish_cut());
  }
}

/// What the log knows in memory ends at the cut.
void LocalLog::forget_above(const Cut& cut) {
  const Offset to = cut.point.offset;
  while (!sealed_.empty() && (cut.anew || sealed_.back().base >= cut.base)) {
    sealed_bytes_ -= sealed_.back().bytes;
    std::erase(open_sealed_, sealed_.back().base);
    sealed_.pop_back();
  }
  const bool same = cut.base == end_.segment_base;
  if (!same) written_behind_ = cut.point.position;
  written_behind_ = std::min(written_behind_, cut.point.position);
  allocated_ = cut.point.position;
  active_ = cut.file;
  active_index_ = cut.index;
  active_times_ = cut.times;
  active_index_from_ = 0;
  active_head_index_ = nullptr;
  active_head_times_ = nullptr;
  end_ = whole_ = synced_ = cut.point;
  confirmed_ = cut.anew ? to : std::min(confirmed_, to);
  if (cut.anew) {
    log_start_ = wanted_start_ = to;
    expired_.clear();
    epoch_starts_.clear();
    if (recent_high_watermark_hint() >= Offset(0)) set_high_watermark_hint(to);
  }
  recent_bytes_.store(bytes_on_disk(), std::memory_order_relaxed);
  imaged_block_ = image_ahead_ = ~std::uint64_t{0};
  std::erase_if(epoch_starts_, [&](const EpochStart& start) { return start.start_offset >= to; });
  const auto newest = epoch_starts_.empty() ? LeaderEpoch(-1) : epoch_starts_.back().leader_epoch;
  if (newest < leader_epoch_) epoch_starts_.push_back({leader_epoch_, to});
  tail_.clear();
  cursors_.fill({});
  disk_->read_ahead.forget(this);
  std::erase_if(damage_, [&](const auto& known) { return cut.anew || known.first >= cut.base; });
  write_damage_down();
  disk_->write_behind->settled(*dirty_, dirty_->appended.load());
  flusher_->cut(*sync_, end_, active_, cuts_);
  if (cut.anew) flusher_->set_log_start(*sync_, to);
  flusher_->set_epoch_starts(*sync_, epoch_starts_);
}

}  // namespace mq::storage
