#include <algorithm>
#include <limits>

#include "base/log.h"
#include "storage/local_log.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

constexpr std::uint64_t kAllocateStepMax = std::uint64_t{32} << 20;
/// A log that is written faster needs no space taken ahead: its strides are large, and the file
/// system takes space for each as a whole. Taking it holds up appends to the same file.
constexpr std::uint64_t kFastBytesPerSecond = std::uint64_t{1} << 20;
constexpr std::uint64_t kSegmentBytesMin = std::uint64_t{64} << 10;
constexpr std::int64_t kSegmentAgeMsMin = 1'000;
/// What comes next may have been stamped by another broker, whose clock is ahead by less.
constexpr std::int64_t kAgeSoonMs = 1'000;
/// The index holds offsets relative to the segment's base and positions in 32 bits.
constexpr std::int64_t kSegmentOffsetsMax = std::numeric_limits<std::uint32_t>::max();

}  // namespace

bool LocalLog::must_roll(const model::RecordBatchView& batch, std::int64_t time_ms) const {
  if (end_.position == 0) return false;
  if (end_.position + batch.batch_bytes() > segment_bytes_max()) return true;
  const std::int64_t offsets = end_.offset.value() - end_.segment_base.value();
  if (offsets + std::int64_t{batch.last_offset_delta()} >= kSegmentOffsetsMax) return true;
  return time_ms - end_.segment_first_append_time_ms >= segment_age_ms_max();
}

/// The next batches may begin a new segment. Its file is then made by a thread: where the head is
/// busy that takes a tenth of a second, which the worker's other partitions do not wait for.
bool LocalLog::rolls_soon() const {
  if (end_.position == 0) return false;
  const std::uint64_t max = segment_bytes_max();
  const std::uint64_t batches = std::min<std::uint64_t>(spec_.settings.batch_bytes, max / 8);
  if (end_.position + batches > max) return true;
  const std::int64_t age_ms = own_append_time_ms() - end_.segment_first_append_time_ms;
  return age_ms >= segment_age_ms_max() - kAgeSoonMs;
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
  rolling_ = false;
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
  whole_ = end_;
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

asio::awaitable<void> LocalLog::make_next_file(Opened& opened) {
  const auto work = [disk = disk_, path = path_of(segment_file_name(end_.offset)), &opened] {
    opened = disk->files.open(path, base::OpenMode::create);
  };
  co_await disk_->append_threads.run(work);
}

asio::awaitable<Result<void>> LocalLog::roll_later() {
  Opened opened = make_error_code(StorageErrc::closed);
  writing_ = true;
  co_await make_next_file(opened);
  writing_ = false;
  wake();
  if (failure()) co_return failure();
  co_return roll_into(std::move(opened));
}

/// The same while nobody appends. Who does so meanwhile without asking appends_inline() goes first:
/// he rolls into the same file.
asio::awaitable<Result<void>> LocalLog::roll_idle() {
  if (end_.position == 0 || writing_ || imaging_ || cut_pending_) co_return Result<void>();
  Opened opened = make_error_code(StorageErrc::closed);
  rolling_ = true;
  co_await make_next_file(opened);
  wake();
  if (!std::exchange(rolling_, false)) co_return Result<void>();
  if (failure()) co_return failure();
  co_return roll_into(std::move(opened));
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

}  // namespace mq::storage
