#include "storage/local_log.h"
#include "storage/storage_format.h"

namespace mq::storage {

bool LocalLog::appends_inline() const {
  if (failure_ || disk_->failed()) return true;  // it is refused at once
  return !writing_ && !needs_image() && disk_->write_behind->has_room() &&
         !disk_->appends_are_slow(spec_.worker->now());
}

asio::awaitable<Result<AppendInfo>> PartitionLog::append_later(base::Buffer owner,
                                                               base::MutableBytes batch,
                                                               model::RecordBatchView parsed) {
  co_return append(std::move(owner), batch, parsed);
}

asio::awaitable<Result<AppendInfo>> LocalLog::append_later(base::Buffer owner,
                                                           base::MutableBytes batch,
                                                           model::RecordBatchView parsed) {
  const Visit visit(*this);
  co_await wait_for_room();
  MQ_CO_TRY_VOID(may_append(parsed));
  const bool imaged = co_await image_first();
  Result<AppendInfo> done = make_error_code(StorageErrc::closed);
  if (disk_->appends_are_slow(spec_.worker->now())) {
    done = co_await append_on_thread(std::move(owner), batch, parsed);
  } else {
    done = append(std::move(owner), batch, parsed);
  }
  if (!imaged) co_return done;
  journal_->image_used(journal_log_, end_, done.has_value());
  if (!done) image_ahead_ = ~std::uint64_t{0};  // the journal need not keep it
  imaging_ = false;
  wake();
  co_return done;
}

/// The kernel writes pages back when it likes, and every sync of the whole file system does: once
/// the block is written again it is too late for an image. False: there was none to make.
asio::awaitable<bool> LocalLog::image_first() {
  if (failure() || stopping_ || !needs_image()) co_return false;
  const SyncPoint end = end_;
  auto bytes = block_below(end.position);
  if (bytes.empty()) co_return false;
  disk_->counters.get("storage_images_ahead_total").add();
  imaging_ = true;
  auto wait = std::make_shared<JournalWait>(*spec_.worker);
  const std::uint64_t block = end.position - bytes.size();
  journal_->image_ahead(journal_log_, block, std::move(bytes), end, JournalWait::done(wait));
  const auto durable = co_await JournalWait::until_durable(wait);
  if (durable && end_.segment_base == end.segment_base) image_ahead_ = end.position;
  co_return true;
}

asio::awaitable<void> LocalLog::wait_for_room() {
  while (!failure() && !stopping_ && !disk_->write_behind->has_room()) {
    if (!std::exchange(wants_room_, true)) {
      disk_->write_behind->when_room(*spec_.worker, [self = weak_from_this()] {
        const auto log = self.lock();
        if (!log) return;
        log->wants_room_ = false;
        log->wake();
      });
    }
    co_await wake_.wait();
  }
}

/// The log does not move while the disk's thread writes: nothing else is appended, rolled or cut.
asio::awaitable<Result<AppendInfo>> LocalLog::append_on_thread(base::Buffer owner,
                                                               base::MutableBytes batch,
                                                               model::RecordBatchView parsed) {
  MQ_CO_TRY_VOID(may_append(parsed));
  disk_->counters.get("storage_appends_on_thread_total").add();
  const std::int64_t time_ms = next_append_time_ms();
  if (must_roll(parsed, time_ms)) {
    MQ_CO_TRY_VOID(co_await roll_later());
    MQ_CO_TRY_VOID(may_append(parsed));
  }
  const AppendInfo info = stamp(batch, parsed, time_ms);
  const base::Bytes bytes = batch;
  Result<std::size_t> taken = make_error_code(StorageErrc::closed);
  const auto work = [disk = disk_, file = active_, bytes, position = end_.position, &taken] {
    const auto began = disk->home.now();
    taken = file->write_at(std::span(&bytes, 1), position);
    const auto now = disk->home.now();
    disk->note_append_time(now, now - began);
  };
  writing_ = true;
  co_await disk_->append_threads.run(work);
  writing_ = false;
  wake();
  if (failure()) co_return failure();
  MQ_CO_TRY_VOID(wrote(bytes, taken));
  written(info, std::move(owner), parsed);
  co_return info;
}

asio::awaitable<Result<void>> LocalLog::roll_later() {
  Opened opened = make_error_code(StorageErrc::closed);
  const auto work = [disk = disk_, path = path_of(segment_file_name(end_.offset)), &opened] {
    opened = disk->files.open(path, base::OpenMode::create);
  };
  writing_ = true;
  co_await disk_->append_threads.run(work);
  writing_ = false;
  wake();
  if (failure()) co_return failure();
  co_return roll_into(std::move(opened));
}

}  // namespace mq::storage
