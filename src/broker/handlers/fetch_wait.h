#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "base/wait_list.h"
#include "broker/connection.h"

namespace mq::broker {

/// One wait of one fetch: waiters left at partitions of any worker, of which the first that is
/// woken, or the end of the connection, wakes the fetch on its own worker ("home").
class FetchWait final : public ConnectionWaiter, public std::enable_shared_from_this<FetchWait> {
 public:
  FetchWait(base::Runtime& home, std::size_t workers)
      : home_(home), woken_list_(home), nodes_(workers) {}

  /// On the partition's worker: wakes once its high watermark has passed `wanted` or its state
  /// changed.
  void wait_for(Worker& worker, replication::Readable& partition, model::Offset wanted);
  /// From the thread of `here`, a worker's runtime.
  void wake_from(base::Runtime& here);

  /// At home: returns when woken or late.
  asio::awaitable<void> until(base::TimePoint deadline);
  /// At home, afterwards: takes the waiters away, each on its worker.
  void leave(const std::vector<std::unique_ptr<Worker>>& workers);

  void connection_ending() override { woken(); }

 private:
  class Node final : public replication::FetchWaiter {
   public:
    Node(FetchWait& wait, base::Runtime& runtime) : wait_(wait), runtime_(runtime) {}
    void wake() override { wait_.wake_from(runtime_); }

   private:
    FetchWait& wait_;
    base::Runtime& runtime_;
  };

  void woken();

  base::Runtime& home_;
  base::WaitList woken_list_;
  bool woken_ = false;
  std::vector<std::deque<Node>> nodes_;  // by worker; each touched by its worker only
};

}  // namespace mq::broker
