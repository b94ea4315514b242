#include "base/log.h"
#include "storage/local_disk.h"
#include "storage/log_files.h"

namespace mq::storage {

using model::Offset;
using model::PartitionId;

Result<void> LocalDisk::may_replace(const PartitionId& id) const {
  if (state_->failed()) return StorageErrc::disk_failed;
  if (stopping_) return StorageErrc::closed;
  if (!logs_.contains(id)) return StorageErrc::not_found;
  if (state_->full()) return StorageErrc::storage_full;
  return {};
}

/// REC-10: what is durable after each step is a log that is damaged (its directory is missing), or
/// one that begins anew and may be missing something.
asio::awaitable<Result<void>> LocalDisk::replace_damaged(LogSpec spec, Offset start) {
  MQ_CO_TRY_VOID(may_replace(spec.id));
  const LogPtr old = logs_.at(spec.id);
  if (old->sync_state()) kept_[spec.id] = flusher_->reached(*old->sync_state());
  co_await close_log(old);
  MQ_CO_TRY_VOID(may_replace(spec.id));
  MQ_CO_TRY_VOID(co_await put_directory_away(spec.id));
  MQ_CO_TRY_VOID(co_await record_replaced(spec, start));
  const auto made = co_await make_replacement(spec, start);
  co_return made;
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
  if (kept) {
    if (!kept->empty())
      base::log_warning("storage", "disk {}: damaged {} is kept as {}", state_->path, id.text(),
                        *kept);
    co_return Result<void>();
  }
  if (kept.error() == make_error_code(base::BaseErrc::no_space))
    co_return make_error_code(StorageErrc::storage_full);
  state_->fail("rename", path_of(id.text()), kept.error());
  co_return make_error_code(StorageErrc::disk_failed);
}

/// The journal may not know the log at all.
asio::awaitable<Result<void>> LocalDisk::record_replaced(LogSpec spec, Offset start) {
  JournalRestart restart;
  restart.start.offset = restart.start.segment_base = start;
  restart.start.leader_epoch = restart.epoch = model::LeaderEpoch(-1);
  restart.intact_since = broker_epoch_;
  const auto durability = spec.settings.durability;
  replicas_[spec.id] = {broker_epoch_, durability == model::Durability::memory};
  journal_->note(spec.id, JournalCreate{durability, broker_epoch_});
  journal_->note(spec.id, restart);
  co_return co_await journal_settled();
}

asio::awaitable<Result<void>> LocalDisk::make_replacement(LogSpec spec, Offset start) {
  RecoverySpec wanted;
  wanted.id = spec.id;
  wanted.topic_name = spec.topic_name;
  wanted.directory = path_of(spec.id.text());
  wanted.start = start;
  Result<std::vector<RecoveredLog>> made = make_error_code(StorageErrc::closed);
  const auto work = [&] { made = create_log_files(*state_, std::span(&wanted, 1)); };
  co_await state_->executor.run(work);
  if (!made) co_return made.error();
  MQ_CO_TRY_VOID(may_replace(spec.id));
  MQ_CO_TRY_VOID(serve_replacement(spec, std::move(made->front())));
  const LogPtr log = logs_.at(spec.id);
  auto written = co_await checkpoint_.write();
  if (written) {
    auto recording = log->record_recovered();
    written = co_await run_on(log->worker(), std::move(recording));
  }
  if (written) co_return written;
  // Without the record the next start would empty it again: it is not served.
  co_await close_log(log);
  co_return written;
}

Result<void> LocalDisk::serve_replacement(const LogSpec& spec, RecoveredLog made) {
  MQ_TRY(auto log, open_log(spec, std::move(made)));
  logs_[spec.id] = std::move(log);
  kept_.erase(spec.id);
  kept_states_.erase(spec.id);
  return {};
}

}  // namespace mq::storage
