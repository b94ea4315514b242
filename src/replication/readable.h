#pragma once

#include <boost/intrusive/list.hpp>

#include "replication/error.h"
#include "storage/partition_log.h"

namespace mq::replication {

/// Someone who waits for records at or above `wanted` in one partition. Owned by the one who waits,
/// on the partition's runtime; leaving is destroying it or calling unlink().
class FetchWaiter : public boost::intrusive::list_base_hook<
                        boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  /// Called once, from within an append or a close, so it only notes or posts: the high watermark
  /// has passed `wanted`, or the partition's state changed. It is unlinked before.
  virtual void wake() = 0;

  model::Offset wanted;

 protected:
  ~FetchWaiter() = default;
};

class FetchWaiters {
 public:
  void add(FetchWaiter& waiter) { waiters_.push_back(waiter); }
  /// Those whose records are there.
  void wake_below(model::Offset high_watermark);
  void wake_all();

 private:
  boost::intrusive::list<FetchWaiter, boost::intrusive::constant_time_size<false>> waiters_;
};

/// A replica as consumers see it: the leader's, or one that follows it and is in sync. On its
/// worker's runtime.
class Readable {
 public:
  virtual ~Readable() = default;

  /// Why nothing can be read here now; no error while it can.
  [[nodiscard]] virtual Error unreadable() const = 0;
  [[nodiscard]] virtual model::LeaderEpoch leader_epoch() const = 0;
  [[nodiscard]] virtual model::Offset log_start_offset() const = 0;
  /// Exclusive end of what may be read here (PAR-3).
  [[nodiscard]] virtual model::Offset high_watermark() const noexcept = 0;
  /// The same for people who ask for the end; an error where that is not known.
  [[nodiscard]] virtual Result<model::Offset> latest() const = 0;

  /// Whole batches from `from` on, below the high watermark, the first one always; nothing when
  /// `from` is the high watermark. Errors: offset_out_of_range (this category's),
  /// StorageErrc::not_cached (read_from_disk() has it), unreadable().
  virtual Result<storage::ReadResult> read(model::Offset from, std::size_t bytes_max) = 0;
  virtual asio::awaitable<Result<storage::ReadResult>> read_from_disk(model::Offset from,
                                                                      std::size_t bytes_max) = 0;
  /// Adds a waiter that is not yet in a list; the caller has seen that high_watermark() <= wanted.
  virtual void add_waiter(FetchWaiter& waiter) = 0;
};

}  // namespace mq::replication
