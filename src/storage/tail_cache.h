#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/buffer.h"
#include "model/ids.h"
#include "storage/partition_log.h"

namespace mq::storage {

class TailCache;

/// The memory that the tail caches of one worker share. Full: the oldest piece of any of them goes.
/// One thread.
class TailBudget {
 public:
  explicit TailBudget(std::uint64_t bytes_max) noexcept : bytes_max_(bytes_max) {}
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  friend class TailCache;
  void charge(TailCache& cache, std::uint64_t bytes);
  void forget(TailCache& cache);

  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::deque<TailCache*> order_;  // whose piece is next to go; null: its cache has gone
};

/// The newest batches of one log, kept in memory for those who read at its end. Large batches are
/// kept where they arrived; small ones are copied one behind the other, so that a reader gets many
/// in one piece and a short batch does not hold on to a large block.
class TailCache {
 public:
  explicit TailCache(TailBudget& budget) noexcept : budget_(budget) {}
  ~TailCache() { clear(); }
  TailCache(const TailCache&) = delete;
  TailCache& operator=(const TailCache&) = delete;

  /// The batch [base, end) just appended; its predecessor was the last one added, else clear()
  /// comes first. `batch` lies in `owner`, or is copied if there is none.
  void add(base::Buffer owner, base::Bytes batch, model::Offset base, model::Offset end);
  /// Batches from the one that contains `from`, as PartitionLog::read(); false when `from` is not
  /// in here.
  [[nodiscard]] bool read(model::Offset from, model::Offset limit, std::size_t bytes_max,
                          ReadResult& result);
  void clear();

 private:
  friend class TailBudget;
  struct Piece {
    base::Buffer owner;
    const std::byte* data;
    std::size_t bytes;
    std::size_t room;  // behind `bytes`; 0: closed
    std::uint64_t charged;
    model::Offset base;
    model::Offset end;
    // A batch boundary inside, where the last reader stopped.
    model::Offset hint_offset;
    std::size_t hint_position = 0;
  };
  void start_piece(base::Buffer owner, base::Bytes batch, std::size_t room, model::Offset base,
                   model::Offset end);
  void drop_oldest();
  static std::size_t find_batch(const Piece& piece, model::Offset offset);

  TailBudget& budget_;
  std::deque<Piece> pieces_;
  std::size_t next_chunk_bytes_ = 0;
};

}  // namespace mq::storage
