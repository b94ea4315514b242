#include "storage/local_log.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/log.h"
#include "base/mutants.h"
#include "model/record_batch.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::LeaderEpoch;
using model::ModelErrc;
using model::Offset;

constexpr std::uint64_t kAllocateFrom = std::uint64_t{64} << 10;  // small partitions take nothing
constexpr std::uint64_t kAllocateStepMin = std::uint64_t{1} << 20;
constexpr std::uint64_t kAllocateStepMax = std::uint64_t{32} << 20;
/// The kernel keeps what one write brought in pages of up to this size.
constexpr std::uint64_t kStrideUnit = std::uint64_t{1} << 20;
/// A log that is written faster needs no space taken ahead: its strides are large, and the file
/// system takes space for each as a whole. Taking it holds up appends to the same file.
constexpr std::uint64_t kFastBytesPerSecond = std::uint64_t{1} << 20;
constexpr std::uint64_t kSegmentBytesMin = std::uint64_t{64} << 10;
constexpr std::int64_t kSegmentAgeMsMin = 1'000;
/// The index holds offsets relative to the segment's base and positions in 32 bits.
constexpr std::int64_t kSegmentOffsetsMax = std::numeric_limits<std::uint32_t>::max();

StorageErrc refusal_of(const Error& error) {
  if (error == make_error_code(ModelErrc::unsupported_format))
    return StorageErrc::unsupported_format;
  if (error == make_error_code(ModelErrc::too_large)) return StorageErrc::batch_too_large;
  return StorageErrc::corrupt_batch;
}

}  // namespace

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
      tail_(tail_budget) {
  if (failure_) return;
  for (std::size_t i = 0; i + 1 < recovered.segments.size(); ++i) {
    const auto& segment = recovered.segments[i];
    sealed_.push_back({.base = segment.base_offset,
                       .end = recovered.segments[i + 1].base_offset,
                       .bytes = segment.bytes});
    sealed_bytes_ += segment.bytes;
  }
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

Result<AppendInfo> LocalLog::append(base::Buffer owner, base::MutableBytes batch) {
  if (failure_ || disk_->failed()) [[unlikely]]
    return failure();
  if (stopping_) return StorageErrc::closed;
  const auto parsed = model::parse_produced(batch, spec_.settings.batch_bytes);
  if (!parsed) return refusal_of(parsed.error());
  return append(std::move(owner), batch, *parsed);
}

Result<AppendInfo> LocalLog::append(base::Buffer owner, base::MutableBytes batch,
                                    const model::RecordBatchView& parsed) {
  MQ_TRY_VOID(may_append(parsed));
  const std::int64_t time_ms = next_append_time_ms();
  const auto began = spec_.worker->now();
  if (must_roll(parsed, time_ms)) {
    MQ_TRY_VOID(roll());
  }
  const AppendInfo info = stamp(batch, parsed, time_ms);
  const base::Bytes written_bytes = batch;
  const auto taken = active_->write_at(std::span(&written_bytes, 1), end_.position);
  const auto now = spec_.worker->now();
  disk_->note_append_time(now, now - began);
  MQ_TRY_VOID(wrote(batch, taken));
  written(info, std::move(owner), parsed);
  return info;
}

Result<void> LocalLog::may_append(const model::RecordBatchView& batch) const {
  if (failure_ || disk_->failed()) [[unlikely]]
    return failure();
  if (stopping_) return StorageErrc::closed;
  MQ_CHECK(may_append_, "partition {}: append without start_epoch()", spec_.id.text());
  MQ_CHECK(!writing_, "partition {}: two appends at once", spec_.id.text());
  MQ_CHECK(!cutting_, "partition {}: append while it is cut", spec_.id.text());
  if (batch.batch_bytes() > spec_.settings.batch_bytes) return StorageErrc::batch_too_large;
  if (disk_->full() || cut_pending_) return StorageErrc::storage_full;
  return {};
}

/// LOG-8: whatever the clock does, append times do not fall.
std::int64_t LocalLog::next_append_time_ms() const {
  const std::int64_t wall_clock_ms = spec_.worker->wall_clock_ms();
  return MQ_MUTANT("append_time_follows_the_clock") ? wall_clock_ms
                                                    : std::max(end_.append_time_ms, wall_clock_ms);
}

AppendInfo LocalLog::stamp(base::MutableBytes batch, const model::RecordBatchView& parsed,
                           std::int64_t time_ms) {
  const AppendInfo info{end_.offset,
                        model::advance(end_.offset, std::int64_t{parsed.last_offset_delta()} + 1),
                        leader_epoch_, time_ms};
  model::stamp(batch, info.base_offset, info.leader_epoch, time_ms);
  return info;
}

bool LocalLog::must_roll(const model::RecordBatchView& batch, std::int64_t time_ms) const {
  if (end_.position == 0) return false;
  if (end_.position + batch.batch_bytes() > segment_bytes_max()) return true;
  const std::int64_t offsets = end_.offset.value() - end_.segment_base.value();
  if (offsets + std::int64_t{batch.last_offset_delta()} >= kSegmentOffsetsMax) return true;
  return time_ms - end_.segment_first_append_time_ms >= segment_age_ms_max();
}

std::uint64_t LocalLog::segment_bytes_max() const {
  const auto& settings = spec_.settings;
  if (settings.retention_bytes == 0) return settings.segment_bytes;
  // Whole segments are removed: small ones keep the log near its limit.
  return std::min(settings.segment_bytes, std::max(settings.retention_bytes / 4, kSegmentBytesMin));
}

std::int64_t LocalLog::segment_age_ms_max() const {
  const auto& settings = spec_.settings;
  const std::int64_t age = settings.segment_age.count();
  if (settings.retention_age.count() == 0) return age;
  return std::min(age, std::max(settings.retention_age.count() / 4, kSegmentAgeMsMin));
}

/// One system call, always at the end: what was written stays as it is (LOG-2). LOG-6: on any
/// failure the file and the log end are as before.
Result<void> LocalLog::wrote(base::Bytes batch, const Result<std::size_t>& taken) {
  if (taken && *taken == batch.size()) [[likely]]
    return {};
  const bool full = taken || taken.error() == make_error_code(base::BaseErrc::no_space);
  const std::string path = path_of(segment_file_name(end_.segment_base));
  if (!full) {
    disk_->fail("write", path, taken.error());
    disk_changed();
    return StorageErrc::disk_failed;
  }
  if (const auto undone = active_->truncate(end_.position); !undone) {
    disk_->fail("ftruncate", path, undone.error());
    disk_changed();
    return StorageErrc::disk_failed;
  }
  allocated_ = end_.position;
  disk_->set_full(true);
  return StorageErrc::storage_full;
}

void LocalLog::written(const AppendInfo& info, base::Buffer owner,
                       const model::RecordBatchView& batch) {
  const std::uint64_t position = end_.position;
  const base::SharedBytes shared{owner, batch.bytes()};
  active_index_.note(info.base_offset, end_.position);
  active_times_.note(info.append_time_ms, info.base_offset, end_.position);
  tail_.add(std::move(owner), batch.bytes(), info.base_offset, info.end_offset);
  if (end_.position == 0) end_.segment_first_append_time_ms = info.append_time_ms;
  end_.offset = info.end_offset;
  end_.position += batch.batch_bytes();
  recent_bytes_.store(bytes_on_disk(), std::memory_order_relaxed);
  end_.leader_epoch = info.leader_epoch;
  end_.append_time_ms = info.append_time_ms;
  note_producer(batch, position);
  journal_image(position);
  if (spec_.settings.durability == model::Durability::disk) {
    journal_append(shared, info.base_offset, position);
  } else {
    confirmed_ = end_.offset;
  }
  if (end_.position + allocate_step_ / 2 > allocated_ && end_.position > kAllocateFrom)
    allocate_ahead();
  disk_->write_behind->appended(*dirty_, batch.batch_bytes());
  if (end_.position - written_behind_ >= disk_->config.write_behind_bytes)
    write_behind(Behind::whole_strides);
  if (disk_->note_appended(batch.batch_bytes())) disk_->ask_for_space_check();
}

void LocalLog::journal_append(base::SharedBytes batch, Offset base, std::uint64_t position) {
  if (!batch.owner) {
    // Nobody keeps these bytes for us.
    batch.owner = base::BufferPool::shared().take(batch.bytes.size());
    std::ranges::copy(batch.bytes, batch.owner.data());
    batch.bytes = base::Bytes(batch.owner.bytes()).first(batch.bytes.size());
  }
  Journal::Batch entry;
  entry.bytes = std::move(batch);
  entry.base = base;
  entry.segment_base = end_.segment_base;
  entry.position = position;
  entry.end = end_;
  journal_->append(journal_log_, std::move(entry));
}

/// An append that begins inside of a block writes it again, and its first bytes may be synced and
/// nowhere else: a power cut in the middle of that takes the whole block. So they have to be in the
/// journal, unless no sync began since the append before, which has seen to it.
bool LocalLog::needs_image() const {
  if (MQ_MUTANT("block_image_after_its_append")) return false;
  const std::uint64_t block = end_.position / kJournalBlockBytes * kJournalBlockBytes;
  if (end_.position == block || end_.position == image_ahead_) return false;
  return imaged_block_ != block || imaged_at_sync_ != flusher_->syncs_begun(*sync_);
}

/// From the beginning of its block; empty: the disk has failed.
std::vector<std::byte> LocalLog::block_below(std::uint64_t position) {
  const std::uint64_t block = position / kJournalBlockBytes * kJournalBlockBytes;
  std::vector<std::byte> bytes(position - block);
  const auto got = active_->read_at(bytes, block);
  if (got && *got == bytes.size()) return bytes;
  disk_->fail("read", path_of(segment_file_name(end_.segment_base)),
              got ? make_error_code(base::BaseErrc::io_failed) : got.error());
  disk_changed();
  return {};
}

/// Of an append at `position` for which no image was made before: the kernel may be writing the
/// block already. Who asks appends_inline() first does not come here.
void LocalLog::journal_image(std::uint64_t position) {
  const std::uint64_t block = position / kJournalBlockBytes * kJournalBlockBytes;
  const std::uint64_t begun = flusher_->syncs_begun(*sync_);
  const bool same = imaged_block_ == block && imaged_at_sync_ == begun;
  const bool made = std::exchange(image_ahead_, ~std::uint64_t{0}) == position;
  imaged_block_ = end_.position / kJournalBlockBytes * kJournalBlockBytes;
  imaged_at_sync_ = begun;
  if (same || made || position == block) return;
  auto bytes = block_below(position);
  if (!bytes.empty()) journal_->image(journal_log_, block, std::move(bytes), end_);
}

/// Takes disk blocks before they are needed, so that a full disk is noticed before an append is.
void LocalLog::allocate_ahead() {
  const std::uint64_t from = std::max(allocated_, end_.position);
  const std::uint64_t limit = segment_bytes_max();
  if (allocating_ || from >= limit) return;
  const std::uint64_t bytes = std::min(allocate_step_, limit - from);
  const auto now = spec_.worker->now();
  const base::Duration since = now - std::exchange(allocate_looked_at_, now);
  const auto seconds = std::chrono::duration<double>(since).count();
  const auto written = end_.position - std::exchange(allocate_looked_at_position_, end_.position);
  if (static_cast<double>(written) > seconds * double{kFastBytesPerSecond}) {
    allocated_ = from + kAllocateStepMin;  // not taken; looked at again there
    return;
  }
  allocating_ = true;
  allocate_step_ = std::min(allocate_step_ * 2, kAllocateStepMax);
  disk_->executor.submit(
      [self = weak_from_this(), disk = disk_, file = active_, from, bytes, worker = spec_.worker] {
        const auto taken = file->allocate(from, bytes);
        const Error error = taken ? Error() : taken.error();
        worker->post([self, file, end = from + bytes, error] {
          const auto log = self.lock();
          if (log && log->active_ == file) log->allocated(end, error);
        });
      });
}

void LocalLog::allocated(std::uint64_t end, Error error) {
  allocating_ = false;
  if (!error) {
    allocated_ = std::max(allocated_, end);
  } else if (error == make_error_code(base::BaseErrc::no_space)) {
    disk_->set_full(true);
  } else if (!failure_) {
    disk_->fail("fallocate", path_of(segment_file_name(end_.segment_base)), error);
    disk_changed();
  }
}

/// Nothing of `disk` topics goes before the journal has it, and the block that it begins in.
void LocalLog::write_behind(Behind how) {
  if (failure_) return;
  std::uint64_t upto = end_.position;
  if (spec_.settings.durability == model::Durability::disk)
    upto = synced_.segment_base == end_.segment_base ? synced_.position : 0;
  // Whole blocks only, which are never written again: by the time it is done, the last one might
  // hold bytes that were synced meanwhile and are not in the journal yet. A stride also stays away
  // from the pages that the next append goes to: it would wait for them.
  const bool small = how == Behind::everything || disk_->config.write_behind_bytes < kStrideUnit;
  const std::uint64_t unit = small ? kJournalBlockBytes : kStrideUnit;
  upto = upto / unit * unit;
  const std::uint64_t least = how == Behind::everything ? 1 : disk_->config.write_behind_bytes;
  if (upto < written_behind_ + least || flusher_->awaits_image(*sync_)) return;
  WriteBehind::Stride stride;
  stride.file = active_;
  stride.position = written_behind_;
  stride.bytes = upto - written_behind_;
  stride.log = dirty_;
  stride.clean = dirty_->appended.load() - (end_.position - upto);
  disk_->write_behind->write(std::move(stride));
  written_behind_ = upto;
}

Result<void> LocalLog::roll() {
  return roll_into(
      disk_->files.open(path_of(segment_file_name(end_.offset)), base::OpenMode::create));
}

Result<void> LocalLog::roll_into(Opened opened) {
  const std::string path = path_of(segment_file_name(end_.offset));
  if (!opened) {
    if (opened.error() != make_error_code(base::BaseErrc::no_space)) return StorageErrc::io_failed;
    disk_->set_full(true);
    return StorageErrc::storage_full;
  }
  const auto size = (*opened)->size();
  if (!size || *size != 0) {
    base::log_error("storage", "{} is in the way of a new segment", path);
    return StorageErrc::io_failed;
  }
  Sealed sealed{.base = end_.segment_base,
                .end = end_.offset,
                .bytes = end_.position,
                .last_append_time_ms = end_.append_time_ms,
                .file = std::move(active_)};
  if (active_index_from_ == 0) {
    sealed.index = std::make_shared<const OffsetIndex>(active_index_);
    write_index(sealed, std::move(active_index_), std::move(active_times_));
  }
  active_ = std::move(*opened);
  active_index_ = OffsetIndex(end_.offset, disk_->config.index_stride_bytes);
  active_times_ = TimeIndex(end_.offset, disk_->config.index_stride_bytes);
  active_index_from_ = 0;
  active_head_index_ = nullptr;
  active_head_times_ = nullptr;
  image_ahead_ = ~std::uint64_t{0};
  end_.segment_base = end_.offset;
  end_.position = 0;
  end_.segment_first_append_time_ms = -1;
  allocated_ = written_behind_ = 0;
  imaged_block_ = ~std::uint64_t{0};
  allocate_step_ = kAllocateStepMin;
  allocating_ = false;
  allocate_looked_at_ = spec_.worker->now();
  allocate_looked_at_position_ = 0;
  sealed_bytes_ += sealed.bytes;
  flusher_->rolled(*sync_, {sealed.base, sealed.bytes}, active_, end_);
  sealed_.push_back(std::move(sealed));
  keep_open(sealed_.back().base);
  flusher_->request(sync_, end_);  // what is left behind becomes durable, under `memory` too
  snapshot_producers();
  return {};
}

/// Indexes are caches: a failure only means that they are made again when needed.
void LocalLog::write_index(const Sealed& sealed, OffsetIndex index, TimeIndex times) {
  SegmentIndex contents{.offsets = std::move(index)};
  contents.times = std::move(times);
  contents.end_offset = sealed.end;
  contents.segment_bytes = sealed.bytes;
  contents.first_append_time_ms = end_.segment_first_append_time_ms;
  contents.last_append_time_ms = sealed.last_append_time_ms;
  contents.last_leader_epoch = end_.leader_epoch;
  for (const auto& start : epoch_starts_) {
    if (start.start_offset >= sealed.base && start.start_offset < sealed.end)
      contents.epoch_starts.push_back(start);
  }
  auto visit = std::make_shared<Visit>(*this);  // ends on the worker
  disk_->executor.submit([disk = disk_, path = path_of(index_file_name(sealed.base)),
                          time_path = path_of(time_index_file_name(sealed.base)),
                          contents = std::move(contents), visit = std::move(visit),
                          worker = spec_.worker]() mutable {
    if (!write_segment_index(disk->files, path, contents))
      static_cast<void>(disk->files.remove_file(path));
    if (!write_time_index(disk->files, time_path, contents.times, contents.segment_bytes))
      static_cast<void>(disk->files.remove_file(time_path));
    worker->post([visit = std::move(visit)] {});
  });
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

asio::awaitable<Result<void>> LocalLog::journaled(JournalContent content) {
  const Visit visit(*this);
  auto wait = std::make_shared<JournalWait>(*spec_.worker);
  journal_->note(journal_log_, std::move(content), JournalWait::done(wait));
  co_return co_await JournalWait::until_durable(wait);
}

JournalLogState LocalLog::journal_state() const {
  JournalLogState state;
  state.durability = spec_.settings.durability;
  state.log_start = log_start_;
  state.recovery_point = end_;
  state.end = state.durable = end_.offset;
  if (!epoch_starts_.empty()) state.epoch_start = epoch_starts_.back();
  return state;
}

void LocalLog::note_recovered() {
  if (sync_) journal_->synced(journal_log_, end_, 0);
}

asio::awaitable<Result<void>> LocalLog::record_recovered() {
  JournalContent point = JournalRecoveryPoint{end_};
  const auto noted = co_await journaled(std::move(point));
  co_return noted;
}

void LocalLog::begin_stop() {
  stopping_ = true;
  request_sync();
}

asio::awaitable<bool> LocalLog::finish_stop() {
  const Visit visit(*this);
  while (writing_ || imaging_ || cutting_) co_await wake_.wait();
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
