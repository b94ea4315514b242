#include "client/core/admin_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "client/core/error.h"
#include "client/core/request.h"
#include "model/topic_settings.h"
#include "protocol/describe_broker.h"
#include "protocol/topics.h"
#include "protocol/trim_partitions.h"
#include "protocol/utf8.h"

namespace mq::client {
namespace {

using protocol::ApiKey;

constexpr std::chrono::milliseconds kPause{50};
/// Longer than any topic's, shorter than what a request would cut off.
constexpr std::size_t kNameBytesMax = 1000;

/// An item that the broker's answer does not mention.
Error left_out(const std::string& name) {
  Error error = make_error(Errc::protocol_violation,
                           fmt::format("the broker's answer does not mention '{}'", name));
  error.maybe_applied = true;
  return error;
}

/// False for a name that no request carries as it is: its answer could not be told from others.
bool sendable(const std::string& name) {
  return name.size() <= kNameBytesMax && protocol::valid_utf8(name);
}

/// Takes the names out that are no topics' whatever a broker says; they have their outcome.
template <class T>
void refuse_unsendable(std::vector<std::string>& names, PerItem<T>& outcomes) {
  std::erase_if(names, [&](const std::string& name) {
    if (sendable(name)) return false;
    outcomes.emplace(
        name, make_error(Errc::unknown_topic,
                         fmt::format("there is no topic \"{}\"", base::printable(name, 260))));
    return true;
  });
}

void refuse_unsendable(std::vector<NewTopic>& topics, PerItem<CreatedTopic>& outcomes) {
  std::erase_if(topics, [&](const NewTopic& topic) {
    if (sendable(topic.name)) return false;
    const auto rule = model::check_topic_name(topic.name);
    outcomes.emplace(topic.name,
                     make_error(Errc::invalid_topic_name,
                                fmt::format("topic \"{}\": {}", base::printable(topic.name, 260),
                                            rule.value_or("the name cannot be sent"))));
    return true;
  });
}

std::string broker_place(const ClientCore& core, std::int32_t broker) {
  return broker < 0 ? std::string() : core.pool.name(broker);
}

TopicSummary to_public(const protocol::TopicSummary& from) {
  TopicSummary to;
  to.name = from.name;
  to.id = from.id.hex();
  to.partitions = from.partitions;
  to.replicas = from.replicas;
  to.bytes = from.bytes;
  to.records = from.records;
  to.partitions_not_serving = from.partitions_not_serving;
  return to;
}

PartitionDescription to_public(const protocol::PartitionDescription& from) {
  PartitionDescription to;
  to.partition = from.partition;
  to.leader = from.leader;
  to.leader_epoch = from.leader_epoch;
  to.replicas = from.replicas;
  to.in_sync = from.in_sync;
  to.log_start_offset = from.log_start_offset;
  to.high_watermark = from.high_watermark;
  to.log_end_offset = from.log_end_offset;
  to.bytes = from.bytes;
  to.segments = from.segments;
  to.note = from.note;
  return to;
}

TopicDescription to_public(const protocol::TopicDescription& from) {
  TopicDescription to;
  to.name = from.name;
  to.id = from.id.hex();
  for (const auto& setting : from.settings)
    to.settings.push_back(TopicSetting{setting.name, setting.value, setting.origin});
  for (const auto& partition : from.partitions) to.partitions.push_back(to_public(partition));
  return to;
}

BrokerDescription to_public(const protocol::DescribeBrokerResponse& from, std::string address) {
  BrokerDescription to;
  to.id = from.broker_id;
  to.address = std::move(address);
  to.version = from.version;
  to.metadata = from.metadata_kind;
  to.uptime = Duration(from.uptime_ms);
  to.process_id = from.process_id;
  to.resident_bytes = from.resident_bytes;
  to.cpu_user = Duration(from.cpu_user_ms);
  to.cpu_system = Duration(from.cpu_system_ms);
  to.workers = from.workers;
  to.connections = from.connections;
  to.topics = from.topics;
  to.partitions = from.partitions;
  to.partitions_not_serving = from.partitions_not_serving;
  to.partitions_damaged = from.partitions_damaged;
  to.partitions_recovering = from.partitions_recovering;
  to.recovery_bytes_read = from.recovery_bytes_read;
  for (const auto& disk : from.disks) {
    to.disks.push_back(DiskDescription{
        disk.path, disk.state, disk.bytes_used, disk.bytes_free, disk.bytes_total, disk.partitions,
        disk.disk == base::Uuid() ? "" : disk.disk.hex(), disk.reason, disk.write_rate,
        disk.scrubbed_bytes, disk.scrub_damaged_segments});
  }
  to.counters = from.counters;
  to.warnings = from.warnings;
  return to;
}

/// A broker that has just been started refuses every change until it has looked at its logs, which
/// mostly takes a moment.
template <class Response>
bool broker_recovers(const Response& response) {
  if constexpr (requires { response.results; }) {
    return !response.results.empty() && std::ranges::all_of(response.results, [](const auto& each) {
      return each.status.error() == protocol::WireError::partition_recovering;
    });
  }
  return false;
}

}  // namespace

AdminCore::AdminCore(base::Runtime& runtime, base::Network& network, ClientConfig config)
    : config_(std::move(config)), core_(runtime, network, config_) {}

base::TimePoint AdminCore::deadline() const {
  return core_.runtime.now() + config_.request_timeout;
}

template <class Request, class Response>
asio::awaitable<Result<Response>> AdminCore::ask(ApiKey api, Request request,
                                                 base::Result<Response> (*decode)(base::Bytes),
                                                 base::TimePoint deadline, Repeat repeat) {
  while (true) {
    auto connection = co_await core_.pool.any(deadline);
    if (!connection) co_return connection.error();
    fill_envelope(request.envelope, config_, core_.runtime.now(), deadline);
    net::ClientRequest message;
    message.api = api;
    message.header = protocol::encode(request);
    message.deadline = deadline;
    auto answer = co_await exchange(*connection, std::move(message), decode);
    const bool again = answer ? broker_recovers(*answer) : answer.error().retriable;
    if (!again) co_return answer;
    if (!answer && answer.error().maybe_applied && repeat == Repeat::unless_applied)
      co_return answer;
    if (core_.runtime.now() + kPause >= deadline) co_return answer;
    co_await core_.runtime.sleep_for(kPause);
  }
}

/// Returns when a broker's image has (or lacks) these topics, or when the time is over.
asio::awaitable<void> AdminCore::wait_until_known(std::vector<std::string> names, bool present,
                                                  base::TimePoint deadline) {
  std::uint64_t seen = 0;
  while (!names.empty() && core_.runtime.now() < deadline) {
    protocol::MetadataRequest request;
    request.topics = names;
    request.newer_than = seen;
    const auto answer = co_await core_.metadata.fetch(std::move(request), deadline);
    if (!answer) co_return;
    names.clear();
    for (const auto& topic : answer->topics) {
      const bool there = topic.status.ok() && !topic.partitions.empty() &&
                         std::ranges::all_of(topic.partitions, [](const auto& partition) {
                           return partition.leader >= 0;
                         });
      const bool absent = topic.status.error() == protocol::WireError::unknown_topic;
      if (present ? !there : !absent) names.push_back(topic.name);
    }
    seen = answer->envelope.metadata_version;
  }
}

asio::awaitable<PerItem<CreatedTopic>> AdminCore::create_topics(std::vector<NewTopic> topics,
                                                                bool dry_run) {
  const base::TimePoint until = deadline();
  PerItem<CreatedTopic> outcomes;
  refuse_unsendable(topics, outcomes);
  if (topics.empty()) co_return outcomes;
  protocol::CreateTopicsRequest request;
  request.validate_only = dry_run;
  for (const NewTopic& topic : topics) {
    protocol::NewTopic wanted;
    wanted.name = topic.name;
    wanted.partitions = topic.partitions;
    wanted.replicas = topic.replicas;
    wanted.min_isr = topic.min_isr;
    wanted.settings = topic.config;
    request.topics.push_back(std::move(wanted));
  }
  const auto answer = co_await ask(ApiKey::create_topics, std::move(request),
                                   &protocol::decode_create_topics_response, until,
                                   dry_run ? Repeat::always : Repeat::unless_applied);
  if (!answer) {
    for (const NewTopic& topic : topics) outcomes.emplace(topic.name, answer.error());
    co_return outcomes;
  }
  std::vector<std::string> created;
  for (const auto& result : answer->results) {
    if (!result.status.ok()) {
      outcomes.emplace(result.name,
                       from_status(result.status, broker_place(core_, result.status.broker)));
      continue;
    }
    CreatedTopic topic;
    if (!dry_run) topic.id = result.id.hex();
    topic.partitions = result.partitions;
    outcomes.emplace(result.name, std::move(topic));
    created.push_back(result.name);
  }
  for (const NewTopic& topic : topics) {
    if (!outcomes.contains(topic.name)) outcomes.emplace(topic.name, left_out(topic.name));
  }
  if (!dry_run) co_await wait_until_known(std::move(created), true, until);
  co_return outcomes;
}

asio::awaitable<PerItem<void>> AdminCore::delete_topics(std::vector<std::string> names) {
  const base::TimePoint until = deadline();
  PerItem<void> outcomes;
  refuse_unsendable(names, outcomes);
  if (names.empty()) co_return outcomes;
  protocol::DeleteTopicsRequest request;
  request.names = names;
  const auto answer =
      co_await ask(ApiKey::delete_topics, std::move(request),
                   &protocol::decode_delete_topics_response, until, Repeat::unless_applied);
  if (!answer) {
    for (const std::string& name : names) outcomes.emplace(name, answer.error());
    co_return outcomes;
  }
  std::vector<std::string> deleted;
  for (const auto& result : answer->results) {
    if (result.status.ok()) {
      outcomes.emplace(result.name, Result<void>());
      deleted.push_back(result.name);
    } else {
      outcomes.emplace(result.name,
                       from_status(result.status, broker_place(core_, result.status.broker)));
    }
  }
  for (const std::string& name : names) {
    if (!outcomes.contains(name)) outcomes.emplace(name, left_out(name));
  }
  co_await wait_until_known(std::move(deleted), false, until);
  co_return outcomes;
}

asio::awaitable<Result<std::vector<TopicSummary>>> AdminCore::list_topics() {
  protocol::ListTopicsRequest request;
  const auto answer =
      co_await ask(ApiKey::list_topics, std::move(request), &protocol::decode_list_topics_response,
                   deadline(), Repeat::always);
  if (!answer) co_return answer.error();
  std::vector<TopicSummary> topics;
  for (const auto& topic : answer->topics) topics.push_back(to_public(topic));
  co_return topics;
}

asio::awaitable<PerItem<TopicDescription>> AdminCore::describe_topics(
    std::vector<std::string> names) {
  PerItem<TopicDescription> outcomes;
  refuse_unsendable(names, outcomes);
  if (names.empty()) co_return outcomes;
  protocol::DescribeTopicsRequest request;
  request.names = names;
  const auto answer =
      co_await ask(ApiKey::describe_topics, std::move(request),
                   &protocol::decode_describe_topics_response, deadline(), Repeat::always);
  if (!answer) {
    for (const std::string& name : names) outcomes.emplace(name, answer.error());
    co_return outcomes;
  }
  for (const auto& topic : answer->topics) {
    if (topic.status.ok()) {
      outcomes.emplace(topic.name, to_public(topic));
    } else {
      outcomes.emplace(topic.name,
                       from_status(topic.status, broker_place(core_, topic.status.broker)));
    }
  }
  for (const std::string& name : names) {
    if (!outcomes.contains(name)) outcomes.emplace(name, left_out(name));
  }
  co_return outcomes;
}

asio::awaitable<Result<model::PartitionId>> AdminCore::partition_id(TopicPartition name,
                                                                    base::TimePoint deadline) {
  const auto topic = co_await core_.metadata.lookup(name.topic, deadline);
  if (!topic) co_return topic.error();
  co_return partition_of(**topic, name);
}

/// Trimming twice is trimming once, so an unknown outcome is resolved by asking again.
asio::awaitable<Result<std::int64_t>> AdminCore::trim_one(TopicPartition name, std::int64_t to) {
  const base::TimePoint until = deadline();
  if (to < 0)
    co_return make_error(Errc::invalid_argument, fmt::format("offset {} is negative", to));
  const auto id = co_await partition_id(name, until);
  if (!id) co_return id.error();
  while (true) {
    const auto trimmed = co_await ask_leader_to_trim(*id, to, until);
    if (trimmed || !trimmed.error().retriable) co_return trimmed;
    if (core_.runtime.now() + kPause >= until) co_return trimmed;
    core_.metadata.refresh_soon(id->topic);
    co_await core_.runtime.sleep_for(kPause);
    // The topic may be gone, or another one may have its name.
    if (core_.metadata.leader(*id) >= 0) continue;
    const auto now = co_await partition_id(name, until);
    if (!now) co_return now.error();
    if (*now != *id)
      co_return make_error(Errc::unknown_topic_id, fmt::format("'{}' was made anew", name.topic));
  }
}

asio::awaitable<Result<std::int64_t>> AdminCore::ask_leader_to_trim(model::PartitionId id,
                                                                    std::int64_t to,
                                                                    base::TimePoint until) {
  const std::int32_t leader = core_.metadata.leader(id);
  if (leader < 0) co_return make_error(Errc::partition_offline, "a partition has no leader");
  auto connection = co_await core_.pool.get(leader, until);
  if (!connection) co_return connection.error();
  protocol::TrimPartitionsRequest request;
  fill_envelope(request.envelope, config_, core_.runtime.now(), until);
  request.entries.push_back(protocol::TrimEntry{id, model::Offset(to)});
  net::ClientRequest message;
  message.api = ApiKey::trim_partitions;
  message.header = protocol::encode(request);
  message.deadline = until;
  const std::string place = where(**connection);
  const auto answer = co_await exchange(*connection, std::move(message),
                                        &protocol::decode_trim_partitions_response);
  if (!answer) co_return answer.error();
  if (answer->results.size() != 1) {
    co_return make_error(Errc::protocol_violation,
                         "an answer about a trim has the wrong number of results", place);
  }
  const auto& result = answer->results.front();
  if (!result.status.ok()) co_return from_status(result.status, place);
  co_return result.log_start_offset.value();
}

asio::awaitable<std::map<TopicPartition, Result<std::int64_t>>> AdminCore::trim(
    std::map<TopicPartition, std::int64_t> to) {
  std::map<TopicPartition, Result<std::int64_t>> outcomes;
  for (const auto& [name, offset] : to) {
    auto outcome = co_await trim_one(name, offset);
    outcomes.emplace(name, std::move(outcome));
  }
  co_return outcomes;
}

asio::awaitable<Result<ClusterDescription>> AdminCore::describe_cluster() {
  protocol::MetadataRequest request;
  const auto answer = co_await core_.metadata.fetch(std::move(request), deadline());
  if (!answer) co_return answer.error();
  ClusterDescription cluster;
  cluster.id = answer->cluster_id.hex();
  cluster.controller = answer->controller;
  for (const auto& broker : answer->brokers) {
    const base::Endpoint address{broker.host, static_cast<std::uint16_t>(broker.port)};
    cluster.brokers.push_back(BrokerInfo{broker.id, address.text()});
  }
  co_return cluster;
}

asio::awaitable<Result<BrokerDescription>> AdminCore::describe_broker(std::int32_t id,
                                                                      std::string address) {
  const base::TimePoint until = deadline();
  auto connection = co_await core_.pool.get(id, until);
  if (!connection) co_return connection.error();
  protocol::DescribeBrokerRequest request;
  fill_envelope(request.envelope, config_, core_.runtime.now(), until);
  net::ClientRequest message;
  message.api = ApiKey::describe_broker;
  message.header = protocol::encode(request);
  message.deadline = until;
  const auto answer = co_await exchange(*connection, std::move(message),
                                        &protocol::decode_describe_broker_response);
  if (!answer) co_return answer.error();
  co_return to_public(*answer, std::move(address));
}

asio::awaitable<std::map<std::int32_t, Result<BrokerDescription>>> AdminCore::describe_brokers() {
  std::map<std::int32_t, Result<BrokerDescription>> outcomes;
  const auto cluster = co_await describe_cluster();
  if (!cluster) {
    outcomes.emplace(-1, cluster.error());
    co_return outcomes;
  }
  for (const BrokerInfo& broker : cluster->brokers) {
    auto description = co_await describe_broker(broker.id, broker.address);
    outcomes.emplace(broker.id, std::move(description));
  }
  co_return outcomes;
}

}  // namespace mq::client
