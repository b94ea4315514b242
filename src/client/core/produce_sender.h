#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "client/core/accumulator.h"
#include "client/core/client_core.h"
#include "client/core/producer_id.h"
#include "client/core/rerun.h"
#include "protocol/produce.h"

namespace mq::client {

/// Requests of one broker: what is under way and which partitions have work there.
struct ProduceLink {
  std::int32_t broker = -1;  ///< -1: partitions whose leader is not known
  std::vector<ProducerPartition*> active;
  std::size_t cursor = 0;  ///< where the next request begins to gather
  std::size_t in_flight = 0;
};

/// Takes batches to the leaders of their partitions and brings every one to its outcome. On the
/// client's runtime.
///
/// Up to five requests per broker are under way, each with at most one batch of a partition.
/// Batches of a partition carry a sequence per connection; after any failure the sender waits until
/// nothing of that partition is under way, then sends all unanswered batches again, in order, from
/// sequence 0. CLI-2 rests on that and on the leader's order rule. CLI-1: each batch leaves its
/// queue exactly once, with an outcome, in order.
class ProduceSender {
 public:
  using Sink = std::function<void(std::vector<ProduceBatchPtr>)>;

  ProduceSender(ClientCore& core, const ProducerConfig& config, Accumulator& accumulator);
  ~ProduceSender();

  /// Gets batches with their outcome, on the runtime, after their room was given back.
  void on_outcome(Sink sink) { sink_ = std::move(sink); }
  /// Called, on the runtime, when the last request was answered and nothing waits to be sent.
  void on_idle(std::function<void()> call) { idle_ = std::move(call); }
  /// Looks at what the accumulator has.
  void drain();
  /// Before the connections are closed, and after.
  void begin_stop() { producer_id_.begin_stop(); }
  asio::awaitable<void> stopped() { return producer_id_.stopped(); }
  /// Gives everything that is left this error (maybe_applied is set where a send was not refused).
  void fail_all(const Error& error);

  /// From any thread.
  [[nodiscard]] ProducerStats stats() const noexcept;

 private:
  struct Entry {
    ProducerPartition* partition;
    ProduceBatchPtr batch;
  };
  struct Sent {
    ProduceLink* link;
    std::string where;
    std::vector<Entry> entries;
  };
  using SentPtr = std::shared_ptr<Sent>;

  void drain_once();
  void activate(ProducerPartition& partition);
  ProduceLink& link_of(std::int32_t broker);
  void relink();
  void pump(ProduceLink& link);
  void drop_idle(ProduceLink& link);
  bool may_send(ProduceLink& link);
  void name(ProducerPartition& partition, ProduceBatch& batch);
  void begin_epoch(ProducerPartition& partition);
  [[nodiscard]] bool ready(ProduceLink& link, ProducerPartition& partition);
  SentPtr gather(ProduceLink& link, const net::ClientConnection& connection);
  bool dispatch(net::ClientConnection& connection, const SentPtr& sent);
  void answered(const SentPtr& sent, base::Result<net::Frame> frame);
  void settle(const SentPtr& sent, const Result<protocol::ProduceResponse>& response);
  void settle_entry(const Entry& entry, const protocol::ProduceResult& result,
                    const std::string& where);
  void refused(const Entry& entry, const protocol::Status& status, const std::string& where);
  void leave_connection(const ProducerPartition& partition);
  void refused_by_sequence(const Entry& entry, const protocol::Status& status,
                           const std::string& where);
  void refused_too_large(const Entry& entry, const std::string& where);
  void give_up_under_way(const Sent& sent, const Error& error);
  void back_off(ProducerPartition& partition);
  void finish(ProduceBatch& batch, Error error);
  void collect(ProducerPartition& partition);
  void report();
  void expire();
  void expire(ProducerPartition& partition);
  void metadata_changed();
  void wake_at(base::TimePoint due);
  void watch_deadlines();

  ClientCore& core_;
  const ProducerConfig& config_;
  Accumulator& accumulator_;
  const model::Codec codec_;
  const bool idempotent_;
  ProducerId producer_id_;
  Sink sink_;
  std::function<void()> idle_;
  std::map<std::int32_t, std::unique_ptr<ProduceLink>> links_;
  std::vector<ProducerPartition*> news_;   // reused
  std::vector<ProduceBatchPtr> outcomes_;  // not yet reported
  base::Runtime::TimerId wake_timer_ = 0;  // for linger and back-off
  base::TimePoint wake_due_ = base::TimePoint::max();
  base::Runtime::TimerId expiry_timer_ = 0;  // runs while there is work
  struct Counts {
    std::atomic<std::uint64_t> records_delivered{0};
    std::atomic<std::uint64_t> records_failed{0};
    std::atomic<std::uint64_t> batches_sent{0};
    std::atomic<std::uint64_t> requests_sent{0};
    std::atomic<std::uint64_t> batches_retried{0};
    std::atomic<std::uint64_t> bytes_sent{0};
  };
  Counts stats_;
  Rerun draining_;
  bool stopped_ = false;
};

}  // namespace mq::client
