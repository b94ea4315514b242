#pragma once

#include <boost/intrusive/list.hpp>
#include <deque>
#include <functional>
#include <optional>

#include "base/counters.h"
#include "base/wait_list.h"
#include "protocol/produce.h"
#include "protocol/replica_fetch.h"
#include "replication/client_order.h"
#include "replication/epoch_history.h"
#include "replication/isr.h"
#include "replication/readable.h"

namespace mq::replication {

using model::PartitionId;
using protocol::Acks;

/// Someone who feeds followers and wants to know of each append, and of the partition's end. On the
/// partition's runtime; leaving is destroying it or calling unlink().
class LogListener : public boost::intrusive::list_base_hook<
                        boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  /// The log has grown, its start has risen, or the partition serves no more. From within that, so
  /// it only notes or posts.
  virtual void log_moved() = 0;

 protected:
  ~LogListener() = default;
};

/// What the leader of a partition with followers has to know of them.
struct LeaderRole {
  IsrMember self;  ///< this broker, under its registration
  std::vector<BrokerId> replicas;
  IsrState state;  ///< as the store has it, in the leader epoch that was started
  IsrLimits limits;
};

/// One partition that this broker leads, in one leader epoch: the order rule in front of its log,
/// and the high watermark behind it.
///
/// Lives on one runtime (its worker's), where all members are called; nothing here suspends but
/// what returns an awaitable. The log outlives it. With one replica the high watermark is the log's
/// confirmed end; with followers it is what the whole maximal ISR has confirmed (isr.h), and begins
/// at what was seen of it before.
class Partition final : public Readable {
 public:
  using Acknowledged = std::function<void(Error)>;

  /// With `role` it has followers: `log` has begun the leader epoch, and nothing was appended
  /// since.
  Partition(base::Runtime& runtime, storage::PartitionLog& log, base::Counters& counters,
            std::optional<LeaderRole> role = std::nullopt);
  ~Partition() override;  ///< closed, and closed() has returned
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  [[nodiscard]] const PartitionId& id() const { return log_.id(); }
  [[nodiscard]] LeaderEpoch leader_epoch() const override { return log_.leader_epoch(); }
  [[nodiscard]] Offset log_start_offset() const override { return log_.log_start_offset(); }
  [[nodiscard]] Offset log_end_offset() const { return log_.log_end_offset(); }
  /// Exclusive end of what consumers may read. Never falls.
  [[nodiscard]] Offset high_watermark() const noexcept override { return high_watermark_; }
  /// The high watermark for people who ask for the end: offset_not_available while a new leader has
  /// not confirmed all that was there before it, so that the end never seems to fall.
  [[nodiscard]] Result<Offset> latest() const override;
  [[nodiscard]] storage::PartitionLog& log() const noexcept { return log_; }
  [[nodiscard]] bool replicated() const noexcept { return isr_.has_value(); }
  /// The ISR is not below min_isr: acks=all can be had.
  [[nodiscard]] bool enough_replicas() const noexcept { return !isr_ || isr_->enough(); }
  [[nodiscard]] base::Runtime& runtime() noexcept { return runtime_; }

  /// Why nothing is served: closed, a broken rule, or the log's failure. No error while it serves.
  [[nodiscard]] Error failure() const;
  [[nodiscard]] Error unreadable() const override { return failure(); }

  /// Appends one batch as a client sent it, inline, if it is this client's turn. `owner` is the
  /// block `batch` lies in; it is kept as long as the newest batches stay in memory. A repeat of
  /// one of its producer's newest batches is not appended: the result says where that batch is, to
  /// be acknowledged like any other (IDM-2). On an error nothing was appended. Errors: order,
  /// sequence, not_enough_replicas (for acks all), the log's, failure().
  Result<storage::AppendInfo> append(base::Buffer owner, base::MutableBytes batch,
                                     const BatchOrigin& origin, Acks acks = Acks::all);

  /// False while the disk is slow or has too much to write, and as long as batches wait for that:
  /// append_later() then, so that the order stays.
  [[nodiscard]] bool appends_inline() const { return !appending_later_ && log_.appends_inline(); }
  using Appended = std::function<void(const Result<storage::AppendInfo>&)>;
  /// Appends as append() does, after those that came before, without making the worker sleep.
  /// `done` is called once, never from within this call; `batch` lies in `owner`. Returns a number
  /// for give_up().
  std::uint64_t append_later(base::Buffer owner, base::MutableBytes batch,
                             const BatchOrigin& origin, Acks acks, Appended done);
  /// True if that batch had not been begun: nothing of it is appended and `done` is not called.
  bool give_up(std::uint64_t later);

  /// True if `appended` needs no waiting: acks none, or what its acks ask for covers it (PAR-2):
  /// the confirmed end for the leader's, the high watermark for all.
  [[nodiscard]] bool is_acknowledged(const storage::AppendInfo& appended, Acks acks) const;
  /// Calls `done` once it is acknowledged or can no longer be; never from within this call. Waiters
  /// are called in the order of their offsets.
  void when_acknowledged(const storage::AppendInfo& appended, Acks acks, Acknowledged done);
  /// The same as a coroutine; timed_out after `deadline`.
  asio::awaitable<Result<void>> acknowledged(storage::AppendInfo appended, Acks acks,
                                             base::TimePoint deadline);

  Result<storage::ReadResult> read(Offset from, std::size_t bytes_max) override;
  asio::awaitable<Result<storage::ReadResult>> read_from_disk(Offset from,
                                                              std::size_t bytes_max) override;

  /// The first readable offset appended at `time_ms` or later, or the high watermark.
  asio::awaitable<Result<storage::TimeLookup>> find_time(std::int64_t time_ms);
  /// Raises the log start to `to`, durably when it returns; the new one. Records above the high
  /// watermark stay: offset_out_of_range. Other errors: those of PartitionLog::trim(), failure().
  asio::awaitable<Result<Offset>> trim(Offset to);
  /// Returns when whoever may be elected has that log start too; timed_out after `deadline`.
  asio::awaitable<Result<void>> trimmed_everywhere(Offset start, base::TimePoint deadline);
  /// Who in the ISR has not; nobody without followers.
  [[nodiscard]] std::vector<BrokerId> not_trimmed(Offset start) const {
    return isr_ ? isr_->begins_lower(start) : std::vector<BrokerId>();
  }

  // With followers only.

  /// What the store has of it; ignored unless it is of this leader epoch and newer.
  void take_state(const IsrState& state);
  [[nodiscard]] const IsrState& isr_state() const { return isr_->state(); }
  /// Looked at now and then: whether appends have been waiting for the lag time of a follower, and
  /// this broker's own log has confirmed nothing all that time.
  [[nodiscard]] bool stands_still();
  /// Where its log is damaged another replica may be sound, and is asked to lead. Until it is known
  /// that this one has to stay, for this leader epoch.
  [[nodiscard]] bool may_be_better_elsewhere() const noexcept { return may_be_better_elsewhere_; }
  void nobody_is_better() noexcept { may_be_better_elsewhere_ = false; }
  /// For people; empty without followers.
  [[nodiscard]] std::vector<Isr::Follower> followers() const;
  /// The change of the ISR to ask for now, if any; isr_answered() has to follow.
  std::optional<protocol::IsrProposal> isr_request(const Isr::Registered& registered);
  /// `state` is what the controller said, if it said anything.
  void isr_answered(const std::optional<IsrState>& state);
  /// Called, from within a report of a follower, when isr_request() may have something to ask for.
  void on_isr_change_wanted(std::function<void()> wanted) { isr_wanted_ = std::move(wanted); }

  struct Subscribed {
    std::optional<EpochEnd> diverging;
    std::uint64_t subscription = 0;  ///< if it is not diverging
  };
  /// `follower` begins to fetch. Nothing counts of it unless its log is a prefix of this one; where
  /// it leaves it is in the result otherwise (ISR-6). Errors: fenced_leader_epoch,
  /// unknown_leader_epoch, offset_out_of_range (what it needs next is gone), not_a_replica,
  /// failure().
  Result<Subscribed> subscribe(IsrMember follower, const protocol::ReplicaSubscribe& from);
  /// Whether the high watermark waits for it.
  [[nodiscard]] bool in_sync(const IsrMember& follower) const {
    return isr_ && isr_->counts(follower);
  }
  /// A follower in sync that has what comes at `from`, of those that are `near`; nothing: none is.
  [[nodiscard]] std::optional<BrokerId> reader_near(
      Offset from, const std::function<bool(BrokerId)>& near) const;
  /// What a follower has; ignored if that does not count.
  void follower_has(const Isr::Report& report);
  /// Whole batches from `from` on up to the log end, for a follower; otherwise as read().
  Result<storage::ReadResult> read_for_follower(Offset from, std::size_t bytes_max);
  asio::awaitable<Result<storage::ReadResult>> read_from_disk_for_follower(Offset from,
                                                                           std::size_t bytes_max);
  void add_listener(LogListener& listener) { listeners_.push_back(listener); }

  // With or without.

  void add_waiter(FetchWaiter& waiter) override { fetch_waiters_.add(waiter); }

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
    Acks acks = Acks::all;
    Appended done;
  };
  /// A batch whose turn it is, or where it is already.
  struct Admitted {
    model::RecordBatchView parsed;
    std::optional<storage::AppendInfo> repeat;
  };

  Result<Admitted> admit(base::MutableBytes batch, const BatchOrigin& origin, Acks acks);
  Result<storage::AppendInfo> appended(const Result<storage::AppendInfo>& info, Offset end_before,
                                       const BatchOrigin& origin);
  asio::awaitable<Result<storage::AppendInfo>> append_one(Later later);
  asio::awaitable<void> append_those_later();
  /// Returns `held`; a broken rule is counted and takes the partition offline.
  bool keeps(bool held, std::string_view rule);
  void confirmed_end_moved();
  void advance_high_watermark();
  void take_role(LeaderRole role);
  void advance_replicated();
  void isr_may_change();
  [[nodiscard]] LeaderLog leader_log() const;
  /// All that was in the log when the leader epoch began is below the high watermark.
  [[nodiscard]] bool knows_its_end() const;
  void log_start_moved();
  /// Up to where batches with these acks are acknowledged.
  [[nodiscard]] Offset acknowledged_end(Acks acks) const;
  void tell_listeners();
  void complete_acknowledged(std::deque<AckWaiter>& waiters, Offset end);
  void fail_waiters(Error why);
  Result<void> check_readable(Offset from) const;

  base::Runtime& runtime_;
  storage::PartitionLog& log_;
  base::Counters& counters_;
  ClientOrder order_;
  Offset high_watermark_{0};
  Offset told_log_start_;
  bool closed_ = false;
  Error own_failure_;
  std::deque<Later> later_;
  std::uint64_t later_number_ = 0;
  bool appending_later_ = false;
  bool may_be_better_elsewhere_ = true;
  std::optional<Isr> isr_;  // nothing: it has no followers
  /// While appends wait for the own log: what it had confirmed, and since when it had no more.
  std::optional<std::pair<Offset, base::TimePoint>> still_;
  Offset confirmed_by_isr_;  // in this leader epoch
  std::function<void()> isr_wanted_;
  std::deque<AckWaiter> ack_waiters_;  // ascending end offsets
  std::deque<AckWaiter>
      leader_ack_waiters_;  // the same with acks of the leader alone, if that differs
  FetchWaiters fetch_waiters_;
  boost::intrusive::list<LogListener, boost::intrusive::constant_time_size<false>> listeners_;
  base::WaitList trims_;         // somebody waits for log starts of followers
  std::size_t disk_visits_ = 0;  // what awaits the log
  base::WaitList disk_visits_ended_;
};

}  // namespace mq::replication
