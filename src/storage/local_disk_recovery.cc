#include "storage/local_disk_recovery.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "base/run_on.h"
#include "storage/log_files.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;
using model::PartitionId;

/// Partitions recovered at the same time, as far as the executor has threads.
constexpr std::size_t kParallel = 4;
constexpr auto kProgressInterval = std::chrono::seconds(1);

bool is_missing(const Error& error) { return error == make_error_code(base::BaseErrc::not_found); }

}  // namespace

asio::awaitable<Result<RecoverySummary>> LocalDisk::recover(
    std::vector<LogSpec> known, std::vector<base::Uuid> deleting,
    std::function<void(const RecoveryProgress&)> progress) {
  RecoveryRun run(state_->home);
  run.specs = std::move(known);
  run.report = std::move(progress);
  run.progress.partitions = run.summary.partitions = run.specs.size();
  for (const auto& spec : run.specs) run.known.insert(spec.id);
  run.deleting.insert(deleting.begin(), deleting.end());

  base::TaskGroup beside(state_->home);
  beside.spawn("storage recovery progress", watch_recovery(run));
  const auto recovered = co_await recover_all(run);
  run.ended = true;
  run.wake.notify_all();
  co_await beside.wait();
  if (!recovered) co_return recovered.error();
  run.progress.bytes_scanned = state_->recovery_read();
  if (run.report) run.report(run.progress);
  co_return std::move(run.summary);
}

asio::awaitable<Result<void>> LocalDisk::recover_all(RecoveryRun& run) {
  const auto begun = co_await begin_recovery(run);
  MQ_CO_TRY_VOID(begun);
  const JournalReplay& replay = *run.found.replay;
  if (!run.summary.clean && !replay.lost && !replay.damaged) {
    const auto early = co_await begin_journal_early(run);
    MQ_CO_TRY_VOID(early);
  }
  base::TaskGroup group(state_->home);
  for (std::size_t i = 0; i < kParallel; ++i) group.spawn("storage recovery", recover_some(run));
  co_await group.wait();
  if (run.error) co_return run.error;
  const auto written = co_await write_recovered(run);
  MQ_CO_TRY_VOID(written);
  for (const auto& id : run.cut) {
    const auto known = logs_.find(id);
    if (known == logs_.end()) continue;
    // LOG-12: else the next start would cut off again what is appended from here on.
    const auto log = known->second;
    auto recording = log->record_recovered();
    const auto recorded = co_await run_on(log->worker(), std::move(recording));
    MQ_CO_TRY_VOID(recorded);
    say_ready(id);
  }
  if (!run.early) {
    const auto late = co_await begin_journal_late(run);
    MQ_CO_TRY_VOID(late);
  }
  co_await forget_failure(run.found);
  co_await check_space();
  if (!run.early) {
    for (const auto& spec : run.specs) say_ready(spec.id);
  }
  co_return Result<void>();
}

/// The journal says durably by now since when the disk can be relied on.
asio::awaitable<void> LocalDisk::forget_failure(const Found& found) {
  if (!found.disk_failed) co_return;
  const auto forget = [&] {
    static_cast<void>(remove_if_there(state_->files, path_of(kFailedFile)));
  };
  co_await state_->executor.run(forget);
}

/// Everything that comes before single partitions.
asio::awaitable<Result<void>> LocalDisk::begin_recovery(RecoveryRun& run) {
  Result<void> begun;
  const auto begin = [&] {
    auto found = look();
    if (!found) {
      begun = found.error();
      return;
    }
    run.found = *std::move(found);
    begun = replay(run.found);
    if (begun) begun = begin_run(run.found);
    if (begun) restore_unknown(run.found, run.known, run.deleting);
    if (begun) begun = put_away_unknown(run.found, run.known, run.deleting, run.summary);
  };
  co_await state_->executor.run(begin);
  MQ_CO_TRY_VOID(begun);
  run.summary.clean = run.found.has_clean_marker;
  run.summary.lossy_suspect = lossy_suspect(run.found);
  run.summary.journal_bytes_read = run.found.replay->bytes_read;
  if (!run.found.journal_is_new) run.summary.journal_problem = run.found.replay->problem;
  if (run.summary.lossy_suspect) {
    base::log_warning(
        "storage",
        "disk {}: the machine, or its mount, went without a clean stop, or this is another "
        "disk or one that failed: records acknowledged with durability = memory may be missing",
        state_->path);
  }
  keep_found(run);
  co_return Result<void>();
}

/// What the small files say goes on from there. Until a partition is recovered the checkpoint says
/// of it what the one before did.
void LocalDisk::keep_found(const RecoveryRun& run) {
  if (run.found.damage_known) damage_written_ = run.found.damage;
  for (const auto& spec : run.specs) {
    const auto known = run.found.checkpoint.find(spec.id);
    if (known != run.found.checkpoint.end()) {
      kept_[spec.id] = known->second;
    } else if (run.found.checkpoint_lost && run.found.directories.contains(spec.id)) {
      kept_[spec.id].id = spec.id;
      kept_[spec.id].recovery_point_lost = true;
    }
  }
}

/// The journal goes on in a new file and keeps those of the run before, so that another crash finds
/// what is not recovered yet. On a disk without room for that, partitions wait for the last one.
asio::awaitable<Result<void>> LocalDisk::begin_journal_early(RecoveryRun& run) {
  JournalStart start = journal_start(run.found);
  for (const auto& spec : run.specs) {
    const auto log = run.found.replay->logs.find(spec.id);
    if (log != run.found.replay->logs.end()) start.recovering[spec.id] = log->second.bound();
    if (log != run.found.replay->logs.end()) start.logs[spec.id] = log->second.state;
  }
  Result<void> begun;
  const auto begin = [&] {
    begun = begin_journal(std::move(start), false);
    if (begun) begun = note_suspected(run.found);
  };
  co_await state_->executor.run(begin);
  if (begun) run.early = true;
  if (!begun && begun.error() != make_error_code(StorageErrc::storage_full)) co_return begun;
  co_return Result<void>();
}

asio::awaitable<Result<void>> LocalDisk::begin_journal_late(RecoveryRun& run) {
  if (run.found.replay->lost)
    identity_.journal = base::Uuid::from_random(state_->home.random(), state_->home.random());
  Result<void> begun;
  JournalStart start = journal_start(run.found);
  const auto begin = [&] {
    begun = begin_journal(std::move(start), run.found.replay->lost);
    if (begun) begun = note_suspected(run.found);
  };
  co_await state_->executor.run(begin);
  co_return begun;
}

asio::awaitable<Result<void>> LocalDisk::write_recovered(const RecoveryRun& run) {
  const bool changed =
      run.found.checkpoint_lost || checkpoint_body() != encode_checkpoint(run.found.checkpoint);
  if (!changed && run.in_checkpoint == 0) co_return Result<void>();
  const auto written = co_await checkpoint_.write();
  if (written) co_return written;
  const bool full = written.error() == make_error_code(StorageErrc::storage_full);
  if (full && run.cut.empty()) co_return Result<void>();
  co_return written;
}

/// Tells how far it is, and writes down what is done, so that a start which is broken off is not
/// repeated from its beginning.
asio::awaitable<void> LocalDisk::watch_recovery(RecoveryRun& run) {
  auto write_due = state_->home.now() + state_->config.checkpoint_interval;
  RecoveryProgress told;
  while (true) {
    co_await run.wake.wait_until(state_->home.now() + kProgressInterval);
    if (run.ended) co_return;
    run.progress.bytes_scanned = state_->recovery_read();
    const bool got_on = run.progress.partitions_done != told.partitions_done ||
                        run.progress.bytes_scanned != told.bytes_scanned;
    if (run.report && got_on) run.report(run.progress);
    told = run.progress;
    if (run.early) co_await check_space();
    if (run.ended || state_->home.now() < write_due || state_->failed()) continue;
    const std::size_t done = run.progress.partitions_done;
    if (done == run.in_checkpoint) continue;
    write_due = state_->home.now() + state_->config.checkpoint_interval;
    const auto written = co_await checkpoint_.write();
    if (written) run.in_checkpoint = done;
  }
}

void LocalDisk::say_ready(const PartitionId& id) {
  if (ready_) ready_(id);
}

/// Reads what the run before left. On a disk thread; changes nothing.
Result<LocalDisk::Found> LocalDisk::look() {
  auto& files = state_->files;
  const auto& path = state_->path;
  Found found;
  MQ_TRY(const auto entries, files.list_directory(path));
  for (const auto& entry : entries) {
    const auto id = parse_partition_directory_name(entry.name);
    if (id && entry.is_directory) {
      found.directories.insert(*id);
    } else if (!is_disk_file(entry.name)) {
      found.strangers.push_back(entry.name);
    }
  }
  auto checkpoint =
      load_disk_file(files, path, kCheckpointFile, kCheckpointMagic, decode_checkpoint);
  if (checkpoint) {
    found.checkpoint = *std::move(checkpoint);
  } else if (checkpoint.error() == make_error_code(StorageErrc::unknown_format_version)) {
    return checkpoint.error();
  } else {
    found.checkpoint_lost = true;
    base::log_warning("storage",
                      "disk {}: the checkpoint is {}: all logs are read, and only their last "
                      "segments may have a torn tail",
                      path, is_missing(checkpoint.error()) ? "missing" : "damaged");
  }
  const auto clean =
      load_disk_file(files, path, kCleanMarkerFile, kCleanMarkerMagic, decode_clean_marker);
  if (clean && !found.checkpoint_lost) {
    found.has_clean_marker = true;
    found.journal_group = clean->journal_group;
    for (const auto& log : clean->logs) found.clean.emplace(log.id, log);
  }
  MQ_TRY(found.disk_failed, files.exists(path_of(kFailedFile)));
  auto marks = load_disk_file(files, path, kWatermarksFile, kWatermarksMagic, decode_watermarks);
  if (marks) found.watermarks = *std::move(marks);
  auto damage = load_disk_file(files, path, kDamagedFile, kDamagedMagic, decode_damage);
  found.damage_known = damage || is_missing(damage.error());
  if (damage) found.damage = *std::move(damage);
  const auto run = load_disk_file(files, path, kRunMarkerFile, kRunMarkerMagic, decode_run_marker);
  if (run) found.run = *run;
  return found;
}

std::string LocalDisk::journal_directory() const {
  const auto& elsewhere = state_->config.journal_path;
  if (elsewhere.empty()) return path_of(kJournalDirectory);
  return elsewhere + "/" + identity_.disk.hex();
}

/// Reads the journal. A lost one is said and gone without, by the checkpoint.
Result<void> LocalDisk::replay(Found& found) {
  MQ_TRY_VOID(flusher_->hold(path_of(kIdentityFile)));
  const JournalOwner owner{identity_.cluster, identity_.broker, identity_.disk, identity_.journal};
  MQ_TRY(found.replay, replay_journal(
                           state_->files, journal_directory(), owner,
                           [this](std::uint64_t bytes) { state_->note_recovery_read(bytes); },
                           found.journal_group));
  if (identity_.journal.is_zero()) {
    found.replay->lost = true;  // of an earlier version, or a start that a crash broke off
    found.journal_is_new = true;
    return {};
  }
  const auto inside = state_->files.exists(path_of(kJournalDirectory));
  if (found.replay->lost && !state_->config.journal_path.empty() && inside && *inside) {
    found.replay->problem +=
        fmt::format("; one lies in {}: was it not moved along?", path_of(kJournalDirectory));
  }
  if (found.replay->lost) {
    base::log_error("storage",
                    "disk {}: the journal is lost ({}): records that were confirmed may be missing",
                    state_->path, found.replay->problem);
  } else if (found.replay->damaged) {
    base::log_error("storage",
                    "disk {}: the journal is damaged ({}): records that were confirmed may be "
                    "missing",
                    state_->path, found.replay->problem);
  }
  return {};
}

/// What goes to unknown/ is whole.
void LocalDisk::restore_unknown(const Found& found, const std::set<PartitionId>& known,
                                const std::set<base::Uuid>& deleting) {
  if (found.replay->lost) return;
  for (const auto& id : found.directories) {
    const auto log = found.replay->logs.find(id);
    if (known.contains(id) || deleting.contains(id.topic) || log == found.replay->logs.end())
      continue;
    std::string problem;
    const auto restored = restore_from_journal(state_->files, path_of(id.text()), *found.replay,
                                               log->second, log->second.state.log_start, problem);
    if (!restored)
      base::log_warning("storage", "disk {}: {} lacks what the journal holds: {}", state_->path,
                        id.text(), problem.empty() ? restored.error().message() : problem);
  }
}

JournalStart LocalDisk::journal_start(const Found& found) const {
  JournalStart start;
  start.directory = journal_directory();
  start.owner = {identity_.cluster, identity_.broker, identity_.disk, identity_.journal};
  start.secret = state_->home.random();
  start.logs = kept_states_;
  for (const auto& [id, log] : logs_) {
    if (!log->sync_state()) continue;
    start.logs[id] = log->journal_state();
    const auto replica = replicas_.find(id);
    if (replica != replicas_.end()) start.logs[id].intact_since = replica->second.since;
  }
  const JournalReplay& replay = *found.replay;
  start.disk = replay.disk;
  start.disk.intact = intact_since(found);
  start.found = replay.found;
  // The files of a lost journal stay as they are.
  for (auto& file : start.found) file.foreign = file.foreign || (replay.lost && file.header);
  start.first_generation = replay.first_generation;
  start.newest_generation = replay.newest_generation;
  start.last_group = replay.last_group;
  start.last_crc = replay.last_crc;
  return start;
}

/// On a disk thread. Everything is synced in the segments and in the checkpoint.
Result<void> LocalDisk::begin_journal(JournalStart start, bool is_new) {
  const auto& elsewhere = state_->config.journal_path;
  if (!elsewhere.empty() && is_new) {
    const auto made = state_->files.make_directory(elsewhere);
    if (!made && made.error() != make_error_code(base::BaseErrc::already_exists)) {
      state_->fail("mkdir", elsewhere, made.error());
      return StorageErrc::disk_failed;
    }
  }
  start.lock = lock_;
  const auto attempt = [&] { return journal_->begin(start); };
  // While logs wait for it there is another way.
  const auto begun = start.recovering.empty() ? with_reserve(*state_, attempt) : attempt();
  if (!begun && is_full(begun.error()) && start.recovering.empty()) {
    base::log_error("storage", "disk {} is full: its journal needs {} bytes", state_->path,
                    2 * state_->config.journal_file_bytes_min);
  }
  if (!begun || !is_new) return begun;
  return with_reserve(*state_, [&] {
    return save_sealed(state_->files, path_of(kIdentityFile), kIdentityMagic,
                       encode_identity(identity_));
  });
}

/// REC-4: the clean marker goes, durably, before anything is written; the run marker says who works
/// here now. REC-10: where records may be missing it is what tells the next start so, until the
/// journal does.
Result<void> LocalDisk::begin_run(const Found& found) {
  auto& files = state_->files;
  MQ_TRY_VOID(remove_if_there(files, path_of(kCleanMarkerFile)));
  if (!lossy_suspect(found) || MQ_MUTANT("suspicion_forgotten")) return write_run_marker();
  return files.sync_directory(state_->path);
}

/// The journal says durably by now since when the disk can be relied on.
Result<void> LocalDisk::note_suspected(const Found& found) {
  return lossy_suspect(found) ? write_run_marker() : Result<void>();
}

Result<void> LocalDisk::write_run_marker() {
  auto& files = state_->files;
  const RunMarker marker{state_->config.incarnation, identity_.disk, state_->config.boot_id,
                         state_->config.mount_id};
  const auto saved = with_reserve(*state_, [&] {
    return save_sealed(files, path_of(kRunMarkerFile), kRunMarkerMagic, encode_run_marker(marker));
  });
  if (!saved && !is_full(saved.error())) return saved.error();
  if (saved) return {};  // which has synced the directory
  base::log_warning("storage", "disk {} is full: no run marker", state_->path);
  return files.sync_directory(state_->path);
}

/// The file system was unmounted meanwhile; false where that is not known of both runs.
bool is_another_mount(const std::string& before, const std::string& now) {
  return !before.empty() && !now.empty() && before != now;
}

/// Whether records that were confirmed may be missing: another disk, or a machine or a mount that
/// went without a clean stop.
bool LocalDisk::lossy_suspect(const Found& found) const {
  if (!found_identity_) return false;  // fresh: there was nothing to lose
  if (found.disk_failed) return true;
  if (!found.journal_is_new && (found.replay->lost || found.replay->damaged)) return true;
  if (found.checkpoint_lost || !found.run || found.run->disk != identity_.disk) return true;
  const auto& config = state_->config;
  return !found.has_clean_marker && (found.run->boot_id != config.boot_id ||
                                     is_another_mount(found.run->mount_id, config.mount_id));
}

/// What the journal said, moved to this run's epoch where there is reason: a journal that is not
/// whole, another disk, or one that failed, for everything; a power cut for what was in the page
/// cache alone.
IntactSince LocalDisk::intact_since(const Found& found) const {
  IntactSince intact = found.replay->disk.intact;
  const bool journal = !found.journal_is_new && (found.replay->lost || found.replay->damaged);
  const bool other = !found.run || found.run->disk != identity_.disk;
  if (journal || other || found.disk_failed) return {broker_epoch_, broker_epoch_};
  if (lossy_suspect(found)) intact.memory = broker_epoch_;
  return intact;
}

/// REC-9: what the metadata does not know is kept out of the way, never deleted.
Result<void> LocalDisk::put_away_unknown(Found& found, const std::set<PartitionId>& known,
                                         const std::set<base::Uuid>& deleting,
                                         RecoverySummary& summary) {
  auto& files = state_->files;
  const std::string unknown = path_of(kUnknownDirectory);
  for (const auto& id : found.directories) {
    if (known.contains(id) || deleting.contains(id.topic)) continue;
    const auto made = with_reserve(*state_, [&] { return files.make_directory(unknown); });
    if (!made && is_full(made.error())) {
      base::log_warning("storage", "disk {} is full: {}, which the metadata does not know, stays",
                        state_->path, id.text());
      continue;
    }
    if (!made && made.error() != make_error_code(base::BaseErrc::already_exists))
      return made.error();
    if (MQ_MUTANT("unknown_directories_deleted")) {
      MQ_TRY(const auto entries, files.list_directory(path_of(id.text())));
      for (const auto& entry : entries)
        static_cast<void>(files.remove_file(path_of(id.text()) + "/" + entry.name));
      continue;
    }
    MQ_TRY(const auto to, put_away(files, state_->path, id.text()));
    base::log_warning("storage", "disk {}: the metadata does not know {}: kept as {}", state_->path,
                      id.text(), to);
    summary.moved_to_unknown.push_back(id.text());
  }
  if (!summary.moved_to_unknown.empty()) {
    MQ_TRY_VOID(files.sync_directory(state_->path));
  }
  if (!found.strangers.empty()) {
    std::string names;
    for (const auto& name : found.strangers)
      names += (names.empty() ? "" : ", ") + base::printable(name, 255);
    base::log_warning("storage", "disk {}: left alone, not files of mq: {}", state_->path, names);
  }
  return {};
}

}  // namespace mq::storage
