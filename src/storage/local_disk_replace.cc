#include <algorithm>

#include "base/log.h"
#include "storage/local_disk.h"
#include "storage/log_files.h"
#include "storage/sound_segments.h"

namespace mq::storage {

using model::Offset;
using model::PartitionId;

/// What is left of a damaged log.
struct LocalDisk::Remains {
  Remains(base::FileSystem& files, const std::string& directory, Offset start)
      : sound(files, directory, start), log_start(start) {}

  SoundSegments sound;
  const Offset log_start;
  /// Something of it can stay. Not so without its beginning: the log would begin later than its
  /// leader's, and as a leader take along what the others have there.
  [[nodiscard]] bool any() const {
    return sound.begin() <= log_start && sound.end().offset > log_start;
  }
};

Result<void> LocalDisk::may_replace(const PartitionId& id) const {
  if (state_->failed()) return StorageErrc::disk_failed;
  if (stopping_ || giving_up_deletions_) return StorageErrc::closed;
  if (!logs_.contains(id)) return StorageErrc::not_found;
  if (state_->full()) return StorageErrc::storage_full;
  return {};
}

/// REC-10: what is durable after each step is a log that is damaged (its directory, or its end, is
/// missing), or one that begins or goes on anew and may be missing something.
asio::awaitable<Result<Offset>> LocalDisk::replace_damaged(LogSpec spec, Offset start, Keep keep) {
  MQ_CO_TRY_VOID(may_replace(spec.id));
  const LogPtr old = logs_.at(spec.id);
  if (old->sync_state() && !kept_.contains(spec.id))
    kept_[spec.id] = flusher_->reached(*old->sync_state());
  co_await close_log(old);
  MQ_CO_TRY_VOID(may_replace(spec.id));
  const auto known = kept_.find(spec.id);
  const auto log_start = known == kept_.end() ? Offset(0) : known->second.log_start_offset;
  Remains remains(state_->files, path_of(spec.id.text()), log_start);
  if (keep == Keep::sound_segments) {
    MQ_CO_TRY_VOID(co_await look_for_remains(remains));
  }
  if (!remains.any()) {
    MQ_CO_TRY_VOID(co_await replace_all(spec, start));
    co_return start;
  }
  MQ_CO_TRY_VOID(co_await replace_end(spec, remains));
  co_return remains.sound.end().offset;
}

/// Behind all readers, as a scrub.
asio::awaitable<Result<void>> LocalDisk::look_for_remains(Remains& remains) {
  while (!remains.sound.ended()) {
    Result<void> looked;
    const auto work = [&] { looked = remains.sound.work(); };
    co_await state_->cold_reads->background().run(work);
    if (!looked) {
      state_->fail("read", state_->path, looked.error());
      co_return make_error_code(StorageErrc::disk_failed);
    }
    if (state_->failed()) co_return make_error_code(StorageErrc::disk_failed);
    if (stopping_ || giving_up_deletions_) co_return make_error_code(StorageErrc::closed);
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> LocalDisk::replace_all(LogSpec spec, Offset start) {
  MQ_CO_TRY_VOID(co_await put_directory_away(spec.id));
  MQ_CO_TRY_VOID(co_await record_replaced(spec, start));
  RecoverySpec wanted;
  wanted.id = spec.id;
  wanted.topic_name = spec.topic_name;
  wanted.directory = path_of(spec.id.text());
  wanted.start = start;
  Result<RecoveredLog> made = make_error_code(StorageErrc::closed);
  const auto work = [&] {
    auto logs = create_log_files(*state_, std::span(&wanted, 1));
    if (logs)
      made = std::move(logs->front());
    else
      made = logs.error();
  };
  co_await state_->executor.run(work);
  const auto served = co_await serve_replacement(std::move(spec), std::move(made));
  co_return served;
}

/// What stays is opened as a start would: behind it nothing was ever written.
asio::awaitable<Result<void>> LocalDisk::replace_end(LogSpec spec, Remains& remains) {
  MQ_CO_TRY_VOID(co_await put_end_away(spec.id, remains));
  MQ_CO_TRY_VOID(co_await record_end(spec, remains));
  RecoverySpec wanted;
  wanted.id = spec.id;
  wanted.topic_name = spec.topic_name;
  wanted.directory = path_of(spec.id.text());
  auto& known = wanted.checkpoint.emplace();
  known.id = spec.id;
  known.log_start_offset = remains.log_start;
  known.recovery_point = remains.sound.end();
  known.sealed = remains.sound.segments();
  known.epoch_starts = remains.sound.epoch_starts();
  Result<RecoveredLog> made = make_error_code(StorageErrc::closed);
  const auto work = [&] {
    made = recover_log(*state_, wanted);
    if (!made) state_->fail("recovery", wanted.directory, made.error());
  };
  co_await state_->executor.run(work);
  const auto served = co_await serve_replacement(std::move(spec), std::move(made));
  co_return served;
}

/// Something was moved to `kept`, or nothing was there (empty).
Result<void> LocalDisk::moved_away(const PartitionId& id, const Result<std::string>& kept) {
  if (kept) {
    measure_aside_at_ = {};
    if (!kept->empty())
      base::log_warning("storage", "disk {}: damaged {} is kept as {}", state_->path, id.text(),
                        *kept);
    return {};
  }
  if (kept.error() == make_error_code(base::BaseErrc::no_space)) return StorageErrc::storage_full;
  state_->fail("rename", path_of(id.text()), kept.error());
  return StorageErrc::disk_failed;
}

asio::awaitable<Result<void>> LocalDisk::put_directory_away(PartitionId id) {
  Result<std::string> kept = make_error_code(StorageErrc::closed);
  const auto work = [&] {
    auto& files = state_->files;
    const auto there = files.exists(path_of(id.text()));
    if (!there) {
      kept = there.error();
    } else if (!*there) {
      kept = std::string();
    } else {
      kept = put_away(files, state_->path, id.text());
    }
  };
  co_await state_->executor.run(work);
  co_return moved_away(id, kept);
}

asio::awaitable<Result<void>> LocalDisk::put_end_away(PartitionId id, Remains& remains) {
  Result<std::string> kept = make_error_code(StorageErrc::closed);
  const auto work = [&] {
    const auto& sound = remains.sound;
    const auto beginning = sound.beginning() ? sound.beginning()->bytes : 0;
    kept = put_segments_away(state_->files, state_->path, id.text(), sound.others(),
                             sound.end().offset, beginning);
  };
  co_await state_->executor.run(work);
  co_return moved_away(id, kept);
}

/// The journal may not know the log at all.
void LocalDisk::begin_record(const LogSpec& spec) {
  const auto durability = spec.settings.durability;
  replicas_[spec.id] = {broker_epoch_, durability == model::Durability::memory};
  journal_->note(spec.id, JournalCreate{durability, broker_epoch_});
}

asio::awaitable<Result<void>> LocalDisk::record_replaced(LogSpec spec, Offset start) {
  JournalRestart restart;
  restart.start.offset = restart.start.segment_base = start;
  restart.start.leader_epoch = restart.epoch = model::LeaderEpoch(-1);
  restart.intact_since = broker_epoch_;
  begin_record(spec);
  journal_->note(spec.id, restart);
  co_return co_await journal_settled();
}

/// As a cut that is not done in the files: an older checkpoint goes by it, too.
asio::awaitable<Result<void>> LocalDisk::record_end(LogSpec spec, const Remains& remains) {
  const SyncPoint end = remains.sound.end();
  begin_record(spec);
  journal_->note(spec.id, JournalLogStart{remains.log_start});
  journal_->note(spec.id, JournalRecoveryPoint{end});
  journal_->note(spec.id, JournalCut{end, end.leader_epoch});
  co_return co_await journal_settled();
}

asio::awaitable<Result<void>> LocalDisk::serve_replacement(LogSpec spec,
                                                           Result<RecoveredLog> made) {
  if (!made) co_return made.error();
  MQ_CO_TRY_VOID(may_replace(spec.id));
  if (made->failure) co_return made->failure;
  MQ_CO_TRY(auto log, open_log(spec, std::move(*made)));
  // What was confirmed of what is left stays confirmed.
  const auto confirmed = logs_.at(spec.id)->recent_high_watermark_hint();
  log->set_high_watermark_hint(std::min(confirmed, log->log_end_offset()));
  logs_[spec.id] = log;
  kept_.erase(spec.id);
  kept_states_.erase(spec.id);
  forget_damage(spec.id);
  auto written = co_await checkpoint_.write();
  if (written) {
    auto recording = log->record_recovered();
    written = co_await run_on(log->worker(), std::move(recording));
  }
  if (written) co_return written;
  // Without the record the next start would cut it again: it is not served.
  co_await close_log(log);
  co_return written;
}

}  // namespace mq::storage
