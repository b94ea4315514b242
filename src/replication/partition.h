#pragma once

#include <boost/intrusive/list.hpp>
#include <deque>
#include <functional>
#include <optional>

#include "base/counters.h"
#include "base/wait_list.h"
#include "protocol/produce.h"
#include "replication/client_order.h"
#include "storage/partition_log.h"

namespace mq::replication {

using model::LeaderEpoch;
using model::Offset;
using model::PartitionId;
using protocol::Acks;

/// Someone who waits for records at or above `wanted` in one partition. Owned by the one who waits,
/// on the partition's runtime; leaving is destroying it or calling unlink().
class FetchWaiter : public boost::intrusive::list_base_hook<
                        boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  /// Called once, from within an append or a close, so it only notes or posts: the high watermark
  /// has passed `wanted`, or the partition's state changed. It is unlinked before.
  virtual void wake() = 0;

  Offset wanted;

 protected:
  ~FetchWaiter() = default;
};

/// One partition that this broker leads: the order rule in front of its log, and the high watermark
/// behind it.
///
/// Lives on one runtime (its worker's), where all members are called; nothing here suspends but
/// what returns an awaitable. The log outlives it. With one replica the high watermark is the log's
/// confirmed end.
class Partition {
 public:
  using Acknowledged = std::function<void(Error)>;

  Partition(base::Runtime& runtime, storage::PartitionLog& log, base::Counters& counters);
  ~Partition();  ///< closed, and closed() has returned
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  [[nodiscard]] const PartitionId& id() const { return log_.id(); }
  [[nodiscard]] LeaderEpoch leader_epoch() const { return log_.leader_epoch(); }
  [[nodiscard]] Offset log_start_offset() const { return log_.log_start_offset(); }
  [[nodiscard]] Offset log_end_offset() const { return log_.log_end_offset(); }
  /// Exclusive end of what consumers may read. Never falls.
  [[nodiscard]] Offset high_watermark() const noexcept { return high_watermark_; }
  [[nodiscard]] storage::PartitionLog& log() const noexcept { return log_; }
  [[nodiscard]] base::Runtime& runtime() noexcept { return runtime_; }

  /// Why nothing is served: closed, a broken rule, or the log's failure. No error while it serves.
  [[nodiscard]] Error failure() const;

  /// Appends one batch as a client sent it, inline, if it is this client's turn. `owner` is the
  /// block `batch` lies in; it is kept as long as the newest batches stay in memory. A repeat of
  /// one of its producer's newest batches is not appended: the result says where that batch is, to
  /// be acknowledged like any other (IDM-2). On an error nothing was appended. Errors: order,
  /// sequence, the log's, failure().
  Result<storage::AppendInfo> append(base::Buffer owner, base::MutableBytes batch,
                                     const BatchOrigin& origin);

  /// False while the disk is slow or has too much to write, and as long as batches wait for that:
  /// append_later() then, so that the order stays.
  [[nodiscard]] bool appends_inline() const { return !appending_later_ && log_.appends_inline(); }
  using Appended = std::function<void(const Result<storage::AppendInfo>&)>;
  /// Appends as append() does, after those that came before, without making the worker sleep.
  /// `done` is called once, never from within this call; `batch` lies in `owner`. Returns a number
  /// for give_up().
  std::uint64_t append_later(base::Buffer owner, base::MutableBytes batch,
                             const BatchOrigin& origin, Appended done);
  /// True if that batch had not been begun: nothing of it is appended and `done` is not called.
  bool give_up(std::uint64_t later);

  /// True if `appended` needs no waiting: acks none, or the confirmed end covers it (PAR-2).
  [[nodiscard]] bool is_acknowledged(const storage::AppendInfo& appended, Acks acks) const;
  /// Calls `done` once it is acknowledged or can no longer be; never from within this call. Waiters
  /// are called in the order of their offsets.
  void when_acknowledged(const storage::AppendInfo& appended, Acks acks, Acknowledged done);
  /// The same as a coroutine; timed_out after `deadline`.
  asio::awaitable<Result<void>> acknowledged(storage::AppendInfo appended, Acks acks,
                                             base::TimePoint deadline);

  /// Whole batches from `from` on, below the high watermark, the first one always; nothing when
  /// `from` is the high watermark. Errors: offset_out_of_range (this category's),
  /// StorageErrc::not_cached (read_from_disk() has it), failure().
  Result<storage::ReadResult> read(Offset from, std::size_t bytes_max);
  asio::awaitable<Result<storage::ReadResult>> read_from_disk(Offset from, std::size_t bytes_max);

  /// The first readable offset appended at `time_ms` or later, or the high watermark.
  asio::awaitable<Result<storage::TimeLookup>> find_time(std::int64_t time_ms);
  /// Raises the log start to `to`, durably when it returns; the new one. Records above the high
  /// watermark stay: offset_out_of_range. Other errors: those of PartitionLog::trim(), failure().
  asio::awaitable<Result<Offset>> trim(Offset to);

  /// Adds a waiter that is not yet in a list; the caller has seen that high_watermark() <= wanted.
  void add_waiter(FetchWaiter& waiter) { fetch_waiters_.push_back(waiter); }

  /// Serves nothing from now on and wakes every waiter, acknowledgements with `closed`.
  void close();
  /// After close(): returns when no read from the disk, no trim and no append is under way any
  /// more.
  asio::awaitable<void> closed();

 private:
  struct AckWaiter {
    Offset end_offset;
    LeaderEpoch leader_epoch;
    Acknowledged done;
  };

  struct Later {
    std::uint64_t number = 0;
    base::Buffer owner;
    base::MutableBytes batch;
    BatchOrigin origin;
    Appended done;
  };
  /// A batch whose turn it is, or where it is already.
  struct Admitted {
    model::RecordBatchView parsed;
    std::optional<storage::AppendInfo> repeat;
  };

  Result<Admitted> admit(base::MutableBytes batch, const BatchOrigin& origin);
  Result<storage::AppendInfo> appended(const Result<storage::AppendInfo>& info, Offset end_before,
                                       const BatchOrigin& origin);
  asio::awaitable<Result<storage::AppendInfo>> append_one(Later later);
  asio::awaitable<void> append_those_later();
  /// Returns `held`; a broken rule is counted and takes the partition offline.
  bool keeps(bool held, std::string_view rule);
  void confirmed_end_moved();
  void advance_high_watermark();
  void wake_fetch_waiters(bool all);
  void complete_acknowledged();
  void fail_waiters(Error why);
  Result<void> check_readable(Offset from) const;

  base::Runtime& runtime_;
  storage::PartitionLog& log_;
  base::Counters& counters_;
  ClientOrder order_;
  Offset high_watermark_{0};
  Error own_failure_;
  std::deque<Later> later_;
  std::uint64_t later_number_ = 0;
  bool appending_later_ = false;
  std::deque<AckWaiter> ack_waiters_;  // ascending end offsets
  boost::intrusive::list<FetchWaiter, boost::intrusive::constant_time_size<false>> fetch_waiters_;
  std::size_t disk_visits_ = 0;  // what awaits the log
  base::WaitList disk_visits_ended_;
};

}  // namespace mq::replication
