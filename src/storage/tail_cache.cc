#include "storage/tail_cache.h"

#include <algorithm>
#include <cstring>

#include "storage/batch_head.h"

namespace mq::storage {
namespace {

using model::Offset;

/// A batch up to this size is copied. Copying 16 KiB costs less than a system call.
constexpr std::size_t kCopiedBytesMax = std::size_t{16} << 10;
constexpr std::size_t kChunkBytesMin = std::size_t{4} << 10;
constexpr std::size_t kChunkBytesMax = std::size_t{64} << 10;

}  // namespace

void TailBudget::charge(TailCache& cache, std::uint64_t bytes) {
  bytes_ += bytes;
  order_.push_back(&cache);
  while (bytes_ > bytes_max_ && order_.size() > 1) {
    TailCache* const oldest = order_.front();
    order_.pop_front();
    if (oldest) oldest->drop_oldest();
  }
}

void TailBudget::forget(TailCache& cache) {
  std::replace(order_.begin(), order_.end(), &cache, static_cast<TailCache*>(nullptr));
}

void TailCache::add(base::Buffer owner, base::Bytes batch, Offset base, Offset end) {
  if (owner && batch.size() > kCopiedBytesMax)
    return start_piece(std::move(owner), batch, 0, base, end);
  if (!pieces_.empty() && pieces_.back().room >= batch.size()) {
    auto& piece = pieces_.back();
    // Readers hold only bytes before this place, so nobody sees it being written.
    std::memcpy(piece.owner.data() + piece.bytes, batch.data(), batch.size());
    piece.bytes += batch.size();
    piece.room -= batch.size();
    piece.end = end;
    return;
  }
  next_chunk_bytes_ = std::clamp(next_chunk_bytes_ * 2, kChunkBytesMin, kChunkBytesMax);
  auto chunk = base::BufferPool::shared().take(std::max(next_chunk_bytes_, batch.size()));
  std::memcpy(chunk.data(), batch.data(), batch.size());
  const base::Bytes copied = base::Bytes(chunk.bytes()).first(batch.size());
  const std::size_t room = chunk.capacity() - batch.size();
  start_piece(std::move(chunk), copied, room, base, end);
}

void TailCache::start_piece(base::Buffer owner, base::Bytes batch, std::size_t room, Offset base,
                            Offset end) {
  const std::uint64_t charged = batch.size() + room;
  pieces_.push_back({std::move(owner), batch.data(), batch.size(), room, charged, base, end, base});
  budget_.charge(*this, charged);
}

void TailCache::drop_oldest() {
  budget_.bytes_ -= pieces_.front().charged;
  pieces_.pop_front();
  if (pieces_.empty()) next_chunk_bytes_ = 0;
}

void TailCache::clear() {
  if (pieces_.empty()) return;
  for (const auto& piece : pieces_) budget_.bytes_ -= piece.charged;
  pieces_.clear();
  next_chunk_bytes_ = 0;
  budget_.forget(*this);
}

/// Position of the batch that contains `offset`, which the piece does.
std::size_t TailCache::find_batch(const Piece& piece, Offset offset) {
  std::size_t position = offset >= piece.hint_offset ? piece.hint_position : 0;
  while (position < piece.bytes) {
    const BatchHead head = head_at(piece.data + position);
    if (head.end > offset) break;
    position += head.bytes;
  }
  return position;
}

bool TailCache::read(Offset from, Offset limit, std::size_t bytes_max, ReadResult& result) {
  if (pieces_.empty() || from < pieces_.front().base || from >= pieces_.back().end) return false;
  auto piece = std::ranges::upper_bound(pieces_, from, {}, &Piece::end);
  std::size_t start = find_batch(*piece, from);
  bool more = true;
  for (; piece != pieces_.end() && more; ++piece, start = 0) {
    std::size_t stop = start;
    Offset end = result.end_offset;
    if (piece->end <= limit && result.bytes + piece->bytes - start <= bytes_max) {
      stop = piece->bytes;
      end = piece->end;
    } else {
      more = false;
      while (stop < piece->bytes) {
        const BatchHead head = head_at(piece->data + stop);
        const std::size_t taken = result.bytes + stop - start;
        if (head.end > limit || (taken > 0 && taken + head.bytes > bytes_max)) break;
        stop += head.bytes;
        end = head.end;
      }
    }
    if (stop == start) break;
    result.batches.push_back({piece->owner, base::Bytes(piece->data + start, stop - start)});
    result.bytes += stop - start;
    result.end_offset = end;
    piece->hint_offset = end;
    piece->hint_position = stop;
  }
  return true;
}

}  // namespace mq::storage
