#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/core/client_core.h"
#include "mq/admin.h"

namespace mq::client {

/// An admin client without threads. All on its runtime; calls may overlap.
class AdminCore {
 public:
  AdminCore(base::Runtime& runtime, base::Network& network, ClientConfig config);

  asio::awaitable<Result<void>> start() { return core_.start(); }
  asio::awaitable<void> stop() { return core_.stop(); }

  asio::awaitable<PerItem<CreatedTopic>> create_topics(std::vector<NewTopic> topics, bool dry_run);
  asio::awaitable<PerItem<void>> delete_topics(std::vector<std::string> names);
  asio::awaitable<Result<std::vector<TopicSummary>>> list_topics();
  asio::awaitable<PerItem<TopicDescription>> describe_topics(std::vector<std::string> names);
  asio::awaitable<std::map<TopicPartition, Result<std::int64_t>>> trim(
      std::map<TopicPartition, std::int64_t> to);
  asio::awaitable<Result<ClusterDescription>> describe_cluster();
  asio::awaitable<std::map<std::int32_t, Result<BrokerDescription>>> describe_brokers();

  [[nodiscard]] ClientCore& client() noexcept { return core_; }

 private:
  [[nodiscard]] base::TimePoint deadline() const;
  /// Sends to any broker; again, until the deadline, after "try again" answers that say nothing was
  /// applied, or whatever they say when the request may be repeated.
  enum class Repeat : std::uint8_t { unless_applied, always };
  template <class Request, class Response>
  asio::awaitable<Result<Response>> ask(protocol::ApiKey api, Request request,
                                        base::Result<Response> (*decode)(base::Bytes),
                                        base::TimePoint deadline, Repeat repeat);
  asio::awaitable<void> wait_until_known(std::vector<std::string> names, bool present,
                                         base::TimePoint deadline);
  asio::awaitable<Result<model::PartitionId>> partition_id(TopicPartition name,
                                                           base::TimePoint deadline);
  asio::awaitable<Result<std::int64_t>> trim_one(TopicPartition name, std::int64_t to);
  asio::awaitable<Result<std::int64_t>> ask_leader_to_trim(model::PartitionId id, std::int64_t to,
                                                           base::TimePoint until);
  asio::awaitable<Result<BrokerDescription>> describe_broker(std::int32_t id, std::string address);

  ClientConfig config_;
  ClientCore core_;
};

}  // namespace mq::client
