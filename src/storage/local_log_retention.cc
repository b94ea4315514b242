#include <algorithm>

#include "base/log.h"
#include "storage/checked_clock.h"
#include "storage/local_log.h"
#include "storage/log_files.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

/// Pause between two removals, so that a large clean-up does not hold up the disk's other work.
constexpr auto kRemovalPause = std::chrono::milliseconds(5);

}  // namespace

asio::awaitable<void> LocalLog::apply_retention() {
  if (failure() || stopping_ || retaining_) co_return;
  const Visit visit(*this);
  retaining_ = true;
  const auto now_ms = retention_time_ms();
  if (now_ms) co_await roll_if_old(*now_ms);
  const Offset expired = co_await find_new_start(now_ms);
  const Offset new_start = std::max(expired, wanted_start_);
  const bool allowed = disk_->counters.invariant(new_start <= confirmed_, "LOG-10", directory_);
  // Without success it is tried again in the next pass.
  if (new_start > log_start_ && allowed && !failure())
    static_cast<void>(co_await raise_durably(new_start));
  if (!expired_.empty()) co_await remove_expired();
  end_retaining();
}

void LocalLog::end_retaining() {
  retaining_ = false;
  wake_.notify_all();
}

asio::awaitable<Result<void>> LocalLog::trim(Offset to) {
  MQ_CO_TRY_VOID(check_readable(log_start_));
  const Visit visit(*this);
  while (retaining_ && !failure() && !stopping_) co_await wake_.wait();
  MQ_CO_TRY_VOID(check_readable(log_start_));
  if (stopping_) co_return make_error_code(StorageErrc::closed);
  if (to > confirmed_) co_return make_error_code(StorageErrc::offset_out_of_range);  // LOG-10
  if (to <= log_start_) co_return Result<void>();
  retaining_ = true;
  // So that everything below can go: only what is not written any more is removed.
  if (to == end_.offset) static_cast<void>(co_await roll_idle());
  const auto raised = co_await raise_durably(to);
  if (raised) {
    base::log_info("storage", "partition {} ({}): trimmed, log start is now {}", spec_.id.text(),
                   spec_.topic_name, log_start_);
  } else {
    wanted_start_ = std::max(wanted_start_, to);
  }
  if (expired_.empty()) {
    end_retaining();
  } else {
    spec_.worker->spawn("storage removal", remove_trimmed(shared_from_this()));
  }
  co_return raised;
}

asio::awaitable<void> LocalLog::remove_trimmed(std::shared_ptr<LocalLog> self) {
  const Visit visit(*self);
  co_await self->remove_expired();
  self->end_retaining();
}

/// LOG-10: the new start is durable before anyone sees it, and before the first file goes; a
/// removal that a crash breaks off is finished by recovery. The recovery point comes first: what
/// lies below it is never cut, so the log does not end below its start after a crash.
asio::awaitable<Result<void>> LocalLog::raise_durably(Offset to) {
  if (failure()) co_return failure();
  // A checkpoint may say already what an earlier try could not finish.
  to = std::max(to, wanted_start_);
  const Offset kept = segment_of(to);
  while (!synced_past(to, kept)) {
    if (stopping_) co_return make_error_code(StorageErrc::closed);
    flusher_->request(sync_, end_);
    co_await wake_.wait();
    if (failure()) co_return failure();
  }
  wanted_start_ = to;
  flusher_->set_log_start(*sync_, to);
  // The checkpoint first, which names the recovery point: it lies above all that may go.
  MQ_CO_TRY_VOID(co_await persist_());
  const JournalContent start = JournalLogStart{to};
  const auto noted = co_await journaled(start);
  MQ_CO_TRY_VOID(noted);
  if (failure()) co_return failure();
  raise_log_start(to);
  co_return Result<void>();
}

/// The recovery point has reached `to` and left the segments before `kept`.
bool LocalLog::synced_past(Offset to, Offset kept) const {
  const SyncPoint reached = flusher_->recovery_point(*sync_);
  return reached.offset >= to && reached.segment_base >= kept;
}

/// The base of the segment that holds `offset`, or will.
Offset LocalLog::segment_of(Offset offset) const {
  const auto found = std::ranges::upper_bound(sealed_, offset, {}, &Sealed::end);
  return found == sealed_.end() ? end_.segment_base : found->base;
}

std::vector<FinishedSegment> LocalLog::finished_segments() const {
  std::vector<FinishedSegment> finished;
  if (failure()) return finished;
  const Offset synced = flusher_->recovery_point(*sync_).segment_base;
  for (const auto& sealed : sealed_) {
    if (sealed.end <= synced) finished.push_back({sealed.base, log_start_, sealed.bytes});
  }
  return finished;
}

/// LOG-14. Nothing: nothing is known to be old.
std::optional<std::int64_t> LocalLog::retention_time_ms() const {
  const auto* const clock = disk_->config.clock;
  return clock ? clock->retention_time_ms(*spec_.worker) : spec_.worker->wall_clock_ms();
}

asio::awaitable<Offset> LocalLog::find_new_start(std::optional<std::int64_t> now_ms) {
  Offset new_start = log_start_;
  std::uint64_t bytes_behind = bytes_on_disk();
  // Only this coroutine takes segments from the front, so the place stays right over a suspension.
  for (std::size_t i = 0; i < sealed_.size(); ++i) {
    const bool by_age = now_ms && spec_.settings.retention_age.count() > 0;
    if (sealed_[i].last_append_time_ms < 0 && by_age) {
      const auto loaded = co_await load_append_time(sealed_[i].base);
      if (!loaded) break;
    }
    bytes_behind -= sealed_[i].bytes;
    if (failure() || !is_expired(sealed_[i], bytes_behind, now_ms)) break;
    new_start = sealed_[i].end;
  }
  co_return new_start;
}

/// So that the data of a topic nobody writes to any more gets old enough to go.
asio::awaitable<void> LocalLog::roll_if_old(std::int64_t now_ms) {
  if (end_.position == 0) co_return;
  const std::int64_t retention_ms = spec_.settings.retention_age.count();
  const bool old = now_ms - end_.segment_first_append_time_ms >= segment_age_ms_max();
  const bool all_expired = retention_ms > 0 && now_ms - end_.append_time_ms >= retention_ms;
  if (!old && !all_expired) co_return;
  const auto rolled = co_await roll_idle();
  if (!rolled && !failure())
    base::log_warning("storage", "partition {} ({}): cannot start a new segment: {}",
                      spec_.id.text(), spec_.topic_name, rolled.error().message());
}

bool LocalLog::is_expired(const Sealed& sealed, std::uint64_t bytes_behind,
                          std::optional<std::int64_t> now_ms) const {
  // Only what is durable and confirmed goes, so that the recovery point and the high watermark stay
  // inside the log.
  if (flusher_->recovery_point(*sync_).segment_base < sealed.end || sealed.end > confirmed_)
    return false;
  if (retention_limit_ != Offset() && sealed.end > retention_limit_) return false;
  const auto& settings = spec_.settings;
  if (now_ms && settings.retention_age.count() > 0 &&
      *now_ms - sealed.last_append_time_ms >= settings.retention_age.count())
    return true;
  // What stays is never less than the limit, so the newest records are in it.
  return settings.retention_bytes > 0 && bytes_behind >= settings.retention_bytes;
}

void LocalLog::raise_log_start(Offset new_start) {
  while (!sealed_.empty() && sealed_.front().end <= new_start) {
    const Sealed& gone = sealed_.front();
    expired_.push_back({gone.base, gone.bytes});
    sealed_bytes_ -= gone.bytes;
    std::erase(open_sealed_, gone.base);
    damage_.erase(gone.base);
    sealed_.pop_front();
  }
  log_start_ = new_start;
  // The file is damaged still, but nobody is given what lies there.
  std::erase_if(damage_, [&](const auto& known) {
    return known.second.end != Offset() && known.second.end <= new_start;
  });
  write_damage_down();
  recent_bytes_.store(bytes_on_disk(), std::memory_order_relaxed);
  auto first = std::ranges::upper_bound(epoch_starts_, new_start, {}, &EpochStart::start_offset);
  if (first != epoch_starts_.begin()) --first;  // the epoch in which the first record was written
  epoch_starts_.erase(epoch_starts_.begin(), first);
  flusher_->set_epoch_starts(*sync_, epoch_starts_);
  forget_producers_below(new_start);
  changed();
}

asio::awaitable<Result<void>> LocalLog::load_append_time(Offset base) {
  ReadPlan wanted;
  const Sealed* sealed = find_sealed(base);
  wanted.base = base;
  wanted.bytes = wanted.index_bytes = sealed->bytes;
  wanted.needs_index = true;
  Result<SegmentIndex> found = make_error_code(StorageErrc::closed);
  const auto work = [this, &found, base, bytes = sealed->bytes] {
    found = find_segment_index(indexed(base, bytes, true, nullptr));
  };
  co_await disk_->executor.run(work);
  if (!found) co_return report_damage(wanted, found.error());
  if (Sealed* still = find_sealed(base); still && still->base == base)
    still->last_append_time_ms = found->last_append_time_ms;
  co_return Result<void>();
}

asio::awaitable<void> LocalLog::remove_expired() {
  while (!expired_.empty() && !failure()) {
    const ExpiredSegment segment = expired_.front();
    Result<void> removed;
    const auto work = [this, &removed, base = segment.base] {
      static_cast<void>(remove_segment_caches(disk_->files, directory_, base));
      removed = disk_->files.remove_file(path_of(segment_file_name(base)));
    };
    co_await disk_->executor.run(work);
    if (!removed && removed.error() != make_error_code(base::BaseErrc::not_found)) co_return;
    expired_.erase(expired_.begin());
    const Offset start = expired_.empty() ? log_start_ : expired_.front().base;
    base::log_info("storage", "partition {} ({}): removed {} ({} bytes), log start is now {}",
                   spec_.id.text(), spec_.topic_name, segment_file_name(segment.base),
                   segment.bytes, start);
    disk_->counters.get("storage_segments_expired_total").add();
    if (!expired_.empty()) co_await spec_.worker->sleep_for(kRemovalPause);
  }
}

}  // namespace mq::storage
