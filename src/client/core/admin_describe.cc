#include <fmt/format.h>

#include <algorithm>

#include "client/core/admin_core.h"
#include "client/core/admin_items.h"
#include "client/core/error.h"
#include "client/core/gather.h"
#include "client/core/request.h"
#include "protocol/describe_broker.h"
#include "protocol/describe_config.h"

namespace mq::client {
namespace {

using protocol::ApiKey;

/// With several brokers one that says nothing is left out after this, so that it does not hide what
/// the others say.
constexpr std::chrono::milliseconds kSilentAfter{3000};
constexpr std::chrono::milliseconds kConnectWithin{1000};

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
  to.min_isr = from.min_isr;
  to.loss_epoch = from.loss_epoch;
  to.loss_start = from.loss_start;
  to.loss_end = from.loss_end;
  for (const auto& follower : from.followers)
    to.followers.push_back({follower.broker, follower.confirmed_end, Duration(follower.behind_ms)});
  for (const auto& note : from.replica_notes) to.replica_notes.push_back({note.broker, note.text});
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
  to.partitions_led = from.partitions_led;
  to.partitions_not_serving = from.partitions_not_serving;
  to.partitions_damaged = from.partitions_damaged;
  to.partitions_recovering = from.partitions_recovering;
  to.recovery_bytes_read = from.recovery_bytes_read;
  for (const auto& disk : from.disks) {
    to.disks.push_back(DiskDescription{
        disk.path, disk.state, disk.bytes_used, disk.bytes_free, disk.bytes_total, disk.partitions,
        disk.disk == base::Uuid() ? "" : disk.disk.hex(), disk.reason, disk.write_rate,
        disk.scrubbed_bytes, disk.scrub_damaged_segments, disk.intact_since_disk,
        disk.intact_since_memory, disk.aside_bytes, disk.aside_logs});
  }
  to.controller = from.controller;
  to.broker_epoch = from.broker_epoch;
  to.rack = from.rack;
  if (from.clock_ahead_ms) to.clock_ahead = Duration(*from.clock_ahead_ms);
  to.metadata_trouble = from.metadata_trouble;
  to.lease_lost = from.lease_lost;
  for (const auto& alert : from.alerts)
    to.alerts.push_back({alert.check, static_cast<int>(alert.level), alert.text});
  to.counters = from.counters;
  to.warnings = from.warnings;
  return to;
}

/// The outcomes of brokers that cannot be asked, unless the cluster itself could not (-1).
template <class T>
void add_away(const MetadataCache& metadata, std::map<std::int32_t, Result<T>>& outcomes) {
  if (outcomes.contains(-1)) return;
  for (const auto& [id, broker] : metadata.brokers()) {
    if (!broker.away) continue;
    Error error = make_error(
        Errc::unreachable,
        fmt::format("{} is not in the cluster now", broker_text(id, broker.address.text())));
    error.hint = "look whether its process runs, and at its log";
    outcomes.emplace(id, std::move(error));
  }
}

/// The answer from the newest image; null when nobody answered.
template <class Response>
const Response* newest(const std::map<std::int32_t, Result<Response>>& answers) {
  const Response* best = nullptr;
  for (const auto& [id, answer] : answers) {
    if (answer &&
        (best == nullptr || answer->envelope.metadata_version > best->envelope.metadata_version)) {
      best = &*answer;
    }
  }
  return best;
}

/// Why nobody answered.
template <class Response>
Error first_error(const std::map<std::int32_t, Result<Response>>& answers) {
  for (const auto& [id, answer] : answers) {
    if (!answer) return answer.error();
  }
  return make_error(Errc::unreachable, "no broker is known");
}

using TopicAnswers = std::map<std::int32_t, Result<protocol::DescribeTopicsResponse>>;

/// What that broker says of the partition; null: it does not answer, or knows another leader.
const protocol::PartitionDescription* said_by(std::int32_t broker, const std::string& topic,
                                              const protocol::PartitionDescription& partition,
                                              const TopicAnswers& answers) {
  const auto answer = answers.find(broker);
  if (answer == answers.end() || !answer->second) return nullptr;
  for (const auto& described : answer->second->topics) {
    if (described.name != topic) continue;
    const auto one = std::ranges::lower_bound(described.partitions, partition.partition, {},
                                              &protocol::PartitionDescription::partition);
    if (one != described.partitions.end() && one->partition == partition.partition &&
        one->leader == partition.leader)
      return &*one;
  }
  return nullptr;
}

/// Why a replica does not lead is known best to its own broker.
void complete_leaderless(protocol::PartitionDescription& partition, const std::string& topic,
                         const TopicAnswers& answers) {
  for (auto& note : partition.replica_notes) {
    const auto* const own = said_by(note.broker, topic, partition, answers);
    if (own == nullptr) continue;
    const auto found =
        std::ranges::find(own->replica_notes, note.broker, &protocol::ReplicaNote::broker);
    if (found != own->replica_notes.end()) note.text = found->text;
  }
  if (!partition.note.empty()) return;
  std::vector<std::string> reasons;
  for (const auto& note : partition.replica_notes)
    reasons.push_back(fmt::format("broker {} {}", note.broker, note.text));
  partition.note = reasons.empty() ? std::string("no leader")
                                   : fmt::format("no leader: {}", fmt::join(reasons, "; "));
}

/// Each broker knows of its own replica that it is damaged.
void add_damage(protocol::PartitionDescription& partition, const std::string& topic,
                const TopicAnswers& answers) {
  partition.replica_notes.clear();
  for (const auto replica : partition.replicas) {
    const auto* const own = said_by(replica, topic, partition, answers);
    if (own == nullptr) continue;
    for (const auto& note : own->replica_notes) {
      if (note.broker == replica) partition.replica_notes.push_back(note);
    }
  }
}

/// What only the leader knows, from its own answer.
void complete(protocol::PartitionDescription& partition, const std::string& topic,
              const TopicAnswers& answers) {
  if (partition.leader < 0) return complete_leaderless(partition, topic, answers);
  const auto answer = answers.find(partition.leader);
  if (answer == answers.end() || !answer->second) {
    partition.note = fmt::format("its leader, broker {}, does not answer", partition.leader);
    return;
  }
  if (const auto* const own = said_by(partition.leader, topic, partition, answers))
    partition = *own;
  add_damage(partition, topic, answers);
}

}  // namespace

template <class Request, class Response>
asio::awaitable<Result<Response>> AdminCore::ask_broker(
    std::int32_t broker, ApiKey api, Request request, base::Result<Response> (*decode)(base::Bytes),
    base::TimePoint deadline) {
  for (int attempt = 1;; ++attempt) {
    const base::TimePoint soon = std::min(deadline, core_.runtime.now() + kConnectWithin);
    auto connection = co_await core_.pool.get(broker, soon);
    if (!connection) co_return connection.error();
    fill_envelope(request.envelope, config_, core_.runtime.now(), deadline);
    net::ClientRequest message;
    message.api = api;
    message.header = protocol::encode(request);
    message.deadline = deadline;
    auto answer = co_await exchange(*connection, std::move(message), decode);
    // A connection that was closed while it was idle says so only when it is used.
    const bool closed_idle = !answer && answer.error().code == Errc::connection_lost;
    if (!closed_idle || attempt == 3) co_return answer;
  }
}

/// Every broker that is in the cluster, side by side.
template <class Request, class Response>
asio::awaitable<std::map<std::int32_t, Result<Response>>> AdminCore::ask_all(
    ApiKey api, Request request, base::Result<Response> (*decode)(base::Bytes),
    base::TimePoint deadline) {
  std::map<std::int32_t, Result<Response>> answers;
  protocol::MetadataRequest who;
  const auto cluster = co_await core_.metadata.fetch(std::move(who), deadline);
  if (!cluster) {
    answers.emplace(-1, cluster.error());
    co_return answers;
  }
  std::vector<std::int32_t> ids;
  for (const auto& [id, broker] : core_.metadata.brokers()) {
    if (!broker.away) ids.push_back(id);
  }
  if (ids.size() > 1) deadline = std::min(deadline, core_.runtime.now() + kSilentAfter);
  std::vector<asio::awaitable<Result<Response>>> requests;
  requests.reserve(ids.size());
  for (const std::int32_t id : ids)
    requests.push_back(ask_broker(id, api, request, decode, deadline));
  auto outcomes =
      co_await Gather<Result<Response>>::all(core_.runtime, core_.tasks, std::move(requests));
  for (std::size_t i = 0; i < ids.size(); ++i) answers.emplace(ids[i], std::move(outcomes[i]));
  co_return answers;
}

/// Each broker knows the sizes of what it leads; partitions that nobody leads, or whose leader does
/// not answer, are not served.
asio::awaitable<Result<std::vector<TopicSummary>>> AdminCore::list_topics() {
  protocol::ListTopicsRequest request;
  const auto answers = co_await ask_all(ApiKey::list_topics, std::move(request),
                                        &protocol::decode_list_topics_response, deadline());
  const protocol::ListTopicsResponse* base = newest(answers);
  if (base == nullptr) co_return first_error(answers);
  std::map<base::Uuid, TopicSummary> by_id;
  std::map<base::Uuid, std::int32_t> led;
  for (const auto& topic : base->topics) {
    TopicSummary summary = to_public(topic);
    summary.bytes = 0;
    summary.records = 0;
    summary.partitions_not_serving = 0;
    by_id.emplace(topic.id, std::move(summary));
  }
  for (const auto& [id, answer] : answers) {
    if (!answer) continue;
    for (const auto& topic : answer->topics) {
      const auto found = by_id.find(topic.id);
      if (found == by_id.end()) continue;
      found->second.bytes += topic.bytes;
      found->second.records += topic.records;
      found->second.partitions_not_serving += topic.partitions_not_serving;
      led[topic.id] += topic.partitions_led;
    }
  }
  std::vector<TopicSummary> topics;
  for (const auto& topic : base->topics) {
    TopicSummary& summary = by_id.at(topic.id);
    summary.partitions_not_serving += std::max(0, summary.partitions - led[topic.id]);
    topics.push_back(std::move(summary));
  }
  co_return topics;
}

asio::awaitable<PerItem<TopicDescription>> AdminCore::describe_topics(
    std::vector<std::string> names) {
  PerItem<TopicDescription> outcomes;
  refuse_unsendable(names, outcomes);
  if (names.empty()) co_return outcomes;
  protocol::DescribeTopicsRequest request;
  request.names = names;
  const auto answers = co_await ask_all(ApiKey::describe_topics, std::move(request),
                                        &protocol::decode_describe_topics_response, deadline());
  const protocol::DescribeTopicsResponse* base = newest(answers);
  if (base == nullptr) {
    for (const std::string& name : names) outcomes.emplace(name, first_error(answers));
    co_return outcomes;
  }
  for (protocol::TopicDescription topic : base->topics) {
    if (!topic.status.ok()) {
      outcomes.emplace(topic.name,
                       from_status(topic.status, broker_place(core_, topic.status.broker)));
      continue;
    }
    for (auto& partition : topic.partitions) complete(partition, topic.name, answers);
    outcomes.emplace(topic.name, to_public(topic));
  }
  for (const std::string& name : names) {
    if (!outcomes.contains(name)) outcomes.emplace(name, left_out(name));
  }
  co_return outcomes;
}

asio::awaitable<Result<std::vector<PartitionInfo>>> AdminCore::list_partitions() {
  protocol::MetadataRequest request;
  request.all_topics = true;
  const auto answer = co_await core_.metadata.fetch(std::move(request), deadline());
  if (!answer) co_return answer.error();
  std::vector<PartitionInfo> partitions;
  for (const auto& topic : answer->topics) {
    for (const auto& partition : topic.partitions) {
      PartitionInfo info;
      info.topic = topic.name;
      info.partition = partition.partition;
      info.leader = partition.leader;
      info.leader_epoch = partition.leader_epoch;
      info.replicas = partition.replicas;
      info.in_sync = partition.in_sync;
      info.min_isr = partition.min_isr;
      partitions.push_back(std::move(info));
    }
  }
  co_return partitions;
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
    cluster.brokers.push_back(BrokerInfo{broker.id, address.text(), broker.away, broker.rack});
  }
  co_return cluster;
}

asio::awaitable<std::map<std::int32_t, Result<BrokerDescription>>> AdminCore::describe_brokers() {
  protocol::DescribeBrokerRequest request;
  const auto answers = co_await ask_all(ApiKey::describe_broker, std::move(request),
                                        &protocol::decode_describe_broker_response, deadline());
  std::map<std::int32_t, Result<BrokerDescription>> outcomes;
  const auto& brokers = core_.metadata.brokers();
  for (const auto& [id, answer] : answers) {
    if (!answer) {
      outcomes.emplace(id, answer.error());
      continue;
    }
    const auto known = brokers.find(id);
    outcomes.emplace(
        id, to_public(*answer, known == brokers.end() ? "" : known->second.address.text()));
  }
  add_away(core_.metadata, outcomes);
  co_return outcomes;
}

asio::awaitable<std::map<std::int32_t, Result<std::vector<ConfigSetting>>>>
AdminCore::describe_configs() {
  protocol::DescribeConfigRequest request;
  const auto answers = co_await ask_all(ApiKey::describe_config, std::move(request),
                                        &protocol::decode_describe_config_response, deadline());
  std::map<std::int32_t, Result<std::vector<ConfigSetting>>> outcomes;
  for (const auto& [id, answer] : answers) {
    if (!answer) {
      outcomes.emplace(id, answer.error());
      continue;
    }
    std::vector<ConfigSetting> settings;
    for (const auto& setting : answer->settings)
      settings.push_back(ConfigSetting{setting.name, setting.value, setting.origin});
    outcomes.emplace(id, std::move(settings));
  }
  add_away(core_.metadata, outcomes);
  co_return outcomes;
}

}  // namespace mq::client
