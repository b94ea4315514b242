#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "storage/local_disk.h"
#include "storage/log_files.h"
#include "storage/sealed_file.h"
#include "storage/space_reserve.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

/// Free space above which appends go on, so that they do not stop and go around the mark.
constexpr std::uint64_t resume_mark(std::uint64_t low_mark) { return low_mark + low_mark / 4; }

constexpr int kNearShare = 10;
/// The write rate forgets half of what was in so much time.
constexpr double kRateHalfLifeSeconds = 120;

/// People remove what was put aside; nothing depends on it.
constexpr auto kMeasureAside = std::chrono::seconds(60);

/// What a reader has not fetched so long after its last fetch is read again if it comes.
constexpr auto kReadAheadKept = std::chrono::seconds(5);

}  // namespace

/// The logs with the most come first, and as many of them as have half of it all: one stride of
/// many bytes costs the disk as much as one of few.
void LocalDisk::write_behind_all() {
  state_->write_behind->heard();
  auto dirtiest = logs();
  std::ranges::sort(dirtiest, std::ranges::greater{},
                    [](const LogPtr& log) { return log->dirty_bytes(); });
  std::uint64_t left = state_->write_behind->dirty() / 2;
  for (const auto& log : dirtiest) {
    const auto bytes = log->dirty_bytes();
    if (bytes == 0) break;
    log->worker().post([log] { log->write_behind(LocalLog::Behind::everything); });
    if (bytes >= left) break;
    left -= bytes;
  }
}

asio::awaitable<void> LocalDisk::watch_space() {
  for (;;) {
    // Near the mark a second may be too long: a small disk is written full in less.
    const bool near = !state_->full() && free_bytes_ < 4 * low_mark_bytes_;
    const auto interval = state_->config.space_interval / (near ? kNearShare : 1);
    const bool go = co_await pause(interval);  // named: GCC bug 106188
    if (!go) co_return;
    if (state_->write_behind->wants_more()) write_behind_all();
    state_->read_ahead.drop_unused_since(state_->home.now() - kReadAheadKept);
    co_await check_space();
  }
}

/// REC-6: refuses appends before the disk is quite full, and takes them again with some space.
asio::awaitable<void> LocalDisk::check_space() {
  if (checking_space_ || state_->failed()) co_return;
  checking_space_ = true;
  note_write_rate();
  const std::uint64_t used = used_bytes();
  const bool measure = state_->home.now() >= measure_aside_at_;
  if (measure) measure_aside_at_ = state_->home.now() + kMeasureAside;
  Result<std::uint64_t> free = make_error_code(StorageErrc::closed);
  Result<PutAside> aside = make_error_code(StorageErrc::closed);
  const auto work = [&] {
    free = look_at_space(used);
    if (measure) aside = measure_put_aside(state_->files, state_->path);
  };
  co_await state_->executor.run(work);
  checking_space_ = false;
  if (aside) put_aside_ = *aside;
  if (!free) co_return;
  free_bytes_ = *free;
  low_mark_bytes_ = low_mark(*free, used);
  if (free_bytes_ < low_mark_bytes_) {
    state_->set_full(true);
  } else if (free_bytes_ >= resume_mark(low_mark_bytes_)) {
    state_->set_full(false);
  }
}

std::uint64_t LocalDisk::low_mark(std::uint64_t free, std::uint64_t used) const {
  return std::min(state_->config.low_mark_bytes, (free + used) / 10);
}

/// On a disk thread. With space to spare it makes one slice of the reserve that is missing.
Result<std::uint64_t> LocalDisk::look_at_space(std::uint64_t used) {
  MQ_TRY(const auto free, state_->files.free_bytes(state_->path));
  const std::uint64_t slice = reserve_slice_bytes(free + used);
  if (!reserve_said_) {
    reserve_said_ = true;
    if (slice == 0) {
      base::log_warning("storage", "disk {} is too small to keep anything back for when it is full",
                        state_->path);
    } else {
      base::log_info("storage", "disk {}: {} bytes are kept back for when it is full", state_->path,
                     slice * kReserveSlices);
    }
  }
  const bool room = free >= resume_mark(low_mark(free, used)) + slice * kReserveSlices;
  for (int n = 0; room && n < kReserveSlices; ++n) {
    if (!keep_reserve_slice(state_->files, state_->path, slice)) break;
  }
  return free;
}

/// Appended bytes per second, of which the newest count most.
void LocalDisk::note_write_rate() {
  const auto now = state_->home.now();
  const std::uint64_t bytes = state_->appended_bytes();
  const double seconds = std::chrono::duration<double>(now - rated_at_).count();
  if (rated_at_ == base::TimePoint{}) {
    rated_at_ = now;
  } else if (seconds > 0) {
    const double share = 1 - std::exp2(-seconds / kRateHalfLifeSeconds);
    write_rate_ += (static_cast<double>(bytes - rated_bytes_) / seconds - write_rate_) * share;
    rated_at_ = now;
  }
  rated_bytes_ = bytes;
}

asio::awaitable<void> LocalDisk::keep_watermarks() {
  while (true) {
    const bool running = co_await pause(state_->config.watermark_interval);
    if (!running) co_return;
    static_cast<void>(co_await write_watermarks());
  }
}

/// As soon as something is found, so that a restart knows it.
asio::awaitable<void> LocalDisk::keep_damage() {
  while (!stopping_ && !state_->failed()) {
    co_await write_damage();
    if (stopping_ || state_->failed()) co_return;
    co_await wake_.wait();
  }
}

/// Hints: on a full disk, or where they cannot be written, the next reader finds it again.
asio::awaitable<void> LocalDisk::write_damage() {
  auto damage = state_->damage.all();
  if (damage == damage_written_) co_return;
  const auto body = encode_damage(damage);
  Result<void> written;
  const auto work = [&] {
    written = write_cache_file(state_->files, path_of(kDamagedFile), kDamagedMagic, body);
  };
  damage_written_.reset();
  co_await state_->executor.run(work);
  if (written) damage_written_ = std::move(damage);
}

void LocalDisk::forget_damage(const model::PartitionId& id) {
  if (state_->damage.set(id, {})) wake_.notify_all();
}

Watermarks LocalDisk::watermarks() const {
  Watermarks marks;
  for (const auto& [id, log] : logs_) {
    const Offset mark = log->recent_high_watermark_hint();
    if (mark >= Offset(0)) marks.emplace(id, mark);
  }
  return marks;
}

/// Hints: on a full disk the old ones must do.
asio::awaitable<Result<void>> LocalDisk::write_watermarks() {
  auto marks = watermarks();
  if (marks == watermarks_written_) co_return Result<void>();
  const auto path = path_of(kWatermarksFile);
  Result<void> saved;
  const auto work = [&] {
    saved = save_sealed(state_->files, path, kWatermarksMagic, encode_watermarks(marks));
  };
  co_await state_->executor.run(work);
  if (saved) {
    watermarks_written_ = std::move(marks);
  } else if (saved.error() != make_error_code(base::BaseErrc::no_space)) {
    state_->fail("write", path, saved.error());
    co_return make_error_code(StorageErrc::disk_failed);
  }
  co_return Result<void>();
}

}  // namespace mq::storage
