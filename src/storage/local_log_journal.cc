#include <algorithm>

#include "base/mutants.h"
#include "storage/local_log.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

/// The kernel keeps what one write brought in pages of up to this size.
constexpr std::uint64_t kStrideUnit = std::uint64_t{1} << 20;

}  // namespace

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
/// journal, unless no sync that has begun reaches into the block, or none of the `begun` ones came
/// since the append before, which has seen to it. They are counted before this looks how far the
/// newest reaches: one that begins meanwhile is left to the next append.
bool LocalLog::needs_image(std::uint64_t position, std::uint64_t begun) const {
  const std::uint64_t block = journal_block_of(position);
  if (position == block || position == image_ahead_) return false;
  if (flusher_->claimed(*sync_) <= block) return false;
  return imaged_block_ != block || imaged_at_sync_ != begun;
}

bool LocalLog::needs_image() const {
  if (MQ_MUTANT("block_image_after_its_append")) return false;
  return needs_image(end_.position, flusher_->syncs_begun(*sync_));
}

/// From the beginning of its block; empty: the disk has failed.
std::vector<std::byte> LocalLog::block_below(std::uint64_t position) {
  const std::uint64_t block = journal_block_of(position);
  std::vector<std::byte> bytes(position - block);
  const auto got = active_->read_at(bytes, block);
  if (got && *got == bytes.size()) return bytes;
  block_is_lost(got);
  return {};
}

/// The same where there is time: the block of a log that was idle may have left the page cache.
asio::awaitable<std::vector<std::byte>> LocalLog::load_block_below(std::uint64_t position) {
  const std::uint64_t block = journal_block_of(position);
  std::vector<std::byte> bytes(position - block);
  Result<std::size_t> got = active_->read_cached_at(bytes, block);
  if (got && *got == bytes.size()) co_return bytes;
  const auto load = [file = active_, &bytes, &got, block] { got = file->read_at(bytes, block); };
  co_await disk_->append_threads.run(load);
  if (failure()) co_return std::vector<std::byte>();
  if (got && *got == bytes.size()) co_return bytes;
  block_is_lost(got);
  co_return std::vector<std::byte>();
}

void LocalLog::block_is_lost(const Result<std::size_t>& got) {
  disk_->fail("read", path_of(segment_file_name(end_.segment_base)),
              got ? make_error_code(base::BaseErrc::io_failed) : got.error());
  disk_changed();
}

/// Of an append at `position` for which no image was made before: the kernel may be writing the
/// block already. Who asks appends_inline() first does not come here.
void LocalLog::journal_image(std::uint64_t position) {
  const std::uint64_t begun = flusher_->syncs_begun(*sync_);
  const bool needed = needs_image(position, begun);
  image_ahead_ = ~std::uint64_t{0};
  imaged_block_ = journal_block_of(end_.position);
  imaged_at_sync_ = begun;
  if (!needed) return;
  auto bytes = block_below(position);
  if (!bytes.empty())
    journal_->image(journal_log_, journal_block_of(position), std::move(bytes), end_);
}

/// The kernel writes pages back when it likes, and every sync of the whole file system does: once
/// the block is written again it is too late for an image. False: there was none to make.
asio::awaitable<bool> LocalLog::image_first() {
  if (failure() || stopping_ || !needs_image()) co_return false;
  const SyncPoint end = end_;
  imaging_ = true;
  auto bytes = co_await load_block_below(end.position);
  if (bytes.empty() || end_ != end) {  // the latter: somebody did not ask and went first
    imaging_ = false;
    wake();
    co_return false;
  }
  disk_->counters.get("storage_images_ahead_total").add();
  auto wait = std::make_shared<JournalWait>(*spec_.worker);
  const std::uint64_t block = end.position - bytes.size();
  journal_->image_ahead(journal_log_, block, std::move(bytes), end, JournalWait::done(wait));
  const auto durable = co_await JournalWait::until_durable(wait);
  if (durable && end_.segment_base == end.segment_base) image_ahead_ = end.position;
  co_return true;
}

/// Logs that grow side by side would all be due at once, and whoever syncs then waits for all of
/// them: so their strides begin at different places.
std::uint64_t LocalLog::stride_bytes() const {
  return written_behind_ == 0 ? first_stride_ : disk_->config.write_behind_bytes;
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
  const std::uint64_t least = how == Behind::everything ? 1 : stride_bytes();
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

}  // namespace mq::storage
