#include "storage/flusher.h"

#include <algorithm>
#include <tuple>

#include "base/mutants.h"
#include "storage/journal_format.h"

namespace mq::storage {
namespace {

/// From so many logs on one sync of the whole file system costs less than one for each file.
constexpr std::size_t kTogetherFrom = 16;
/// Logs of one step: as few as still pay for the file system's own writes, and more as long as a
/// step holds others up for a moment only. Where so many take no longer there is no head to move.
constexpr std::size_t kStepLogsMin = 16;
constexpr std::size_t kStepLogsMax = 4096;
constexpr std::size_t kNoHeadFrom = 256;
constexpr auto kShortStep = std::chrono::milliseconds(40);
constexpr auto kLongStep = std::chrono::milliseconds(250);
/// And so many bytes, or one log.
constexpr std::uint64_t kStepBytes = std::uint64_t{8} << 20;
/// A log with so much to write has it written before its step begins, since in the step nothing is
/// appended to it. With less, that would cost a seek more and save nothing.
constexpr std::uint64_t kWriteFirst = std::uint64_t{1} << 20;

bool is_behind(const SyncPoint& point, const SyncPoint& other) {
  return std::tie(point.offset, point.segment_base, point.position) <
         std::tie(other.offset, other.segment_base, other.position);
}

}  // namespace

Flusher::Flusher(std::shared_ptr<DiskState> disk)
    : disk_(std::move(disk)),
      syncs_(disk_->counters.get("storage_syncs_total")),
      steps_(disk_->counters.get("storage_sync_steps_total")),
      step_logs_(kStepLogsMin) {}

Result<void> Flusher::hold(const std::string& path) {
  MQ_TRY(held_, disk_->files.open(path, base::OpenMode::read));
  return {};
}

/// By a file in which nothing is ever written, so that the file system has nothing to add.
void Flusher::empty_cache() {
  if (held_ && !disk_->failed()) static_cast<void>(sync_file(*held_, disk_->path));
}

void Flusher::request(const std::shared_ptr<LogSync>& log, const SyncPoint& end) {
  request({{log, end}});
}

void Flusher::request(const Wanted& wanted) {
  std::unique_lock lock(mutex_);
  for (const auto& [log, end] : wanted) {
    if (log->closed_) continue;
    // A request from another thread may be older than the log's newest segment.
    if (is_behind(log->target_, end)) log->target_ = end;
    queue_locked(log);
  }
  begin_round_if_wanted(std::move(lock));
}

void Flusher::request_without_hurry(const Wanted& wanted) {
  std::unique_lock lock(mutex_);
  for (const auto& [log, end] : wanted) {
    if (log->closed_) continue;
    if (is_behind(log->target_, end)) log->target_ = end;
    if (std::exchange(log->queued_for_step_, true)) continue;
    without_hurry_.push_back(log);
  }
  begin_round_if_wanted(std::move(lock));
}

void Flusher::begin_round_if_wanted(std::unique_lock<std::mutex> lock) {
  if (round_running_ || (queue_.empty() && without_hurry_.empty())) return;
  round_running_ = true;
  lock.unlock();
  submit_round();
}

void Flusher::queue_locked(const std::shared_ptr<LogSync>& log) {
  if (log->queued_) return;
  log->queued_ = true;
  queue_.push_back(log);
}

void Flusher::hurry() {
  std::lock_guard lock(mutex_);
  hurry_ = true;
  step_logs_ = kStepLogsMax;
}

void Flusher::expect_image(LogSync& log) {
  std::lock_guard lock(mutex_);
  ++log.images_;
}

void Flusher::image_written(const std::shared_ptr<LogSync>& log) {
  std::unique_lock lock(mutex_);
  if (--log->images_ > 0 || !log->wants_sync_ || log->closed_) return;
  log->wants_sync_ = false;
  queue_locked(log);
  begin_round_if_wanted(std::move(lock));
}

std::uint64_t Flusher::syncs_begun(const LogSync& log) const noexcept {
  return log.syncs_begun_.load(std::memory_order_acquire);
}

std::uint64_t Flusher::claimed(const LogSync& log) const noexcept {
  return log.claimed_.load(std::memory_order_acquire);
}

void Flusher::rolled(LogSync& log, const SealedSegment& finished,
                     std::shared_ptr<base::File> active, const SyncPoint& start) {
  std::lock_guard lock(mutex_);
  log.target_ = start;
  log.claimed_.store(start.position, std::memory_order_release);
  log.sealing_.push_back({std::move(log.active_), finished});
  log.active_ = std::move(active);
  log.directory_changed_ = true;
}

void Flusher::cut(LogSync& log, const SyncPoint& end, std::shared_ptr<base::File> active,
                  std::uint64_t cuts) {
  std::lock_guard lock(mutex_);
  log.cuts_ = cuts;
  log.target_ = end;
  log.claimed_.store(end.position, std::memory_order_release);
  log.active_ = std::move(active);
  log.sealing_.clear();
  log.directory_changed_ = false;
  LogCheckpoint& reached = log.reached_;
  reached.recovery_point = end;
  std::erase_if(reached.sealed, [&](const SealedSegment& segment) {
    return segment.base_offset >= end.segment_base;
  });
  std::erase_if(reached.epoch_starts,
                [&](const EpochStart& start) { return start.start_offset >= end.offset; });
  ++progress_.changes;
}

void Flusher::set_log_start(LogSync& log, model::Offset log_start_offset) {
  std::lock_guard lock(mutex_);
  // LOG-10: a higher one that found no space may stand in a checkpoint already, and the segments
  // below it are not known here any more.
  auto& start = log.reached_.log_start_offset;
  start = std::max(start, log_start_offset);
  drop_trimmed(log.reached_);
  ++progress_.changes;
}

void Flusher::set_epoch_starts(LogSync& log, std::vector<EpochStart> epoch_starts) {
  std::lock_guard lock(mutex_);
  log.reached_.epoch_starts = std::move(epoch_starts);
  ++progress_.changes;
}

void Flusher::close(LogSync& log) {
  std::lock_guard lock(mutex_);
  log.closed_ = true;
  const auto is_it = [&](const auto& queued) { return queued.get() == &log; };
  std::erase_if(queue_, is_it);
  std::erase_if(without_hurry_, is_it);
}

bool Flusher::syncing(const LogSync& log) const {
  std::lock_guard lock(mutex_);
  return log.syncing_;
}

SyncPoint Flusher::recovery_point(const LogSync& log) const {
  std::lock_guard lock(mutex_);
  return log.reached_.recovery_point;
}

bool Flusher::awaits_image(const LogSync& log) const {
  std::lock_guard lock(mutex_);
  return log.images_ > 0;
}

LogCheckpoint Flusher::reached(const LogSync& log) const {
  std::lock_guard lock(mutex_);
  LogCheckpoint reached = log.reached_;
  std::erase_if(reached.epoch_starts, [&](const EpochStart& start) {
    return start.start_offset >= reached.recovery_point.offset;
  });
  return reached;
}

Flusher::Progress Flusher::progress() const {
  std::lock_guard lock(mutex_);
  return progress_;
}

void Flusher::submit_round() {
  disk_->executor.submit([self = shared_from_this()] { self->run_round(); });
}

void Flusher::run_round() {
  LogSyncs logs;
  LogSyncs step;
  bool is_prepared = false;
  {
    std::lock_guard lock(mutex_);
    put_off_locked();
    logs.swap(queue_);
    step = std::exchange(prepared_, {});
    is_prepared = !step.empty();
    if (!is_prepared) step = take_step_locked();
  }
  sync_all(logs);
  if (!is_prepared && prepare(step)) return;
  auto jobs = take_jobs(step, true);
  if (jobs.empty()) return end_round();
  begin_step(std::move(jobs));
}

void Flusher::end_round() {
  {
    std::lock_guard lock(mutex_);
    const bool more = !queue_.empty() || !without_hurry_.empty() || !prepared_.empty();
    round_running_ = more && !disk_->failed();
    if (!round_running_) return;
  }
  submit_round();
}

/// Many at once go in steps too, where there is a head, but first.
void Flusher::put_off_locked() {
  if (hurry_ || queue_.size() < kTogetherFrom || step_logs_ >= kNoHeadFrom) return;
  for (auto log = queue_.rbegin(); log != queue_.rend(); ++log) {
    (*log)->queued_ = false;
    if (!std::exchange((*log)->queued_for_step_, true)) without_hurry_.push_front(*log);
  }
  queue_.clear();
}

void Flusher::sync_all(const LogSyncs& logs) {
  auto jobs = take_jobs(logs, false);
  if (jobs.size() >= kTogetherFrom && held_) {
    const bool synced = !disk_->failed() && sync_together(jobs).has_value();
    for (auto& job : jobs) finish(job, synced);
    return;
  }
  for (auto& job : jobs) {
    // REC-5: after a failed sync nothing is synced again, and nothing counts as durable.
    const bool synced = !disk_->failed() && sync(job).has_value();
    finish(job, synced);
  }
}

Flusher::LogSyncs Flusher::take_step_locked() {
  LogSyncs step;
  std::uint64_t bytes = 0;
  while (step.size() < step_logs_ && !without_hurry_.empty()) {
    bytes += without_hurry_.front()->dirty_->now();
    if (!step.empty() && bytes > kStepBytes && step_logs_ < kNoHeadFrom) break;
    step.push_back(std::move(without_hurry_.front()));
    without_hurry_.pop_front();
    step.back()->queued_for_step_ = false;
  }
  return step;
}

/// Has written what there is much of before the step begins, in turn with those who read; what
/// is in a hurry comes in between. False: there is nothing of the kind.
bool Flusher::prepare(const LogSyncs& step) {
  auto stretches = stretches_before(step);
  if (stretches.empty() || disk_->failed()) return false;
  const bool by_turns = disk_->cold_reads->takes_turns();
  auto write = [self = shared_from_this(), stretches = std::move(stretches), step, by_turns] {
    self->write_back(stretches);
    if (by_turns) self->empty_cache();
    {
      std::lock_guard lock(self->mutex_);
      self->prepared_ = step;
    }
    self->submit_round();
  };
  disk_->writers_turn().submit(std::move(write));
  return true;
}

/// Whole blocks above the recovery point only: no sync that is done or under way has to do with
/// them, so no power cut in the middle of writing one takes anything that counts as synced.
std::vector<Flusher::Stretch> Flusher::stretches_before(const LogSyncs& step) const {
  std::vector<Stretch> stretches;
  std::lock_guard lock(mutex_);
  if (hurry_ || step_logs_ >= kNoHeadFrom) return stretches;
  for (const auto& log : step) {
    if (log->closed_ || log->dirty_->now() < kWriteFirst) continue;
    const SyncPoint& reached = log->reached_.recovery_point;
    const auto add = [&](const std::shared_ptr<base::File>& file, model::Offset base,
                         std::uint64_t upto) {
      const std::uint64_t from = base == reached.segment_base ? reached.position : 0;
      const std::uint64_t first =
          (from + kJournalBlockBytes - 1) / kJournalBlockBytes * kJournalBlockBytes;
      const std::uint64_t end = journal_block_of(upto);
      if (file && first < end) stretches.push_back({file, first, end - first, log->directory_});
    };
    for (const auto& sealing : log->sealing_)
      add(sealing.file, sealing.segment.base_offset, sealing.segment.bytes);
    add(log->active_, log->target_.segment_base, log->target_.position);
  }
  return stretches;
}

std::vector<Flusher::Stretch> Flusher::stretches_of(const std::vector<Job>& jobs) {
  std::vector<Stretch> stretches;
  for (const auto& job : jobs) {
    for (const auto& sealing : job.sealing)
      stretches.push_back({sealing.file, 0, sealing.segment.bytes, job.log->directory_});
    const auto from = job.active_from();
    if (job.active && from < job.target.position)
      stretches.push_back({job.active, from, job.target.position - from, job.log->directory_});
  }
  return stretches;
}

/// False: the disk has failed.
bool Flusher::write_back(const std::vector<Stretch>& stretches) {
  for (const auto& one : stretches) one.file->start_write_back(one.from, one.bytes);
  for (const auto& one : stretches) {
    const auto written = one.file->finish_write_back(one.from, one.bytes);
    if (written) continue;
    disk_->fail("sync_file_range", one.directory, written.error());
    return false;
  }
  return true;
}

/// First all of them go to the disk, which puts them in order; then all are synced at once: the
/// file system commits once for all, and the drive's cache is emptied once.
void Flusher::begin_step(std::vector<Job> jobs) {
  auto step = std::make_shared<Step>();
  step->jobs = std::move(jobs);
  step->began = disk_->home.now();
  step->sound = !disk_->failed();
  if (step->jobs.size() >= kNoHeadFrom && held_) {
    const bool synced = step->sound && sync_together(step->jobs).has_value();
    const auto took = disk_->home.now() - step->began;
    for (auto& job : step->jobs) finish(job, synced);
    note_step(step->jobs.size(), took);
    return end_round();
  }
  step->sound = step->sound && write_back(stretches_of(step->jobs));
  step->left = step->jobs.size();
  for (auto& job : step->jobs)
    disk_->sync_threads.submit(
        [self = shared_from_this(), step, &job] { self->sync_one(*step, job); });
}

void Flusher::sync_one(Step& step, Job& job) {
  const bool synced = step.sound && !disk_->failed() && sync(job).has_value() && !disk_->failed();
  base::Duration::rep none = 0;
  step.waited.compare_exchange_strong(none, (disk_->home.now() - step.began).count());
  finish(job, synced);
  if (step.left.fetch_sub(1) > 1) return;
  note_step(step.jobs.size(), base::Duration(step.waited.load()));
  end_round();
}

void Flusher::note_step(std::size_t logs, base::Duration waited) {
  steps_.add();
  std::lock_guard lock(mutex_);
  if (hurry_) return;
  if (waited > kLongStep) {
    step_logs_ = std::max(step_logs_ / 2, kStepLogsMin);
  } else if (waited < kShortStep && logs >= step_logs_) {
    step_logs_ = std::min(step_logs_ * 2, kStepLogsMax);
  }
}

std::vector<Flusher::Job> Flusher::take_jobs(const LogSyncs& logs, bool step) {
  std::vector<Job> jobs;
  for (const auto& log : logs) {
    auto job = take_job(log, step);
    if (job && job->idle()) {
      finish(*job, true);
    } else if (job) {
      jobs.push_back(*std::move(job));
    }
  }
  return jobs;
}

std::optional<Flusher::Job> Flusher::take_job(const std::shared_ptr<LogSync>& log, bool step) {
  std::lock_guard lock(mutex_);
  log->queued_ = false;
  if (log->closed_) return std::nullopt;
  if (log->images_ > 0) {
    log->wants_sync_ = true;
    return std::nullopt;
  }
  log->syncing_ = true;
  Job job{log,
          log->target_,
          log->reached_.recovery_point,
          log->active_,
          std::move(log->sealing_),
          std::exchange(log->directory_changed_, false),
          log->cuts_,
          log->dirty_->appended.load()};
  log->sealing_.clear();
  if (job.idle()) {
    job.appended = 0;
  } else {
    log->in_step_.store(step, std::memory_order_release);
    log->claimed_.store(job.target.position, std::memory_order_release);
    log->syncs_begun_.fetch_add(1, std::memory_order_release);
  }
  return job;
}

/// Segments and names of all of them at once. The file system reports an error of any of them to
/// the file held open since the start; the device's cache is emptied by the fdatasync behind it
/// (REC-2).
Result<void> Flusher::sync_together(const std::vector<Job>& jobs) {
  for (const auto& job : jobs) {
    MQ_TRY_VOID(trim_sealing(job));
  }
  syncs_.add();
  auto synced = held_->sync_file_system();
  if (!synced && MQ_MUTANT("retry_fsync_after_eio")) synced = held_->sync_file_system();
  if (!synced) {
    disk_->fail("syncfs", disk_->path, synced.error());
    return synced;
  }
  return sync_file(*held_, disk_->path);
}

/// Gives back what was allocated ahead of need.
Result<void> Flusher::trim_sealing(const Job& job) {
  for (const auto& sealing : job.sealing) {
    const auto trimmed = sealing.file->truncate(sealing.segment.bytes);
    if (trimmed) continue;
    disk_->fail("ftruncate", job.log->directory_, trimmed.error());
    return trimmed;
  }
  return {};
}

Result<void> Flusher::sync(const Job& job) {
  const std::string& directory = job.log->directory_;
  MQ_TRY_VOID(trim_sealing(job));
  for (const auto& sealing : job.sealing) {
    MQ_TRY_VOID(sync_file(*sealing.file, directory));
  }
  if (job.active) {
    MQ_TRY_VOID(sync_file(*job.active, directory));
  }
  if (!job.directory_changed) return {};
  const auto synced = disk_->files.sync_directory(directory);
  if (!synced) disk_->fail("fsync", directory, synced.error());
  return synced;
}

Result<void> Flusher::sync_file(base::File& file, const std::string& directory) {
  syncs_.add();
  auto synced = file.sync_data();
  if (!synced && MQ_MUTANT("retry_fsync_after_eio")) synced = file.sync_data();
  if (!synced) disk_->fail("fdatasync", directory, synced.error());
  return synced;
}

void Flusher::finish(Job& job, bool synced) {
  {
    std::lock_guard lock(mutex_);
    job.log->syncing_ = false;
    job.log->in_step_.store(false, std::memory_order_release);
    // What was synced before a cut says nothing about what came after it.
    if (job.cuts != job.log->cuts_) synced = false;
    if (synced) {
      LogCheckpoint& reached = job.log->reached_;
      reached.recovery_point = job.target;
      ++progress_.changes;
      progress_.rolls += job.sealing.size();
      for (const auto& sealing : job.sealing) reached.sealed.push_back(sealing.segment);
      drop_trimmed(reached);
    }
  }
  if (synced) disk_->write_behind->settled(*job.log->dirty_, job.appended);
  if (synced && !job.sealing.empty()) disk_->note_sealed();
  const auto end = synced ? std::optional(job.target) : std::nullopt;
  if (end && job.log->moved_) job.log->moved_(*end, job.cuts);
  auto& worker = job.log->worker_;
  worker.post([log = std::move(job.log), end] { log->ended_(end); });
}

}  // namespace mq::storage
