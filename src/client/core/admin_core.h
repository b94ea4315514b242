#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/core/client_core.h"
#include "mq/admin.h"
#include "protocol/control_partitions.h"
#include "protocol/topics.h"

namespace mq::client {

/// An admin client without threads. All on its runtime; calls may overlap. admin_core.cc: changes,
/// which go to the controller; admin_describe.cc: what the brokers say, each asked itself;
/// admin_trim.cc.
class AdminCore {
 public:
  AdminCore(base::Runtime& runtime, base::Network& network, ClientConfig config);

  asio::awaitable<Result<void>> start() { return core_.start(); }
  asio::awaitable<void> stop() { return core_.stop(); }

  asio::awaitable<PerItem<CreatedTopic>> create_topics(std::vector<NewTopic> topics, bool dry_run);
  asio::awaitable<PerItem<void>> delete_topics(std::vector<std::string> names);
  asio::awaitable<PerItem<void>> alter_topics(std::map<std::string, TopicChange> changes);
  asio::awaitable<PerItem<std::int32_t>> add_partitions(std::map<std::string, std::int32_t> totals);
  asio::awaitable<Result<std::vector<TopicSummary>>> list_topics();
  asio::awaitable<PerItem<TopicDescription>> describe_topics(std::vector<std::string> names);
  asio::awaitable<Result<std::vector<PartitionInfo>>> list_partitions();
  asio::awaitable<std::map<TopicPartition, Result<std::int64_t>>> trim(
      std::map<TopicPartition, std::int64_t> to);
  using PerPartition = std::map<TopicPartition, Result<protocol::ControlResult>>;
  asio::awaitable<PerPartition> control(protocol::PartitionAction action,
                                        std::vector<TopicPartition> partitions,
                                        std::int32_t broker);
  asio::awaitable<Result<ClusterDescription>> describe_cluster();
  asio::awaitable<std::map<std::int32_t, Result<BrokerDescription>>> describe_brokers();
  asio::awaitable<std::map<std::int32_t, Result<std::vector<ConfigSetting>>>> describe_configs();

  [[nodiscard]] ClientCore& client() noexcept { return core_; }

 private:
  [[nodiscard]] base::TimePoint deadline() const;

  // Changes.
  enum class Repeat : std::uint8_t { unless_applied, always };
  using Changed = PerItem<protocol::TopicResult>;
  asio::awaitable<Result<ConnectionPtr>> controller(base::TimePoint deadline);
  template <class Request, class Response>
  asio::awaitable<Result<Response>> ask_controller(protocol::ApiKey api, Request request,
                                                   base::Result<Response> (*decode)(base::Bytes),
                                                   base::TimePoint deadline, Repeat repeat);
  template <class Item, class Request, class Response>
  asio::awaitable<Changed> change(protocol::ApiKey api, std::vector<Item> items,
                                  std::function<Request(std::vector<Item>)> make,
                                  base::Result<Response> (*decode)(base::Bytes),
                                  base::TimePoint deadline, Repeat repeat);
  asio::awaitable<void> refresh(base::TimePoint deadline);
  /// Until an image has what these topics are to have, or the time is over.
  using Wanted = std::function<bool(const protocol::TopicMetadata&)>;
  asio::awaitable<std::map<std::string, std::set<std::int32_t>>> partitions_there(
      std::vector<std::string> names, base::TimePoint until);
  asio::awaitable<void> wait_until_known(std::vector<std::string> names, Wanted wanted,
                                         base::TimePoint deadline);

  // Descriptions.
  template <class Request, class Response>
  asio::awaitable<Result<Response>> ask_broker(std::int32_t broker, protocol::ApiKey api,
                                               Request request,
                                               base::Result<Response> (*decode)(base::Bytes),
                                               base::TimePoint deadline);
  template <class Request, class Response>
  asio::awaitable<std::map<std::int32_t, Result<Response>>> ask_all(
      protocol::ApiKey api, Request request, base::Result<Response> (*decode)(base::Bytes),
      base::TimePoint deadline);

  asio::awaitable<Result<model::PartitionId>> partition_id(TopicPartition name,
                                                           base::TimePoint deadline);
  asio::awaitable<Result<std::int64_t>> trim_one(TopicPartition name, std::int64_t to);
  asio::awaitable<Result<std::int64_t>> ask_leader_to_trim(model::PartitionId id, std::int64_t to,
                                                           base::TimePoint until);

  ClientConfig config_;
  ClientCore core_;
};

}  // namespace mq::client
