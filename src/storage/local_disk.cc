#include "storage/local_disk.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "storage/disk_files.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;
using model::PartitionId;

/// Rest after a checkpoint, so that one roll after the other leaves the disk time for flushes.
constexpr auto kCheckpointSpacing = std::chrono::milliseconds(100);
/// And after one that could not be written.
constexpr auto kCheckpointRetry = std::chrono::milliseconds(1000);
constexpr int kRemovedAtOnce = 32;  // files
constexpr auto kRemovalPause = std::chrono::milliseconds(5);
/// Both need the state that they belong to.
std::shared_ptr<Flusher> with_write_behind(const std::shared_ptr<DiskState>& state) {
  WriteBehind::Hooks hooks;
  hooks.more = [held = std::weak_ptr(state)] {
    if (const auto disk = held.lock()) disk->ask_for_write_behind();
  };
  hooks.failed = [held = std::weak_ptr(state)](const base::Error& error) {
    if (const auto disk = held.lock()) disk->fail("sync_file_range", disk->path, error);
  };
  hooks.turns = [held = std::weak_ptr(state->cold_reads)]() -> base::DiskExecutor* {
    const auto reads = held.lock();
    return reads && reads->takes_turns() ? &reads->strides() : nullptr;
  };
  auto flusher = std::make_shared<Flusher>(state);
  hooks.turn_ends = [held = std::weak_ptr(flusher)] {
    if (const auto syncs = held.lock()) syncs->empty_cache();
  };
  state->write_behind = std::make_shared<WriteBehind>(
      state->executor, state->counters, state->config.dirty_bytes_max, std::move(hooks));
  return flusher;
}

}  // namespace

Result<std::unique_ptr<Disk>> Disk::open(DataDirectory directory, DiskConfig config,
                                         base::FileSystem& files, DiskThreads threads,
                                         base::Runtime& home, base::Counters& counters,
                                         Refusal& refusal) {
  auto disk = std::make_unique<LocalDisk>(std::move(directory), std::move(config), files, threads,
                                          home, counters);
  MQ_TRY_VOID(disk->adopt(refusal));
  return std::unique_ptr<Disk>(std::move(disk));
}

LocalDisk::LocalDisk(DataDirectory directory, DiskConfig config, base::FileSystem& files,
                     DiskThreads threads, base::Runtime& home, base::Counters& counters)
    : state_(std::make_shared<DiskState>(directory.path, std::move(config), files, threads, home,
                                         counters)),
      listener_(std::make_shared<DiskState::Listener>()),
      flusher_(with_write_behind(state_)),
      journal_(std::make_shared<Journal>(state_, flusher_)),
      lock_(std::move(directory.lock)),
      found_identity_(directory.identity),
      checkpoint_(state_, [this] { return checkpoint_body(); }),
      scrubber_(state_, [this] { return logs(); }),
      tasks_(home),
      wake_(home) {
  listener_->changed = [this] { state_changed(); };
  listener_->check_space = [this] {
    if (!stopping_) tasks_.spawn("storage space check", check_space());
  };
  listener_->sealed = [this] { wake_.notify_all(); };
  listener_->damaged = [this] {
    wake_.notify_all();
    if (changed_) changed_();
  };
  listener_->write_behind = [this] { write_behind_all(); };
  state_->listen(listener_);
}

LocalDisk::~LocalDisk() {
  journal_->end();
  state_->listen(nullptr);
}

Result<void> LocalDisk::adopt(Refusal& refusal) {
  const DiskConfig& config = state_->config;
  if (found_identity_) {
    identity_ = *found_identity_;
    if (identity_.cluster == config.cluster) return {};
    refusal = {StorageErrc::wrong_directory,
               fmt::format("data directory {} belongs to cluster {}, this broker is of cluster {}",
                           state_->path, identity_.cluster.hex(), config.cluster.hex())};
    return refusal.error;
  }
  identity_.cluster = config.cluster;
  identity_.broker = config.broker;
  identity_.disk = base::Uuid::from_random(state_->home.random(), state_->home.random());
  // The checkpoint comes first: a directory with identity and without checkpoint has lost it.
  auto saved =
      save_sealed(state_->files, path_of(kCheckpointFile), kCheckpointMagic, encode_checkpoint({}));
  if (saved)
    saved = save_sealed(state_->files, path_of(kIdentityFile), kIdentityMagic,
                        encode_identity(identity_));
  if (saved) return {};
  refusal = {saved.error(), fmt::format("data directory {} cannot be written: {}", state_->path,
                                        saved.error().message())};
  return refusal.error;
}

std::string LocalDisk::path_of(std::string_view name) const {
  return state_->path + "/" + std::string(name);
}

PartitionLog* LocalDisk::find(const PartitionId& id) {
  const auto found = logs_.find(id);
  return found == logs_.end() ? nullptr : found->second.get();
}

std::vector<PartitionId> LocalDisk::partitions() const {
  std::vector<PartitionId> ids;
  for (const auto& [id, log] : logs_) ids.push_back(id);
  return ids;
}

std::vector<LocalDisk::LogPtr> LocalDisk::logs() const {
  std::vector<LogPtr> all;
  for (const auto& [id, log] : logs_) all.push_back(log);
  return all;
}

std::uint64_t LocalDisk::used_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, log] : logs_) bytes += log->recent_bytes();
  return bytes;
}

TailBudget& LocalDisk::budget_of(base::Runtime& worker) {
  auto& budget = budgets_[&worker];
  if (!budget) budget = std::make_unique<TailBudget>(state_->config.tail_cache_bytes);
  return *budget;
}

Result<LocalDisk::LogPtr> LocalDisk::open_log(const LogSpec& spec, RecoveredLog recovered) {
  auto persist = [this]() -> asio::awaitable<Result<void>> {
    return run_on(state_->home, checkpoint_.write());
  };
  return LocalLog::open(spec, path_of(spec.id.text()), std::move(recovered), state_, flusher_,
                        journal_, budget_of(*spec.worker), std::move(persist));
}

/// REC-2: only what the flusher has seen synced.
std::vector<std::byte> LocalDisk::checkpoint_body() const {
  Checkpoint checkpoint = kept_;
  for (const auto& [id, log] : logs_) {
    if (log->sync_state()) checkpoint[id] = flusher_->reached(*log->sync_state());
  }
  return encode_checkpoint(checkpoint);
}

asio::awaitable<Result<PartitionLog*>> Disk::create_log(LogSpec spec) {
  const PartitionId id = spec.id;
  std::vector<LogSpec> specs;
  specs.push_back(std::move(spec));
  const auto created = co_await create_logs(std::move(specs));
  if (!created) co_return created.error();
  PartitionLog* const log = find(id);
  co_return log;
}

Result<void> LocalDisk::may_create(const std::vector<LogSpec>& specs) const {
  if (state_->failed()) return StorageErrc::disk_failed;
  if (stopping_) return StorageErrc::closed;
  for (const auto& spec : specs) {
    if (logs_.contains(spec.id)) return StorageErrc::already_exists;
  }
  return {};
}

asio::awaitable<Result<void>> LocalDisk::create_logs(std::vector<LogSpec> specs) {
  MQ_CO_TRY_VOID(may_create(specs));
  if (state_->full()) co_return make_error_code(StorageErrc::storage_full);
  std::vector<RecoverySpec> wanted;
  for (const auto& spec : specs) {
    RecoverySpec& files = wanted.emplace_back();
    files.id = spec.id;
    files.topic_name = spec.topic_name;
    files.directory = path_of(spec.id.text());
  }
  Result<std::vector<RecoveredLog>> made = make_error_code(StorageErrc::closed);
  const auto work = [&] { made = create_log_files(*state_, wanted); };
  co_await state_->executor.run(work);
  if (!made) co_return made.error();
  MQ_CO_TRY_VOID(may_create(specs));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto log = open_log(specs[i], std::move((*made)[i]));
    if (!log) co_return make_error_code(StorageErrc::io_failed);
    logs_[specs[i].id] = *log;
    const auto durability = specs[i].settings.durability;
    replicas_[specs[i].id] = {broker_epoch_, durability == model::Durability::memory};
    journal_->note(specs[i].id, JournalCreate{durability, broker_epoch_});
  }
  co_return co_await journal_settled();
}

asio::awaitable<Result<void>> LocalDisk::journal_deletions(std::vector<PartitionId> ids) {
  for (const auto& id : ids) journal_->note(id, JournalDelete{});
  co_return co_await journal_settled();
}

/// Returns when everything that was noted without a log is durable.
asio::awaitable<Result<void>> LocalDisk::journal_settled() {
  auto wait = std::make_shared<JournalWait>(state_->home);
  journal_->note_disk(JournalWait::done(wait));
  co_return co_await JournalWait::until_durable(wait);
}

asio::awaitable<void> LocalDisk::close_log(LogPtr log) {
  auto closing = log->close();
  co_await run_on(log->worker(), std::move(closing));
}

asio::awaitable<void> LocalDisk::close_and_forget(PartitionId id) {
  const auto found = logs_.find(id);
  if (found != logs_.end()) {
    const LogPtr log = found->second;
    logs_.erase(found);
    co_await close_log(log);
  }
  kept_.erase(id);
  kept_states_.erase(id);
  replicas_.erase(id);
  forget_damage(id);
}

asio::awaitable<Result<void>> LocalDisk::delete_log(PartitionId id) {
  co_await close_and_forget(id);
  std::vector<PartitionId> ids(1, id);
  // Else the next start would make its directory again.
  const auto noted = co_await journal_deletions(std::move(ids));
  MQ_CO_TRY_VOID(noted);
  std::vector<std::string> doomed{id.text()};
  MQ_CO_TRY_VOID(co_await remove_directories(std::move(doomed)));
  co_return co_await sync_own_directory();
}

std::int64_t LocalDisk::intact_since(const PartitionId& id) const {
  const auto found = replicas_.find(id);
  if (found == replicas_.end()) return broker_epoch_;
  const IntactSince disk = intact_since();
  return std::max(found->second.since, found->second.memory ? disk.memory : disk.disk);
}

asio::awaitable<Result<void>> LocalDisk::delete_topic(base::Uuid topic) {
  std::set<PartitionId> ids;
  for (const auto& [id, log] : logs_) {
    if (id.topic == topic) ids.insert(id);
  }
  for (const auto& id : ids) co_await close_and_forget(id);
  std::vector<PartitionId> gone(ids.begin(), ids.end());
  const auto noted = co_await journal_deletions(std::move(gone));
  MQ_CO_TRY_VOID(noted);
  Result<std::vector<base::DirectoryEntry>> entries = make_error_code(StorageErrc::closed);
  const auto work = [&] { entries = state_->files.list_directory(state_->path); };
  co_await state_->executor.run(work);
  if (!entries) co_return make_error_code(StorageErrc::io_failed);
  std::vector<std::string> doomed;
  for (const auto& entry : *entries) {
    const auto id = parse_partition_directory_name(entry.name);
    if (!id || id->topic != topic) continue;
    kept_.erase(*id);
    doomed.push_back(entry.name);
  }
  MQ_CO_TRY_VOID(co_await remove_directories(doomed));
  MQ_CO_TRY_VOID(co_await sync_own_directory());
  if (!doomed.empty())
    base::log_info("storage", "disk {}: removed {} partition(s) of topic {}", state_->path,
                   doomed.size(), topic.hex());
  co_return Result<void>();
}

/// REC-9: called for topics that the metadata holds as being deleted. Only what is ours inside is
/// removed, a few files at a time, so that the disk's other work comes between.
asio::awaitable<Result<void>> LocalDisk::remove_directories(std::vector<std::string> names) {
  std::size_t done = 0;
  while (done < names.size()) {
    if (state_->failed()) co_return make_error_code(StorageErrc::disk_failed);
    if (giving_up_deletions_ || stopping_) co_return make_error_code(StorageErrc::closed);
    if (done > 0) co_await state_->home.sleep_for(kRemovalPause);
    Result<void> removed;
    const auto work = [&] { removed = remove_some_files(names, done); };
    co_await state_->executor.run(work);
    if (removed) continue;
    base::log_warning("storage", "{} is not removed whole: {}", path_of(names[done]),
                      removed.error().message());
    co_return make_error_code(StorageErrc::io_failed);
  }
  co_return Result<void>();
}

/// From the directory names[done] on; one that is gone is counted in `done`.
Result<void> LocalDisk::remove_some_files(const std::vector<std::string>& names,
                                          std::size_t& done) {
  auto& files = state_->files;
  int left = kRemovedAtOnce;
  for (; done < names.size() && left > 0; ++done) {
    const std::string path = path_of(names[done]);
    const auto entries = files.list_directory(path);
    if (!entries && entries.error() == make_error_code(base::BaseErrc::not_found)) continue;
    if (!entries) return entries.error();
    for (const auto& entry : *entries) {
      const bool ours = parse_segment_file_name(entry.name) || parse_cache_file_name(entry.name) ||
                        parse_producers_file_name(entry.name) || entry.name.starts_with(kTopicFile);
      if (!ours || entry.is_directory) continue;
      if (left-- == 0) return {};
      MQ_TRY_VOID(files.remove_file(path + "/" + entry.name));
    }
    MQ_TRY_VOID(files.remove_directory(path));
  }
  return {};
}

asio::awaitable<Result<void>> LocalDisk::sync_own_directory() {
  Result<void> synced;
  const auto work = [&] { synced = state_->files.sync_directory(state_->path); };
  co_await state_->executor.run(work);
  if (synced) co_return synced;
  state_->fail("fsync", state_->path, synced.error());
  co_return make_error_code(StorageErrc::disk_failed);
}

void LocalDisk::start() {
  tasks_.spawn("storage checkpoint", keep_checkpoint());
  tasks_.spawn("storage sync of memory logs", keep_memory_logs_synced());
  tasks_.spawn("storage high-water marks", keep_watermarks());
  tasks_.spawn("storage damage", keep_damage());
  tasks_.spawn("storage retention", keep_retention());
  tasks_.spawn("storage space watch", watch_space());
  tasks_.spawn("storage scrub", scrubber_.run());
}

/// False when the disk is stopping.
asio::awaitable<bool> LocalDisk::pause(std::chrono::milliseconds interval) {
  const auto due = state_->home.now() + interval;
  while (!stopping_ && !state_->failed() && state_->home.now() < due)
    co_await wake_.wait_until(due);
  co_return !stopping_ && !state_->failed();
}

/// Waits for a finished segment that the checkpoint does not name, or else until `due`. False when
/// the disk is stopping.
asio::awaitable<bool> LocalDisk::checkpoint_wanted(base::TimePoint due) {
  const auto waits = [&] {
    const bool named =
        flusher_->progress().rolls == checkpointed_.rolls || MQ_MUTANT("checkpoint_by_time_only");
    return named && state_->home.now() < due;
  };
  while (!stopping_ && !state_->failed() && waits()) co_await wake_.wait_until(due);
  co_return !stopping_ && !state_->failed();
}

/// At every roll, because recovery takes damage above the recovery point for a torn tail and cuts
/// it, later segments included; and by time. Rolls that come meanwhile share the next one.
asio::awaitable<void> LocalDisk::keep_checkpoint() {
  auto due = state_->home.now() + state_->config.checkpoint_interval;
  while (true) {
    const bool wanted = co_await checkpoint_wanted(due);
    if (!wanted) co_return;
    due = state_->home.now() + state_->config.checkpoint_interval;
    const auto seen = flusher_->progress();
    if (seen.changes == checkpointed_.changes) continue;
    const auto written = co_await checkpoint_.write();
    if (written) checkpointed_ = seen;
    const bool running = co_await pause(written ? kCheckpointSpacing : kCheckpointRetry);
    if (!running) co_return;
  }
}

asio::awaitable<void> LocalDisk::keep_memory_logs_synced() {
  while (true) {
    const bool running = co_await pause(state_->config.memory_sync_interval);
    if (!running) co_return;
    for (const auto& log : logs()) log->worker().post([log] { log->request_sync_without_hurry(); });
  }
}

asio::awaitable<void> LocalDisk::keep_retention() {
  while (true) {
    const bool running = co_await pause(state_->config.retention_interval);
    if (!running) co_return;
    for (const auto& log : logs()) {
      if (stopping_) co_return;
      auto pass = log->apply_retention();
      co_await run_on(log->worker(), std::move(pass));
    }
  }
}

void LocalDisk::state_changed() {
  if (state_->failed()) {
    journal_->disk_failed();
    state_->write_behind->end();
    wake_.notify_all();
    for (const auto& log : logs()) log->worker().post([log] { log->disk_changed(); });
  }
  if (changed_) changed_();
}

asio::awaitable<Result<void>> LocalDisk::stop() {
  if (stopping_) co_return make_error_code(StorageErrc::closed);
  stopping_ = true;
  scrubber_.stop();
  flusher_->hurry();
  wake_.notify_all();
  co_await tasks_.wait();
  for (const auto& log : logs()) log->worker().post([log] { log->begin_stop(); });
  bool synced = true;
  for (const auto& log : logs()) {
    if (log->sync_state() == nullptr) continue;
    auto finishing = log->finish_stop();
    const bool done = co_await run_on(log->worker(), std::move(finishing));
    synced = synced && done;
  }
  Result<void> result = make_error_code(StorageErrc::disk_failed);
  if (synced && !state_->failed()) {
    result = co_await journal_settled();
  }
  std::uint64_t last_group = 0;
  if (result) last_group = co_await conclude_journal();
  if (result) result = co_await checkpoint_.write();
  if (result) result = co_await write_watermarks();
  if (result) co_await write_damage();  // also what was found since keep_damage() ended
  if (result) result = co_await write_clean_marker(last_group);
  co_await end_all();
  co_return result;
}

/// Returns the number of its last group; 0: a start has to read it.
asio::awaitable<std::uint64_t> LocalDisk::conclude_journal() {
  auto wait = std::make_shared<JournalWait>(state_->home);
  journal_->conclude(JournalWait::done(wait));
  const auto concluded = co_await JournalWait::until_durable(wait);
  co_return concluded ? journal_->concluded() : 0;
}

/// REC-4: every flush has succeeded and the checkpoint says so.
asio::awaitable<Result<void>> LocalDisk::write_clean_marker(std::uint64_t journal_group) {
  CleanMarker marker;
  marker.journal_group = journal_group;
  marker.incarnation = state_->config.incarnation;
  for (const auto& [id, log] : logs_) {
    if (!log->sync_state()) continue;
    const SyncPoint end = flusher_->reached(*log->sync_state()).recovery_point;
    marker.logs.push_back({id, end.offset, end.segment_base, end.position});
  }
  const auto body = encode_clean_marker(marker);
  Result<void> saved;
  const auto work = [&] {
    saved = save_sealed(state_->files, path_of(kCleanMarkerFile), kCleanMarkerMagic, body);
  };
  co_await state_->executor.run(work);
  co_return saved;
}

asio::awaitable<void> LocalDisk::end_all() {
  for (const auto& log : logs()) co_await close_log(log);
  logs_.clear();
  journal_->end();
  state_->listen(nullptr);
  lock_ = nullptr;
}

}  // namespace mq::storage
