#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "base/wait_list.h"
#include "broker/connection.h"
#include "broker/replica_feed.h"

namespace mq::broker {

/// The leader's side of one connection on which a follower fetches: its subscriptions, by worker,
/// and the requests that are held until there is something to send.
///
/// On the connection's worker. Requests are taken in as they come and answered in that order: when
/// there is news, at their deadline, or when more than kReplicaFetchesHeld of them are there.
class ReplicaSession final : public ConnectionWaiter,
                             public std::enable_shared_from_this<ReplicaSession> {
 public:
  explicit ReplicaSession(Worker& worker);

  /// `follower` sent it, as the cluster image knows it.
  void take(model::IsrMember follower, Request request, protocol::ReplicaFetchRequest ask);
  /// Answered with that status in its turn, and what was held before at once.
  void refuse(Request request, protocol::Status status);
  /// The connection has ended: nothing is subscribed any more.
  void end();

  void connection_ending() override { news_.notify_all(); }

 private:
  struct Held {
    Request request;
    base::TimePoint deadline;
    std::size_t bytes_max = 0;
    std::optional<protocol::Status> refusal;
  };

  [[nodiscard]] ReplicaFeed& feed(Worker& worker);
  template <class Entries, class Apply>
  void give_out(Entries entries, Apply apply);
  void begin(model::IsrMember follower);
  void hold(Held held);
  [[nodiscard]] bool time_is_over() const;
  asio::awaitable<void> serve(std::shared_ptr<ReplicaSession> self);
  asio::awaitable<std::shared_ptr<net::Lease>> take_memory(ReplicaNews& news);
  asio::awaitable<void> collect(ReplicaNews& news);
  void answer(ReplicaNews& news, std::shared_ptr<net::Lease> memory);
  void woken();

  Worker& worker_;
  Core& core_;
  model::IsrMember follower_;
  std::vector<std::shared_ptr<ReplicaFeed>> feeds_;  // by worker; null where nothing is subscribed
  std::deque<Held> held_;
  base::WaitList news_;
  bool has_news_ = false;
  bool serving_ = false;
  std::size_t first_ = 0;  // the worker that is asked first, so that none is always last
};

}  // namespace mq::broker
