#include "storage/flusher.h"

#include <algorithm>

#include "base/mutants.h"

namespace mq::storage {

void Flusher::request(const std::shared_ptr<LogSync>& log, const SyncPoint& end) {
  {
    std::lock_guard lock(mutex_);
    if (log->closed_) return;
    log->target_ = end;
    if (!log->queued_) {
      log->queued_ = true;
      queue_.push_back(log);
    }
    if (round_running_) return;
    round_running_ = true;
  }
  submit_round();
}

void Flusher::rolled(LogSync& log, const SealedSegment& finished,
                     std::shared_ptr<base::File> active, const SyncPoint& start) {
  std::lock_guard lock(mutex_);
  log.target_ = start;
  log.sealing_.push_back({std::move(log.active_), finished});
  log.active_ = std::move(active);
  log.directory_changed_ = true;
}

void Flusher::set_log_start(LogSync& log, model::Offset log_start_offset) {
  std::lock_guard lock(mutex_);
  log.reached_.log_start_offset = log_start_offset;
  std::erase_if(log.reached_.sealed, [&](const SealedSegment& segment) {
    return segment.base_offset < log_start_offset;
  });
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
  std::erase_if(queue_, [&](const auto& queued) { return queued.get() == &log; });
}

bool Flusher::syncing(const LogSync& log) const {
  std::lock_guard lock(mutex_);
  return log.syncing_;
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
  std::vector<std::shared_ptr<LogSync>> logs;
  {
    std::lock_guard lock(mutex_);
    logs.swap(queue_);
  }
  for (const auto& log : logs) {
    // REC-5: after a failed sync nothing is synced again, and nothing counts as durable.
    if (disk_->failed()) break;
    auto job = take_job(log);
    if (!job) continue;
    const bool synced = sync(*job).has_value();
    finish(*job, synced);
  }
  {
    std::lock_guard lock(mutex_);
    round_running_ = !queue_.empty() && !disk_->failed();
    if (!round_running_) return;
  }
  submit_round();
}

std::optional<Flusher::Job> Flusher::take_job(const std::shared_ptr<LogSync>& log) {
  std::lock_guard lock(mutex_);
  log->queued_ = false;
  if (log->closed_) return std::nullopt;
  log->syncing_ = true;
  Job job{log, log->target_, log->active_, std::move(log->sealing_),
          std::exchange(log->directory_changed_, false)};
  log->sealing_.clear();
  return job;
}

Result<void> Flusher::sync(const Job& job) {
  const std::string& directory = job.log->directory_;
  for (const auto& sealing : job.sealing) {
    // Gives back what was allocated ahead of need.
    if (const auto trimmed = sealing.file->truncate(sealing.segment.bytes); !trimmed) {
      disk_->fail("ftruncate", directory, trimmed.error());
      return trimmed;
    }
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
    if (synced) {
      LogCheckpoint& reached = job.log->reached_;
      reached.recovery_point = job.target;
      ++progress_.changes;
      progress_.rolls += job.sealing.size();
      for (const auto& sealing : job.sealing) {
        if (sealing.segment.base_offset >= reached.log_start_offset)
          reached.sealed.push_back(sealing.segment);
      }
    }
  }
  if (synced && !job.sealing.empty()) disk_->note_sealed();
  const auto end = synced ? std::optional(job.target) : std::nullopt;
  auto& worker = job.log->worker_;
  worker.post([log = std::move(job.log), end] { log->ended_(end); });
}

}  // namespace mq::storage
