#include <algorithm>

#include "base/log.h"
#include "base/run_on.h"
#include "storage/batch_scanner.h"
#include "storage/local_disk_recovery.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;
using model::PartitionId;

/// Its confirmed ends may have counted before they were durable.
bool counts_as_memory(const JournalLogState& state) {
  const Offset durable = std::max(state.durable, state.recovery_point.offset);
  return state.durability == model::Durability::memory || state.disk_from > durable;
}

/// What the segments may lack.
std::uint64_t journal_bytes(const ReplayedLog& log) {
  std::uint64_t bytes = kRoomToWork;
  for (const auto& write : log.writes) bytes += write.bytes;
  return bytes;
}

}  // namespace

asio::awaitable<void> LocalDisk::recover_some(RecoveryRun& run) {
  while (run.next < run.specs.size() && !run.error) {
    const LogSpec spec = run.specs[run.next++];
    const auto recorded = co_await record_lost(spec, run);
    if (!recorded) {
      run.error = recorded.error();
      co_return;
    }
    Result<RecoveredLog> recovered = make_error_code(StorageErrc::closed);
    const auto work = [&] { recovered = recover_one(spec, run.found); };
    co_await state_->executor.run(work);
    if (!recovered) {
      run.error = recovered.error();
      co_return;
    }
    const auto admitted = admit(spec, *std::move(recovered), run);
    if (!admitted) {
      run.error = admitted.error();
      co_return;
    }
    const auto forgotten = co_await forget_images_above(spec.id, run);
    if (!forgotten) {
      run.error = forgotten.error();
      co_return;
    }
    ++run.progress.partitions_done;
    if (run.early && std::ranges::count(run.cut, spec.id) == 0) say_ready(spec.id);
  }
}

bool LocalDisk::is_listed(const PartitionId& id, const Found& found) const {
  return found.replay && !found.replay->lost && found.replay->logs.contains(id);
}

/// What was confirmed of it may have been in the directory alone, and nothing else will tell at the
/// next start: what was synced takes it offline.
bool LocalDisk::lost_with_its_directory(const PartitionId& id, const Found& found) const {
  if (found.directories.contains(id) || !is_listed(id, found)) return false;
  const auto& state = found.replay->logs.at(id).state;
  return !begins_anew(state) && counts_as_memory(state);
}

/// Durably before its directory is made anew.
asio::awaitable<Result<void>> LocalDisk::record_lost(const LogSpec& spec, const RecoveryRun& run) {
  if (!run.early || !lost_with_its_directory(spec.id, run.found)) co_return Result<void>();
  if (run.found.replay->logs.at(spec.id).state.recovery_point.offset > Offset(0))
    co_return Result<void>();
  journal_->note(spec.id, JournalCreate{spec.settings.durability, broker_epoch_});
  const auto noted = co_await journal_settled();
  co_return noted;
}

/// What may be missing in this replica alone.
void LocalDisk::note_replica(const LogSpec& spec, const Found& found, bool offline) {
  Replica replica{-1, spec.settings.durability == model::Durability::memory};
  if (is_listed(spec.id, found)) {
    const auto& state = found.replay->logs.at(spec.id).state;
    replica = {state.intact_since, counts_as_memory(state)};
  } else if (!found.journal_is_new && !found.replay->lost) {
    replica.since = broker_epoch_;  // made in this run, or put here by somebody
  }
  if (offline || lost_with_its_directory(spec.id, found)) replica.since = broker_epoch_;
  replicas_[spec.id] = replica;
}

/// Of what the runs before have found: somebody may have mended it, or it was cut or trimmed away.
/// On a disk thread.
std::vector<model::DamagedPlace> LocalDisk::still_damaged(const PartitionId& id,
                                                          const RecoveredLog& log,
                                                          const Found& found) const {
  std::vector<model::DamagedPlace> damaged;
  const auto known = found.damage.find(id);
  if (known == found.damage.end()) return damaged;
  for (const auto& place : known->second) {
    const auto segment =
        std::ranges::find(log.segments, place.segment, &RecoveredLog::Segment::base_offset);
    const bool trimmed = place.end != Offset() && place.end <= log.log_start_offset;
    if (trimmed || segment == log.segments.end() || place.position >= segment->bytes) continue;
    const auto file = state_->files.open(
        path_of(id.text()) + "/" + segment_file_name(place.segment), base::OpenMode::read);
    if (file) {
      const BatchScanner::Start start{place.position, place.offset, {}, true};
      BatchScanner scanner(**file, start, segment->bytes, BatchScanner::Depth::whole);
      const auto looked = scanner.next();
      if (looked && !scanner.at_end() && scanner.state() == BatchState::good) continue;
    }
    base::log_warning("storage", "partition {}: {} is known to be damaged at byte {}", id.text(),
                      segment_file_name(place.segment), place.position);
    damaged.push_back(place);
  }
  return damaged;
}

Result<RecoveredLog> LocalDisk::recover_one(const LogSpec& spec, const Found& found) {
  RecoverySpec wanted;
  wanted.id = spec.id;
  wanted.topic_name = spec.topic_name;
  wanted.directory = path_of(spec.id.text());
  wanted.checkpoint_lost = found.checkpoint_lost;
  if (const auto known = found.checkpoint.find(spec.id); known != found.checkpoint.end()) {
    if (known->second.recovery_point_lost) {
      wanted.checkpoint_lost = true;
    } else {
      wanted.checkpoint = known->second;
    }
  }
  if (found.replay && !found.replay->lost) {
    wanted.replay = &*found.replay;
    const auto known = found.replay->logs.find(spec.id);
    if (known != found.replay->logs.end()) wanted.journal = &known->second;
    if (wanted.journal && wanted.checkpoint)
      wanted.checkpoint = merge_checkpoint(*std::move(wanted.checkpoint), *wanted.journal);
  }
  if (const auto clean = found.clean.find(spec.id); clean != found.clean.end())
    wanted.clean = clean->second;
  const auto attempt = [&]() -> Result<RecoveredLog> {
    if (found.directories.contains(spec.id)) return recover_log(*state_, wanted);
    if (wanted.journal && begins_anew(wanted.journal->state)) {
      wanted.start = wanted.journal->state.log_start;
      MQ_TRY_VOID(create_log_files(*state_, std::span(&wanted, 1)));
      return recover_log(*state_, wanted);
    }
    const bool synced =
        (wanted.checkpoint && wanted.checkpoint->recovery_point.offset > Offset(0)) ||
        (wanted.journal && wanted.journal->state.recovery_point.offset > Offset(0));
    if (synced) {
      RecoveredLog lost;
      lost.failure = StorageErrc::partition_corrupt;
      lost.problem = "its directory is missing";
      base::log_error("storage", "partition {} ({}) is offline: {}", spec.id.text(),
                      spec.topic_name, lost.problem);
      return lost;
    }
    MQ_TRY(auto made, create_log_files(*state_, std::span(&wanted, 1)));
    // All of it may be in the journal.
    if (wanted.journal && !wanted.journal->writes.empty()) return recover_log(*state_, wanted);
    return std::move(made.front());
  };
  auto recovered = with_reserve(*state_, attempt);
  if (recovered && !recovered->failure)
    recovered->damage = still_damaged(spec.id, *recovered, found);
  if (recovered) return recovered;
  if (!is_full(recovered.error())) {
    state_->fail("recovery", wanted.directory, recovered.error());
    return recovered;
  }
  base::log_error("storage",
                  "disk {} is full: {} ({}) cannot be recovered; up to {} bytes are needed to put "
                  "back what the journal holds of it. Nothing was cut",
                  state_->path, spec.id.text(), spec.topic_name,
                  wanted.journal ? journal_bytes(*wanted.journal) : kRoomToWork);
  return make_error_code(StorageErrc::storage_full);
}

bool LocalDisk::has_images_above(const SyncPoint& end, const PartitionId& id, const Found& found) {
  const auto known = found.replay->logs.find(id);
  if (known == found.replay->logs.end()) return false;
  return std::ranges::any_of(known->second.writes, [&](const JournalWrite& write) {
    if (write.base >= Offset(0)) return false;
    if (write.segment_base != end.segment_base) return write.segment_base > end.segment_base;
    return write.position + write.bytes > end.position;
  });
}

/// Of a sync that the crash broke off. The old files of the journal are kept for a while: after
/// another crash they would be put back over what is appended from here on, also in a segment that
/// is made anew at the same offset. So the journal says first that the log ends here.
asio::awaitable<Result<void>> LocalDisk::forget_images_above(const PartitionId& id,
                                                             const RecoveryRun& run) {
  const auto log = logs_.at(id);
  if (!run.early || !log->sync_state()) co_return Result<void>();
  const JournalLogState state = log->journal_state();
  if (!has_images_above(state.recovery_point, id, run.found)) co_return Result<void>();
  journal_->note(id, JournalCut{state.recovery_point, state.epoch_start.leader_epoch});
  auto recording = log->record_recovered();
  const auto recorded = co_await run_on(log->worker(), std::move(recording));
  co_return recorded;
}

Result<void> LocalDisk::admit(const LogSpec& spec, RecoveredLog recovered, RecoveryRun& run) {
  run.summary.bytes_scanned += recovered.bytes_scanned;
  run.summary.producer_bytes_scanned += recovered.producer_bytes_scanned;
  run.summary.bytes_cut += recovered.bytes_cut;
  if (recovered.bytes_cut > 0) run.summary.cut.push_back(spec.id);
  const bool offline = static_cast<bool>(recovered.failure);
  if (offline) keep_offline(spec, run);
  note_replica(spec, run.found, offline);
  MQ_TRY(auto log, open_log(spec, std::move(recovered)));
  if (!offline) kept_.erase(spec.id);
  // Of one that cannot be opened the notes stay for a later run.
  const auto noted = run.found.damage.find(spec.id);
  if (!offline)
    state_->damage.set(spec.id, log->damaged_places());
  else if (noted != run.found.damage.end())
    state_->damage.set(spec.id, noted->second);
  const auto mark = run.found.watermarks.find(spec.id);
  if (mark != run.found.watermarks.end()) log->set_high_watermark_hint(mark->second);
  if (!offline && run.early) {
    if (!run.found.replay->logs.contains(spec.id))
      journal_->note(spec.id, JournalCreate{spec.settings.durability, broker_epoch_});
    const auto known = run.found.replay->logs.find(spec.id);
    if (known != run.found.replay->logs.end() && known->second.state.cut) {
      run.cut.push_back(spec.id);
    } else {
      log->note_recovered();
    }
  }
  logs_[spec.id] = std::move(log);
  return {};
}

/// What is known of its recovery point stays known: at no later start may it be cut either.
void LocalDisk::keep_offline(const LogSpec& spec, RecoveryRun& run) {
  run.summary.offline.push_back(spec.id);
  const auto known = run.found.checkpoint.find(spec.id);
  LogCheckpoint keep;
  if (known != run.found.checkpoint.end()) {
    keep = known->second;
  } else {
    keep.recovery_point_lost = true;
  }
  keep.id = spec.id;
  const auto& replay = run.found.replay;
  const auto in_journal = replay ? replay->logs.find(spec.id) : decltype(replay->logs.end())();
  JournalLogState state = created_log({spec.settings.durability, broker_epoch_});
  bool has_state = true;
  if (replay && !replay->lost && in_journal != replay->logs.end()) {
    // What it held is in the segments now, as far as it could be read.
    state = in_journal->second.state;
    keep.log_start_offset = std::max(keep.log_start_offset, state.log_start);
    state.durable = in_journal->second.bound();
    state.end = state.recovery_point.offset;
  } else if (!keep.recovery_point_lost) {
    state.recovery_point = keep.recovery_point;
    state.end = state.durable = keep.recovery_point.offset;
  } else {
    has_state = false;
  }
  if (has_state && run.early) {
    journal_->give_up(spec.id, state);
  } else if (has_state) {
    kept_states_[spec.id] = state;
  }
  kept_[spec.id] = std::move(keep);
}

}  // namespace mq::storage
