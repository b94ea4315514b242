#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "broker/worker.h"
#include "protocol/replica_fetch.h"

namespace mq::broker {

/// What one worker adds to one answer.
struct ReplicaNews {
  std::vector<protocol::ReplicaFetchResult> results;
  std::vector<base::SharedBytes> batches;
  std::size_t bytes = 0;      ///< of the batches
  std::size_t bytes_max = 0;  ///< the first batch comes whatever this says
  bool last_call = false;     ///< the request's time is over: high watermarks are news too

  [[nodiscard]] bool full() const noexcept {
    return results.size() >= protocol::kReplicaFetchEntriesMax || (bytes > 0 && bytes >= bytes_max);
  }
};

/// The subscriptions of one follower's connection to the partitions of one worker: where each one
/// stands, and which have something to send.
///
/// On that worker. What is sent confirms nothing: only what the follower says does. Partitions far
/// behind are read from the disk ahead of being asked, one at a time, so that they hold nobody up.
/// What goes to a replica that is not in sync keeps to the broker's pace for these (CatchUpPace).
class ReplicaFeed final : public std::enable_shared_from_this<ReplicaFeed> {
 public:
  /// `wake` is called, on the worker, when there is something to collect; then not again before the
  /// next collect().
  ReplicaFeed(Worker& worker, std::function<void()> wake);
  ~ReplicaFeed();

  /// Another registration, or another connection's end: nothing is subscribed.
  void begin(model::IsrMember follower);
  void unsubscribe(const model::PartitionId& partition);
  void subscribe(const protocol::ReplicaSubscribe& from);
  void note(const protocol::ReplicaPosition& position);

  /// Adds what there is to send, those first that have waited longest.
  void collect(ReplicaNews& news);

 private:
  struct Subscription;
  using Subscriptions = std::unordered_map<model::PartitionId, std::unique_ptr<Subscription>>;

  void ready(Subscription& subscription);
  [[nodiscard]] replication::Partition* partition_of(const Subscription& subscription) const;
  void begin(Subscription& subscription, replication::Partition& partition,
             const protocol::ReplicaSubscribe& from);
  bool tell_where_to_begin(Subscription& subscription, replication::Partition& partition);
  /// True if there is more to send for it.
  bool collect_one(Subscription& subscription, ReplicaNews& news);
  void add(Subscription& subscription, replication::Partition& partition, ReplicaNews& news,
           std::optional<storage::ReadResult> data);
  void refuse(Subscription& subscription, protocol::Status status, ReplicaNews& news);
  void refuse(Subscription& subscription, const replication::Partition& partition,
              base::Error error, ReplicaNews& news);
  bool take_read_ahead(Subscription& subscription, replication::Partition& partition,
                       ReplicaNews& news);
  void read_ahead(Subscription& subscription);
  asio::awaitable<void> read_cold(std::shared_ptr<ReplicaFeed> self);
  void add_high_watermarks(ReplicaNews& news);

  // Replicas that are not in sync, when their pace is limited.
  [[nodiscard]] bool has_to_wait(Subscription& subscription,
                                 const replication::Partition& partition);
  void arm_turn();
  void begin_turn();
  void pay_ahead(Subscription& subscription, std::size_t bytes);
  void count_as_catching_up(Subscription& subscription, const replication::Partition& partition,
                            std::size_t bytes);

  Worker& worker_;
  std::function<void()> wake_;
  bool woken_ = false;
  model::IsrMember follower_;
  Subscriptions subscriptions_;
  // Of these two each subscription is in one at most; those that are gone are skipped.
  std::deque<model::PartitionId> ready_;
  std::deque<model::PartitionId> cold_;
  bool reading_ = false;
  std::deque<model::PartitionId> waiting_for_turn_;
  std::optional<base::TimePoint> turn_;  // of this feed, when one of these waits
  std::size_t allowance_ = 0;            // left of the last turn
  bool turn_armed_ = false;
};

}  // namespace mq::broker
