#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>

#include "base/buffer.h"
#include "base/runtime.h"
#include "model/ids.h"
#include "storage/partition_log.h"

namespace mq::storage {

/// What was read from one disk ahead of its readers' next fetches, so that a fetch of 1 MiB does
/// not cost a seek. A piece goes when its reader has come to its end, when it was not asked for in
/// a while, or when others need the room. All batches in here were checked. Thread-safe.
class ReadAhead {
 public:
  explicit ReadAhead(std::uint64_t bytes_max) noexcept : bytes_max_(bytes_max) {}

  /// How much to read at once for one reader, while `readers` of them come by turns: large, so that
  /// seeks cost little, and such that all of their pieces have room.
  [[nodiscard]] std::size_t turn_bytes(std::size_t readers) const;
  /// `bytes` are whole batches of `log` up to the offset `end`, in a block of their own, and the
  /// first one contains `from`. Gives out what read() would and keeps the rest.
  void split(const void* log, model::Offset from, model::Offset end, const base::SharedBytes& bytes,
             model::Offset limit, std::size_t bytes_max, base::TimePoint now, ReadResult& result);
  /// Batches from the one that contains `from`, as PartitionLog::read(), copied; false when `from`
  /// is not in here.
  [[nodiscard]] bool read(const void* log, model::Offset from, model::Offset limit,
                          std::size_t bytes_max, base::TimePoint now, ReadResult& result);
  void forget(const void* log);
  /// Lets go what nobody asked for since `before`.
  void drop_unused_since(base::TimePoint before);
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Piece {
    const void* log;
    model::Offset base;
    model::Offset end;
    base::SharedBytes bytes;
    // A batch boundary inside, where its reader stopped.
    model::Offset hint_offset;
    std::size_t hint_position = 0;
    base::TimePoint used;
  };
  using Pieces = std::list<Piece>;
  /// From the piece's hint on, or from its beginning.
  static base::Bytes take(Piece& piece, model::Offset from, model::Offset limit,
                          std::size_t bytes_max, ReadResult& result);
  void keep_locked(Piece piece);
  Pieces::iterator drop_locked(Pieces::iterator piece);

  const std::uint64_t bytes_max_;
  std::atomic<std::size_t> count_{0};  // of pieces_, for a look without the lock
  mutable std::mutex mutex_;           // guards the following
  Pieces pieces_;                      // least recently used first
  std::uint64_t bytes_ = 0;
};

}  // namespace mq::storage
