#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/counters.h"
#include "base/wait_list.h"
#include "net/memory_budget.h"
#include "protocol/replica_fetch.h"
#include "replication/epoch_history.h"
#include "replication/error.h"
#include "replication/readable.h"

namespace mq::replication {

/// Whom a replica follows: a leader and its leadership.
struct Following {
  model::BrokerId leader;
  model::LeaderEpoch leader_epoch;
  friend bool operator==(const Following&, const Following&) = default;
};

/// One partition that this broker follows in one leader epoch: what its log has to do to become a
/// copy of the leader's.
///
///     due ──subscribe──> subscribed ──batches──> subscribed …
///      ^                     │ diverging, or what comes next is gone at the leader
///      └──────── cutting <───┘
///      └──────── waiting <──── any refusal, here or there (with a growing pause)
///
/// It knows no connection: whoever has one (ReplicaFetcher) takes from it what is to be sent and
/// gives it what was answered. Only answers to the newest subscription count (REP-1). Lives on one
/// runtime, its worker's, where all members are called; the log outlives it. Shared, because its
/// work on the disk outlives whoever drops it.
///
/// Consumers may read from it up to the high watermark that is known here, while it is in sync and
/// hears from its leader; who wants more than that is to ask the leader.
class FollowedPartition final : public Readable,
                                public std::enable_shared_from_this<FollowedPartition> {
 public:
  /// `memory` is for batches that have to wait for the disk; all given outlive it.
  FollowedPartition(base::Runtime& runtime, storage::PartitionLog& log, base::Counters& counters,
                    net::MemoryBudget& memory, Following following);
  ~FollowedPartition() override;  ///< closed, and closed() has returned
  FollowedPartition(const FollowedPartition&) = delete;
  FollowedPartition& operator=(const FollowedPartition&) = delete;

  [[nodiscard]] const model::PartitionId& id() const { return log_.id(); }
  [[nodiscard]] const Following& following() const noexcept { return following_; }
  [[nodiscard]] storage::PartitionLog& log() const noexcept { return log_; }
  /// What is known here of the leader's high watermark, as far as the log reaches. Falls only when
  /// a cut goes below it.
  [[nodiscard]] model::Offset high_watermark() const noexcept override { return high_watermark_; }
  /// Why nothing is fetched any more: closed, or the log's failure.
  [[nodiscard]] Error failure() const;

  /// Whether this broker is in the ISR of the partition, as far as is known here; at first it is.
  /// Else it leaves half of what may wait to be written back to those that are, and is not read.
  void set_in_sync(bool in_sync);

  /// Its leader was elected although it may lack records that were confirmed: what is cut here is
  /// kept aside first. So is what is cut below the high watermark, whatever was said.
  void keep_what_is_cut(bool keep) noexcept { keeps_what_is_cut_ = keep; }

  // For consumers. offset_not_available: only the leader can tell.
  [[nodiscard]] Error unreadable() const override;
  [[nodiscard]] model::LeaderEpoch leader_epoch() const override { return following_.leader_epoch; }
  [[nodiscard]] model::Offset log_start_offset() const override { return log_.log_start_offset(); }
  [[nodiscard]] Result<model::Offset> latest() const override { return high_watermark_; }
  Result<storage::ReadResult> read(model::Offset from, std::size_t bytes_max) override;
  asio::awaitable<Result<storage::ReadResult>> read_from_disk(model::Offset from,
                                                              std::size_t bytes_max) override;
  void add_waiter(FetchWaiter& waiter) override { readers_.add(waiter); }

  /// The log has to be replaced by an empty one before it can become a copy; whoever owns it sees
  /// to that.
  [[nodiscard]] bool needs_another_log() const noexcept { return needs_another_log_; }

  /// `news` is called when there may be something to send, from within other calls; `urgent`: the
  /// confirmed end has moved, for which someone may wait. Replaces the function set before.
  void on_news(std::function<void(bool urgent)> news) { news_ = std::move(news); }

  /// The subscription to be sent now, if one is due, under this number, which is above all before
  /// it on the same connection.
  std::optional<protocol::ReplicaSubscribe> subscribe(std::uint32_t number);
  /// True once when the leader is to send nothing any more until the next subscription.
  [[nodiscard]] bool take_unsubscribe();
  /// What the log has, if the leader was told something else.
  std::optional<protocol::ReplicaPosition> take_position();
  /// Whether take_position() has a confirmed end, or a log start, that the leader does not know.
  [[nodiscard]] bool has_urgent_position() const;

  /// An answer of the leader with its batches, which lie in `owner`.
  void take(const protocol::ReplicaFetchResult& result, const base::Buffer& owner,
            base::Bytes batches);
  /// The connection has ended, and its subscriptions with it.
  void disconnected();

  /// Nothing is taken any more.
  void close();
  /// After close(): returns when nothing is under way in the log any more.
  asio::awaitable<void> closed();

 private:
  enum class State { due, subscribed, cutting, waiting, failed };
  /// Batches that wait for the disk.
  struct Waiting {
    net::Lease lease;
    base::Buffer owner;
    base::Bytes batches;
  };

  void append(const base::Buffer& owner, base::Bytes batches);
  void append_later(base::Bytes batches);
  asio::awaitable<void> append_those_later(std::shared_ptr<FollowedPartition> self);
  asio::awaitable<bool> append_waiting(Waiting waiting);
  void append_failed(Error error, base::Bytes batch = {});
  [[nodiscard]] bool empty() const { return log_.last_batch_epoch() == model::LeaderEpoch(); }
  void appended();

  void refused(const protocol::ReplicaFetchResult& result);
  void pause_for_disk();
  void wait_for_disk();
  void begin_cut(const EpochEnd& answer);
  asio::awaitable<void> cut(std::shared_ptr<FollowedPartition> self, model::Offset to);
  asio::awaitable<Result<void>> cut_off(model::Offset to);
  void begin_restart();
  asio::awaitable<void> restart(std::shared_ptr<FollowedPartition> self, model::Offset start);
  void log_was_cut(const Result<void>& outcome, model::Offset end_before);
  void follow_log_start();
  asio::awaitable<void> trim(std::shared_ptr<FollowedPartition> self, model::Offset to);

  void raise_high_watermark();
  [[nodiscard]] Result<bool> look_for_reader(model::Offset from) const;
  void log_changed();
  void subscribe_again(base::Duration pause);
  void back_off();
  void fail();
  void fail(const std::string& why);
  void unschedule();
  void tell(bool urgent);
  void begin_visit() noexcept { ++visits_; }
  void end_visit();

  base::Runtime& runtime_;
  storage::PartitionLog& log_;
  base::Counters& counters_;
  net::MemoryBudget& memory_;
  const Following following_;
  base::Counter& batches_;
  std::function<void(bool)> news_;

  State state_ = State::due;
  std::uint32_t number_ = 0;  // of the newest subscription
  bool unsubscribe_ = false;
  model::Offset told_appended_;  // to the leader, under that number
  model::Offset told_durable_;
  model::Offset told_confirmed_;
  model::Offset told_log_start_;
  model::Offset leader_high_watermark_;
  model::Offset leader_log_start_;
  model::Offset high_watermark_;

  bool heard_ = false;  // an answer to the newest subscription
  FetchWaiters readers_;

  std::deque<Waiting> waiting_;
  bool appending_later_ = false;
  bool trimming_ = false;
  bool needs_another_log_ = false;
  bool in_sync_ = true;
  bool keeps_what_is_cut_ = false;
  bool pausing_ = false;  // subscribed no more at the leader; what is on its way is taken
  base::Duration pause_{};
  base::Runtime::TimerId timer_ = 0;
  bool closed_ = false;
  std::size_t visits_ = 0;  // what awaits the log
  base::WaitList visits_ended_;
};

}  // namespace mq::replication
