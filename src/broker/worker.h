#pragma once

#include <functional>
#include <map>
#include <memory>

#include "broker/core.h"
#include "broker/worker_network.h"
#include "net/memory_budget.h"
#include "replication/partition_table.h"
#include "replication/replica_fetcher.h"

namespace mq::broker {

class Connection;
struct MovingConnection;

/// One thread's share of the broker: its connections, its partitions and its memory budgets. All
/// members belong to its runtime, but for core(), runtime(), index() and open_connections().
class Worker {
 public:
  Worker(Core& core, std::size_t index, base::Runtime& runtime);
  ~Worker();  ///< stop() has returned, or nothing was ever adopted
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] Core& core() const noexcept { return core_; }
  [[nodiscard]] base::Runtime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] replication::PartitionTable& partitions() noexcept { return partitions_; }
  /// Fetch for the partitions that are followed here.
  [[nodiscard]] replication::ReplicaFetchers& replica_fetchers();
  /// For frames under way, answers under way, and large frames before Hello.
  [[nodiscard]] net::MemoryBudget& request_budget() noexcept { return request_budget_; }
  [[nodiscard]] net::MemoryBudget& answer_budget() noexcept { return answer_budget_; }
  [[nodiscard]] net::MemoryBudget& hello_budget() noexcept { return hello_budget_; }
  [[nodiscard]] base::TaskGroup& tasks() noexcept { return tasks_; }
  [[nodiscard]] std::size_t open_connections() const noexcept {
    return open_connections_.load(std::memory_order_relaxed);
  }

  // For Connection: how many are alive, ended ones with requests under way among them.
  void connection_made() noexcept { ++alive_connections_; }
  void connection_gone() noexcept { --alive_connections_; }

  /// Serves a new connection until it ends.
  void adopt(std::unique_ptr<base::Stream> stream);
  /// Goes on with a connection that was another worker's.
  void adopt(MovingConnection moving);
  /// New requests are refused, long polls answered, and requests under way get until `deadline`.
  /// Then its partitions close: a request of another worker may wait for one of them.
  asio::awaitable<void> drain(base::TimePoint deadline);
  /// After drain() of all workers: connections end, and everything started here has ended.
  asio::awaitable<void> stop(base::TimePoint deadline);

 private:
  void serve_new(std::shared_ptr<Connection> connection);
  asio::awaitable<void> serve(std::shared_ptr<Connection> connection, std::uint64_t number);
  void hand_over(MovingConnection moving, Worker& to);
  void arm_deadline_check();
  void check_deadlines();
  [[nodiscard]] std::size_t requests_under_way() const noexcept;

  Core& core_;
  std::size_t index_;
  base::Runtime& runtime_;
  base::Duration check_interval_;
  net::MemoryBudget request_budget_;
  net::MemoryBudget answer_budget_;
  net::MemoryBudget hello_budget_;
  replication::PartitionTable partitions_;
  WorkerNetwork network_;
  std::unique_ptr<replication::ReplicaFetchers> fetchers_;  // null: nothing was ever followed
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;  // in the order they came
  std::uint64_t last_connection_ = 0;
  std::atomic<std::size_t> open_connections_{0};
  std::size_t alive_connections_ = 0;
  base::Runtime::TimerId check_timer_ = 0;
  base::TaskGroup tasks_;
};

}  // namespace mq::broker
