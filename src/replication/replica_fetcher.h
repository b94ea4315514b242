#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/network.h"
#include "base/wait_list.h"
#include "net/client_connection.h"
#include "replication/follower.h"

namespace mq::replication {

struct ReplicaFetcherConfig {
  model::BrokerId broker;  ///< this one
  std::string version;
  base::Uuid cluster_id;
  /// The present registration of this broker; any thread. What is fetched counts for it only.
  std::function<model::BrokerEpoch()> broker_epoch;
  std::uint32_t bytes_max = std::uint32_t{4} << 20;  ///< of one answer
  base::Duration wait = std::chrono::milliseconds(protocol::kReplicaFetchWaitMsMax);
  base::Duration answer_margin = std::chrono::seconds(5);  ///< then the leader counts as silent
};

/// Fetches for all partitions of one worker that one broker leads, over one connection to its
/// advertised address. Two long polls are out all the time; when a confirmed end has moved the
/// leader is told at once, by a third (which makes it answer the oldest).
///
/// On the worker's runtime.
class ReplicaFetcher {
 public:
  /// Everything given outlives it.
  ReplicaFetcher(ReplicaFetcherConfig config, model::BrokerId leader, base::Runtime& runtime,
                 base::Network& network, base::Counters& counters);
  ~ReplicaFetcher();  ///< stop() has returned

  void start();
  /// Where the leader is; nothing: unknown.
  void set_address(std::optional<base::Endpoint> address);
  /// Fetches for it from now on; a partition of the same id goes.
  void follow(std::shared_ptr<FollowedPartition> partition);
  void unfollow(const model::PartitionId& id);
  [[nodiscard]] std::size_t partitions() const noexcept { return partitions_.size(); }
  [[nodiscard]] bool connected() const noexcept { return connection_ != nullptr; }

  /// Nothing is sent any more.
  void give_up();
  /// The same, and returns when nothing is under way any more.
  asio::awaitable<void> stop();

 private:
  using ConnectionPtr = std::shared_ptr<net::ClientConnection>;

  asio::awaitable<void> run();
  asio::awaitable<void> connect();
  asio::awaitable<void> pause();
  void begin_session(ConnectionPtr connection);
  void end_session();
  void drop();
  void trouble(const std::string& why);

  void note_news(const model::PartitionId& id, bool urgent);
  void send_soon();
  asio::awaitable<void> send_now();
  void send_what_is_due();
  void send();
  [[nodiscard]] protocol::ReplicaFetchRequest next_request();
  bool add_news(FollowedPartition& partition, protocol::ReplicaFetchRequest& request);
  void answered(std::uint64_t session, const base::Result<net::Frame>& frame);
  bool take(const net::Frame& frame);

  ReplicaFetcherConfig config_;
  model::BrokerId leader_;
  base::Runtime& runtime_;
  base::Network& network_;
  base::Counter& bytes_fetched_;
  const std::uint64_t instance_;
  std::uint64_t connections_ = 0;

  std::optional<base::Endpoint> address_;
  std::unordered_map<model::PartitionId, std::shared_ptr<FollowedPartition>> partitions_;
  std::vector<model::PartitionId> news_;  // in the order they came, each once
  std::unordered_set<model::PartitionId> has_news_;
  std::vector<model::PartitionId> unsubscribes_;
  bool urgent_ = false;
  bool sending_soon_ = false;
  std::uint32_t number_ = 0;

  ConnectionPtr connection_;
  ConnectionPtr greeting_;
  std::uint64_t session_ = 0;  // tells answers of earlier connections apart
  model::BrokerEpoch session_epoch_;
  std::size_t outstanding_ = 0;
  base::Duration back_off_{};
  std::string trouble_;
  bool stopping_ = false;
  base::WaitList changed_;
  base::TaskGroup tasks_;
};

/// The fetchers of one worker, one for each broker that leads something it follows.
class ReplicaFetchers {
 public:
  ReplicaFetchers(ReplicaFetcherConfig config, base::Runtime& runtime, base::Network& network,
                  base::Counters& counters);
  ~ReplicaFetchers();

  /// Where the brokers are, as the newest image says.
  void set_addresses(std::unordered_map<model::BrokerId, base::Endpoint> addresses);
  void follow(const std::shared_ptr<FollowedPartition>& partition);
  void unfollow(const FollowedPartition& partition);
  /// For what waits for the disk in the partitions followed here.
  [[nodiscard]] net::MemoryBudget& memory() noexcept { return memory_; }

  void give_up();
  asio::awaitable<void> stop();

 private:
  ReplicaFetcherConfig config_;
  base::Runtime& runtime_;
  base::Network& network_;
  base::Counters& counters_;
  net::MemoryBudget memory_;
  std::unordered_map<model::BrokerId, base::Endpoint> addresses_;
  std::unordered_map<model::BrokerId, std::unique_ptr<ReplicaFetcher>> fetchers_;
  bool stopping_ = false;
};

}  // namespace mq::replication
