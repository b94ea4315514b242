#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "storage/local_disk.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;
using model::PartitionId;

/// Partitions recovered at the same time, as far as the executor has threads.
constexpr std::size_t kParallel = 4;

bool is_missing(const Error& error) { return error == make_error_code(base::BaseErrc::not_found); }

}  // namespace

/// One recover() call, shared by the coroutines that work on it.
struct LocalDisk::RecoveryRun {
  std::vector<LogSpec> specs;
  std::size_t next = 0;
  Found found;
  RecoverySummary summary;
  RecoveryProgress progress;
  std::function<void(const RecoveryProgress&)> report;
  Error error;
};

asio::awaitable<Result<RecoverySummary>> LocalDisk::recover(
    std::vector<LogSpec> known, std::vector<base::Uuid> deleting,
    std::function<void(const RecoveryProgress&)> progress) {
  RecoveryRun run;
  run.specs = std::move(known);
  run.report = std::move(progress);
  run.progress.partitions = run.summary.partitions = run.specs.size();
  std::set<PartitionId> known_ids;
  for (const auto& spec : run.specs) known_ids.insert(spec.id);
  const std::set<base::Uuid> deleting_ids(deleting.begin(), deleting.end());

  Result<void> begun;
  const auto begin = [&] {
    auto found = look();
    if (!found) {
      begun = found.error();
      return;
    }
    run.found = *std::move(found);
    begun = replay(run.found);
    if (begun) begun = begin_run();
    if (begun) restore_unknown(run.found, known_ids, deleting_ids);
    if (begun) begun = put_away_unknown(run.found, known_ids, deleting_ids, run.summary);
  };
  co_await state_->executor.run(begin);
  MQ_CO_TRY_VOID(begun);
  run.summary.clean = run.found.has_clean_marker;
  run.summary.lossy_suspect = lossy_suspect(run.found);
  run.summary.journal_bytes_read = run.found.replay->bytes_read;
  if (!run.found.journal_is_new) run.summary.journal_problem = run.found.replay->problem;
  if (run.summary.lossy_suspect) {
    base::log_warning("storage",
                      "disk {}: the machine went down without a clean stop, or this is another "
                      "disk: records acknowledged with durability = memory may be missing",
                      state_->path);
  }

  base::TaskGroup group(state_->home);
  for (std::size_t i = 0; i < kParallel; ++i) group.spawn("storage recovery", recover_some(run));
  co_await group.wait();
  if (run.error) co_return run.error;
  if (run.found.checkpoint_lost || checkpoint_body() != encode_checkpoint(run.found.checkpoint)) {
    const auto written = co_await checkpoint_.write();
    if (!written && written.error() != make_error_code(StorageErrc::storage_full))
      co_return written.error();
  }
  if (run.found.replay->lost)
    identity_.journal = base::Uuid::from_random(state_->home.random(), state_->home.random());
  Result<void> journal;
  JournalStart start = journal_start(run.found);
  const auto begin_it = [&] { journal = begin_journal(std::move(start), run.found.replay->lost); };
  co_await state_->executor.run(begin_it);
  MQ_CO_TRY_VOID(journal);
  co_await check_space();
  co_return run.summary;
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
    for (const auto& log : clean->logs) found.clean.emplace(log.id, log);
  }
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
  MQ_TRY(found.replay, replay_journal(state_->files, journal_directory(), owner));
  if (identity_.journal.is_zero()) {
    found.replay->lost = true;  // of an earlier version, or a start that a crash broke off
    found.journal_is_new = true;
    return {};
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
    if (log->sync_state()) start.logs[id] = log->journal_state();
  }
  const JournalReplay& replay = *found.replay;
  start.disk = replay.disk;
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
  MQ_TRY_VOID(journal_->begin(std::move(start)));
  if (!is_new) return {};
  return save_sealed(state_->files, path_of(kIdentityFile), kIdentityMagic,
                     encode_identity(identity_));
}

/// REC-4: the clean marker goes, durably, before anything is written; the run marker says who works
/// here now.
Result<void> LocalDisk::begin_run() {
  auto& files = state_->files;
  const auto removed = files.remove_file(path_of(kCleanMarkerFile));
  if (!removed && !is_missing(removed.error())) return removed.error();
  const RunMarker marker{state_->config.incarnation, identity_.disk, state_->config.boot_id};
  const auto saved =
      save_sealed(files, path_of(kRunMarkerFile), kRunMarkerMagic, encode_run_marker(marker));
  if (!saved && saved.error() != make_error_code(base::BaseErrc::no_space)) return saved.error();
  if (saved) return {};  // which has synced the directory, and so the removal
  base::log_warning("storage", "disk {} is full: no run marker", state_->path);
  return files.sync_directory(state_->path);
}

/// Whether records that were confirmed may be missing: another disk, or a machine that went down
/// without a clean stop.
bool LocalDisk::lossy_suspect(const Found& found) const {
  if (!found_identity_) return false;  // fresh: there was nothing to lose
  if (!found.journal_is_new && (found.replay->lost || found.replay->damaged)) return true;
  if (found.checkpoint_lost || !found.run || found.run->disk != identity_.disk) return true;
  return !found.has_clean_marker && found.run->boot_id != state_->config.boot_id;
}

/// REC-9: what the metadata does not know is kept out of the way, never deleted.
Result<void> LocalDisk::put_away_unknown(Found& found, const std::set<PartitionId>& known,
                                         const std::set<base::Uuid>& deleting,
                                         RecoverySummary& summary) {
  auto& files = state_->files;
  const std::string unknown = path_of(kUnknownDirectory);
  for (const auto& id : found.directories) {
    if (known.contains(id) || deleting.contains(id.topic)) continue;
    const auto made = files.make_directory(unknown);
    if (!made && made.error() != make_error_code(base::BaseErrc::already_exists))
      return made.error();
    if (MQ_MUTANT("unknown_directories_deleted")) {
      MQ_TRY(const auto entries, files.list_directory(path_of(id.text())));
      for (const auto& entry : entries)
        static_cast<void>(files.remove_file(path_of(id.text()) + "/" + entry.name));
      continue;
    }
    std::string to = unknown + "/" + id.text();
    for (int n = 1; n < 1000; ++n) {
      MQ_TRY(const bool taken, files.exists(to));
      if (!taken) break;
      to = fmt::format("{}/{}.{}", unknown, id.text(), n);
    }
    MQ_TRY_VOID(files.rename(path_of(id.text()), to));
    MQ_TRY_VOID(files.sync_directory(unknown));
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

asio::awaitable<void> LocalDisk::recover_some(RecoveryRun& run) {
  while (run.next < run.specs.size() && !run.error) {
    const LogSpec spec = run.specs[run.next++];
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
    ++run.progress.partitions_done;
    run.progress.bytes_scanned = run.summary.bytes_scanned;
    if (run.report) run.report(run.progress);
  }
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
  auto recovered = [&]() -> Result<RecoveredLog> {
    if (found.directories.contains(spec.id)) return recover_log(*state_, wanted);
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
  }();
  if (!recovered && recovered.error() != make_error_code(StorageErrc::storage_full))
    state_->fail("recovery", wanted.directory, recovered.error());
  return recovered;
}

Result<void> LocalDisk::admit(const LogSpec& spec, RecoveredLog recovered, RecoveryRun& run) {
  run.summary.bytes_scanned += recovered.bytes_scanned;
  run.summary.producer_bytes_scanned += recovered.producer_bytes_scanned;
  run.summary.bytes_cut += recovered.bytes_cut;
  if (recovered.bytes_cut > 0) run.summary.cut.push_back(spec.id);
  if (recovered.failure) {
    run.summary.offline.push_back(spec.id);
    // What is known of its recovery point stays known: at no later start may it be cut either.
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
    JournalLogState state = created_log(spec.settings.durability);
    if (replay && !replay->lost && in_journal != replay->logs.end()) {
      // What it held is in the segments now, as far as it could be read.
      state = in_journal->second.state;
      state.durable = in_journal->second.bound();
      state.end = state.recovery_point.offset;
      kept_states_[spec.id] = state;
    } else if (!keep.recovery_point_lost) {
      state.recovery_point = keep.recovery_point;
      state.end = state.durable = keep.recovery_point.offset;
      kept_states_[spec.id] = state;
    }
    kept_[spec.id] = std::move(keep);
  }
  MQ_TRY(auto log, open_log(spec, std::move(recovered)));
  logs_[spec.id] = std::move(log);
  return {};
}

}  // namespace mq::storage
