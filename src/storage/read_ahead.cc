#include "storage/read_ahead.h"

#include <algorithm>

#include "storage/batch_head.h"
#include "storage/cold_reads.h"

namespace mq::storage {
namespace {

using model::Offset;

/// On a turning disk a seek costs as much time as reading 1 MiB.
constexpr std::size_t kTurnBytesMin = std::size_t{1} << 20;
constexpr std::size_t kTurnBytesMax = ColdReads::kStepBytes;

/// A copy, so that a slow connection holds on to what it was given and not to the whole piece.
void copy_into(ReadResult& result, base::Bytes bytes) {
  if (bytes.empty()) return;
  base::SharedBytes copy{base::BufferPool::shared().take(bytes.size()), {}};
  std::ranges::copy(bytes, copy.owner.data());
  copy.bytes = base::Bytes(copy.owner.bytes()).first(bytes.size());
  result.batches.push_back(std::move(copy));
}

}  // namespace

std::size_t ReadAhead::turn_bytes(std::size_t readers) const {
  const std::uint64_t share = bytes_max_ / std::max<std::size_t>({readers, count_.load(), 1});
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(share, kTurnBytesMin, kTurnBytesMax));
}

base::Bytes ReadAhead::take(Piece& piece, Offset from, Offset limit, std::size_t bytes_max,
                            ReadResult& result) {
  const base::Bytes all = piece.bytes.bytes;
  std::size_t start = from >= piece.hint_offset ? piece.hint_position : 0;
  for (BatchHead head = head_at(all.data() + start); head.end <= from;
       head = head_at(all.data() + start))
    start += head.bytes;
  std::size_t stop = start;
  result.end_offset = from;
  while (stop < all.size()) {
    const BatchHead head = head_at(all.data() + stop);
    if (head.end > limit || (stop > start && stop - start + head.bytes > bytes_max)) break;
    stop += head.bytes;
    result.end_offset = head.end;
  }
  result.bytes = stop - start;
  piece.hint_offset = result.end_offset;
  piece.hint_position = stop;
  return all.subspan(start, stop - start);
}

void ReadAhead::split(const void* log, Offset from, Offset end, const base::SharedBytes& bytes,
                      Offset limit, std::size_t bytes_max, base::TimePoint now,
                      ReadResult& result) {
  Piece piece{log, from, end, bytes, from, 0, now};
  copy_into(result, take(piece, from, limit, bytes_max, result));
  if (piece.hint_offset >= end) return;
  std::lock_guard lock(mutex_);
  keep_locked(std::move(piece));
}

void ReadAhead::keep_locked(Piece piece) {
  const std::uint64_t charged = piece.bytes.owner.capacity();
  while (!pieces_.empty() && bytes_ + charged > bytes_max_) drop_locked(pieces_.begin());
  bytes_ += charged;
  pieces_.push_back(std::move(piece));
  count_ = pieces_.size();
}

ReadAhead::Pieces::iterator ReadAhead::drop_locked(Pieces::iterator piece) {
  bytes_ -= piece->bytes.owner.capacity();
  const auto next = pieces_.erase(piece);
  count_ = pieces_.size();
  return next;
}

bool ReadAhead::read(const void* log, Offset from, Offset limit, std::size_t bytes_max,
                     base::TimePoint now, ReadResult& result) {
  if (count_.load() == 0) return false;
  base::SharedBytes taken;
  {
    std::lock_guard lock(mutex_);
    const auto piece = std::ranges::find_if(pieces_, [&](const Piece& each) {
      return each.log == log && each.base <= from && from < each.end;
    });
    if (piece == pieces_.end()) return false;
    taken = {piece->bytes.owner, take(*piece, from, limit, bytes_max, result)};
    piece->used = now;
    pieces_.splice(pieces_.end(), pieces_, piece);
    if (result.end_offset >= piece->end) drop_locked(piece);
  }
  copy_into(result, taken.bytes);
  return true;
}

void ReadAhead::forget(const void* log) {
  if (count_.load() == 0) return;
  std::lock_guard lock(mutex_);
  for (auto piece = pieces_.begin(); piece != pieces_.end();)
    piece = piece->log == log ? drop_locked(piece) : std::next(piece);
}

void ReadAhead::drop_unused_since(base::TimePoint before) {
  if (count_.load() == 0) return;
  std::lock_guard lock(mutex_);
  while (!pieces_.empty() && pieces_.front().used < before) drop_locked(pieces_.begin());
}

std::uint64_t ReadAhead::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace mq::storage
