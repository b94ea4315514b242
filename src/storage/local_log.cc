#include "storage/local_log.h"

#include <algorithm>

#include "storage/journal_state.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

constexpr std::int64_t kMomentMs = 1'000;

/// In eighths of a stride, by the partition.
std::uint64_t first_stride(const model::PartitionId& id, std::uint64_t bytes) {
  constexpr std::uint64_t kPlaces = 8;
  const std::uint64_t place = std::hash<model::PartitionId>{}(id) % kPlaces + 1;
  return std::max<std::uint64_t>(bytes * place / kPlaces, 1);
}

}  // namespace

using model::LeaderEpoch;
using model::Offset;

Result<std::shared_ptr<LocalLog>> LocalLog::open(const LogSpec& spec, std::string directory,
                                                 RecoveredLog recovered,
                                                 std::shared_ptr<DiskState> disk,
                                                 std::shared_ptr<Flusher> flusher,
                                                 std::shared_ptr<Journal> journal,
                                                 TailBudget& tail_budget, PersistLogStart persist) {
  std::shared_ptr<base::File> active;
  if (!recovered.failure) {
    const auto path = directory + "/" + segment_file_name(recovered.segments.back().base_offset);
    MQ_TRY(active, disk->files.open(path, base::OpenMode::write));
  }
  std::shared_ptr<LocalLog> log(new LocalLog(spec, std::move(directory), std::move(recovered),
                                             std::move(active), std::move(disk), std::move(flusher),
                                             std::move(journal), tail_budget, std::move(persist)));
  if (!log->failure_) log->attach();
  return log;
}

LocalLog::LocalLog(const LogSpec& spec, std::string directory, RecoveredLog recovered,
                   std::shared_ptr<base::File> active, std::shared_ptr<DiskState> disk,
                   std::shared_ptr<Flusher> flusher, std::shared_ptr<Journal> journal,
                   TailBudget& tail_budget, PersistLogStart persist)
    : spec_(spec),
      directory_(std::move(directory)),
      disk_(std::move(disk)),
      flusher_(std::move(flusher)),
      journal_(std::move(journal)),
      persist_(std::move(persist)),
      failure_(recovered.failure),
      wake_(*spec.worker),
      log_start_(recovered.log_start_offset),
      end_(recovered.end),
      synced_(recovered.end),
      confirmed_(recovered.end.offset),
      leader_epoch_(recovered.end.leader_epoch),
      epoch_starts_(recovered.epoch_starts),
      producers_(std::move(recovered.producers)),
      last_batch_(recovered.last_batch),
      snapshots_(recovered.producer_snapshots.begin(), recovered.producer_snapshots.end()),
      snapshot_position_(recovered.end.position),
      active_(std::move(active)),
      active_index_(std::move(recovered.active_index)),
      active_index_from_(recovered.active_index_from),
      active_times_(std::move(recovered.active_times)),
      allocate_step_(kAllocateStepMin),
      first_stride_(first_stride(spec_.id, disk_->config.write_behind_bytes)),
      tail_(tail_budget) {
  problem_ = std::move(recovered.problem);
  if (failure_) return;
  for (const auto& place : recovered.damage) damage_.emplace(place.segment, place);
  for (std::size_t i = 0; i + 1 < recovered.segments.size(); ++i) {
    const auto& segment = recovered.segments[i];
    sealed_.push_back({.base = segment.base_offset,
                       .end = recovered.segments[i + 1].base_offset,
                       .bytes = segment.bytes});
    sealed_bytes_ += segment.bytes;
  }
  whole_ = end_;
  allocated_ = written_behind_ = end_.position;
  allocate_looked_at_ = spec.worker->now();
  allocate_looked_at_position_ = end_.position;
  recent_bytes_ = bytes_on_disk();
  // An epoch may have begun in which nothing was appended.
  if (!epoch_starts_.empty())
    leader_epoch_ = std::max(leader_epoch_, epoch_starts_.back().leader_epoch);
}

void LocalLog::attach() {
  LogCheckpoint reached;
  reached.id = spec_.id;
  reached.log_start_offset = log_start_;
  reached.recovery_point = end_;
  reached.epoch_starts = epoch_starts_;
  for (const auto& segment : sealed_) reached.sealed.push_back({segment.base, segment.bytes});
  // Results may come when the log has gone.
  auto ended = [self = weak_from_this()](const std::optional<SyncPoint>&) {
    if (const auto log = self.lock()) log->wake();
  };
  auto joined = std::make_shared<std::weak_ptr<JournalLog>>();
  auto moved = [journal = journal_, joined](const SyncPoint& point, std::uint64_t cuts) {
    if (const auto log = joined->lock()) journal->synced(log, point, cuts);
  };
  auto advanced = [self = weak_from_this()](const SyncPoint& point, std::uint64_t cuts) {
    const auto log = self.lock();
    if (log && cuts == log->cuts_) log->on_durable(point);
  };
  sync_ = std::make_shared<LogSync>(*spec_.worker, directory_, std::move(reached), active_, dirty_,
                                    std::move(ended), std::move(moved));
  journal_log_ =
      std::make_shared<JournalLog>(spec_.id, *spec_.worker, sync_, end_, std::move(advanced));
  *joined = journal_log_;
  journal_->attach(journal_log_);
}

LocalLog::~LocalLog() {
  disk_->write_behind->settled(*dirty_, dirty_->appended.load());
  disk_->read_ahead.forget(this);
  if (sync_) flusher_->close(*sync_);
  if (journal_log_) journal_->close(*journal_log_);
}

Result<void> LocalLog::start_epoch(LeaderEpoch epoch) {
  if (failure_ || disk_->failed()) return failure();
  if (epoch <= leader_epoch_) return StorageErrc::stale_leader_epoch;  // PAR-4
  leader_epoch_ = epoch;
  may_append_ = true;
  if (!epoch_starts_.empty() && epoch_starts_.back().start_offset == end_.offset)
    epoch_starts_.pop_back();  // nothing was appended in it
  epoch_starts_.push_back({epoch, end_.offset});
  flusher_->set_epoch_starts(*sync_, epoch_starts_);
  journal_->note(journal_log_, JournalEpochStart{{epoch, end_.offset}});
  return {};
}

Error LocalLog::failure() const {
  if (failure_) return failure_;
  return disk_->failed() ? make_error_code(StorageErrc::disk_failed) : Error();
}

Offset LocalLog::high_watermark_hint() const {
  return std::clamp(recent_high_watermark_hint(), log_start_, std::max(log_start_, end_.offset));
}

void LocalLog::set_settings(const model::TopicSettings& settings) {
  const bool changed = settings.durability != spec_.settings.durability;
  spec_.settings = settings;
  if (!failure_ && changed) {
    const bool to_disk = settings.durability == model::Durability::disk;
    journal_->note(journal_log_,
                   JournalDurability{settings.durability, to_disk ? end_.offset : Offset(-1)});
  }
  if (!failure_) request_sync();
  confirm();
}

/// A group of the journal is durable that covers the log up to `point`.
void LocalLog::on_durable(const SyncPoint& point) {
  if (!failure_ && !disk_->failed() && point.offset >= synced_.offset) {
    if (disk_->counters.invariant(point.offset <= end_.offset, "REC-2", directory_)) {
      synced_ = point;
      confirm();
      if (disk_->write_behind->wants_more()) write_behind(Behind::everything);
    } else {
      // More durable than written cannot be; nothing may be built on it.
      failure_ = StorageErrc::partition_corrupt;
      changed();
    }
  }
  wake_.notify_all();
}

void LocalLog::confirm() {
  const Offset now =
      spec_.settings.durability == model::Durability::disk ? synced_.offset : end_.offset;
  if (now <= confirmed_) return;
  confirmed_ = now;
  changed();
}

void LocalLog::changed() const {
  if (changed_) changed_();
}

void LocalLog::request_sync() {
  if (!failure_ && flusher_->recovery_point(*sync_) != end_) flusher_->request(sync_, end_);
}

/// The append behind a sync that reaches into its block waits for the journal. Of a log that is
/// being written what came within the last moment has time until the next sync.
void LocalLog::request_sync_without_hurry() {
  const SyncPoint reached = flusher_->recovery_point(*sync_);
  if (failure_ || reached == end_) return;
  const bool written_now = reached.offset < whole_.offset &&
                           spec_.worker->wall_clock_ms() - whole_.append_time_ms < kMomentMs;
  Flusher::Wanted wanted(1, {sync_, written_now ? whole_ : end_});
  flusher_->request_without_hurry(wanted);
}

asio::awaitable<Result<void>> LocalLog::journaled(JournalContent content) {
  const Visit visit(*this);
  auto wait = std::make_shared<JournalWait>(*spec_.worker);
  journal_->note(journal_log_, content, JournalWait::done(wait));
  co_return co_await JournalWait::until_durable(wait);
}

JournalLogState LocalLog::journal_state() const {
  JournalLogState state;
  state.durability = spec_.settings.durability;
  state.log_start = log_start_;
  state.recovery_point = end_;
  state.end = state.durable = end_.offset;
  if (!epoch_starts_.empty()) state.epoch_start = epoch_starts_.back();
  // An epoch that began here, and in which the leader's log has nothing, was still seen (PAR-4).
  apply_epoch_start(state, {leader_epoch_, end_.offset});
  return state;
}

void LocalLog::note_recovered() {
  if (sync_) journal_->synced(journal_log_, end_, 0);
}

asio::awaitable<Result<void>> LocalLog::record_recovered() {
  const JournalContent point = JournalRecoveryPoint{end_};
  const auto noted = co_await journaled(point);
  co_return noted;
}

void LocalLog::begin_stop() {
  stopping_ = true;
  request_sync();
}

asio::awaitable<bool> LocalLog::finish_stop() {
  const Visit visit(*this);
  while (writing_ || rolling_ || imaging_ || cutting_) co_await wake_.wait();
  request_sync();
  // The journal knows of it too, so that the next start finds nothing to put back.
  while (synced_ != end_ || flusher_->recovery_point(*sync_) != end_) {
    if (failure()) co_return false;
    co_await wake_.wait();
  }
  if (failure()) co_return false;
  Sealed active{.base = end_.segment_base, .end = end_.offset, .bytes = end_.position};
  active.last_append_time_ms = end_.append_time_ms;
  if (active_index_from_ == 0 && active_index_.entries().size() > 1)
    write_index(active, active_index_, active_times_);
  co_await snapshot_producers_of_the_end();
  if (allocated_ <= end_.position) co_return true;
  const auto give_back = [file = active_, bytes = end_.position, disk = disk_, path = directory_] {
    if (const auto trimmed = file->truncate(bytes); !trimmed)
      disk->fail("ftruncate", path, trimmed.error());
  };
  co_await disk_->executor.run(give_back);
  co_return !failure();
}

asio::awaitable<void> LocalLog::close() {
  auto self = shared_from_this();
  if (failure_ != make_error_code(StorageErrc::closed)) {
    failure_ = StorageErrc::closed;
    if (sync_) flusher_->close(*sync_);
    if (journal_log_) journal_->close(*journal_log_);
    tail_.clear();
    disk_->read_ahead.forget(this);
    disk_->write_behind->settled(*dirty_, dirty_->appended.load());
    changed();
    changed_ = nullptr;
  }
  wake_.notify_all();
  // Syncs and other work under way use its files, which may be removed after this.
  while (visits_ > 0 || (sync_ && flusher_->syncing(*sync_))) co_await wake_.wait();
}

void LocalLog::disk_changed() {
  if (!disk_->failed() || failure_) return;
  failure_ = StorageErrc::disk_failed;
  tail_.clear();
  wake_.notify_all();
  // Not from inside append(), which may have found the failure.
  spec_.worker->post([self = weak_from_this()] {
    if (const auto log = self.lock()) log->changed();
  });
}

}  // namespace mq::storage
