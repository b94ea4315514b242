#include "storage/checkpoint_writer.h"

#include "storage/space_reserve.h"
#include "storage/storage_format.h"

namespace mq::storage {

CheckpointWriter::CheckpointWriter(std::shared_ptr<DiskState> disk,
                                   std::function<std::vector<std::byte>()> contents)
    : disk_(std::move(disk)), contents_(std::move(contents)), wake_(disk_->home) {}

asio::awaitable<Result<void>> CheckpointWriter::write() {
  const std::uint64_t wanted = begun_ + 1;  // the next one to begin
  while (ended_ < wanted) {
    if (writing_) {
      co_await wake_.wait();
      continue;
    }
    writing_ = true;
    ++begun_;
    last_result_ = co_await write_now();
    writing_ = false;
    ended_ = begun_;
    wake_.notify_all();
  }
  co_return last_result_;
}

asio::awaitable<Result<void>> CheckpointWriter::write_now() {
  if (disk_->failed()) co_return make_error_code(StorageErrc::disk_failed);
  const auto body = contents_();
  const auto path = disk_->path + "/" + std::string(kCheckpointFile);
  Result<void> saved;
  const auto work = [&] {
    // The reserve is kept for exactly this: without a checkpoint nothing could be removed.
    do {
      saved = save_sealed(disk_->files, path, kCheckpointMagic, body);
    } while (!saved && saved.error() == make_error_code(base::BaseErrc::no_space) &&
             give_up_reserve_slice(disk_->files, disk_->path));
  };
  co_await disk_->executor.run(work);
  if (saved) co_return saved;
  if (saved.error() == make_error_code(base::BaseErrc::no_space)) {
    disk_->set_full(true);
    co_return make_error_code(StorageErrc::storage_full);
  }
  disk_->fail("write", path, saved.error());
  co_return make_error_code(StorageErrc::disk_failed);
}

}  // namespace mq::storage
