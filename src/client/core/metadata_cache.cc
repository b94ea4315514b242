#include "client/core/metadata_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/core/ask_any.h"
#include "client/core/error.h"

namespace mq::client {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPauseMin{50};
constexpr milliseconds kPauseMax{1000};
/// A new leader is there within a second where a process is known to be dead: for so long it is
/// asked for at short intervals.
constexpr milliseconds kNewTrouble{1000};
constexpr milliseconds kPauseAtFirst{100};
constexpr milliseconds kCalm{5000};
constexpr milliseconds kLookupPause{50};
constexpr std::size_t kTopicsAtOnce = 1000;

}  // namespace

Result<model::PartitionId> partition_of(const TopicInfo& topic, const TopicPartition& name) {
  if (topic.find(name.partition) != nullptr) return model::PartitionId{topic.id, name.partition};
  return make_error(Errc::unknown_partition,
                    fmt::format("topic '{}' has no partition {}; it has {}", name.topic,
                                name.partition, topic.partitions.size()));
}

const protocol::PartitionMetadata* TopicInfo::find(std::int32_t partition) const {
  const auto found =
      std::ranges::lower_bound(partitions, partition, {}, &protocol::PartitionMetadata::partition);
  return found != partitions.end() && found->partition == partition ? &*found : nullptr;
}

MetadataCache::MetadataCache(base::Runtime& runtime, ConnectionPool& pool,
                             const ClientConfig& config)
    : runtime_(runtime), pool_(pool), config_(config), tasks_(runtime), stopping_(runtime) {}

asio::awaitable<Result<protocol::MetadataResponse>> MetadataCache::fetch(
    protocol::MetadataRequest request, base::TimePoint deadline) {
  // An image that lacks what this client has changed itself would be news of yesterday.
  if (needed_version_ > 0) request.newer_than = std::max(request.newer_than, needed_version_ - 1);
  std::function<net::ClientRequest()> make = [this, deadline,
                                              request = std::move(request)]() mutable {
    fill_envelope(request.envelope, config_, runtime_.now(), deadline);
    net::ClientRequest message;
    message.api = protocol::ApiKey::metadata;
    message.header = protocol::encode(request);
    return message;
  };
  auto answer = co_await AskAny<protocol::MetadataResponse>::ask(
      runtime_, pool_, tasks_, std::move(make), &protocol::decode_metadata_response, deadline);
  if (answer) apply(*answer);
  co_return answer;
}

asio::awaitable<Result<TopicPtr>> MetadataCache::lookup(std::string name,
                                                        base::TimePoint deadline) {
  while (true) {
    protocol::MetadataRequest request;
    request.topics.push_back(name);
    auto answer = co_await fetch(std::move(request), deadline);
    std::optional<Error> error;
    if (!answer) {
      error = answer.error();
    } else if (answer->topics.size() != 1) {
      error = make_error(Errc::protocol_violation, "a metadata answer lacks the topic asked for");
    } else if (!answer->topics.front().status.ok()) {
      const auto& status = answer->topics.front().status;
      error = from_status(status, pool_.name(status.broker));
    } else if (const auto known = by_id_.find(answer->topics.front().id); known != by_id_.end()) {
      co_return known->second;
    } else {  // an image older than what is known here
      error = make_error(Errc::metadata_unavailable,
                         fmt::format("the brokers do not agree yet about topic '{}'", name));
    }
    if (!error->retriable || stopped_ || runtime_.now() + kLookupPause >= deadline)
      co_return *error;
    co_await stopping_.wait_until(runtime_.now() + kLookupPause);
  }
}

void MetadataCache::apply(const protocol::MetadataResponse& response) {
  const std::uint64_t version = response.envelope.metadata_version;
  if (version >= version_) {
    version_ = version;
    controller_ = response.controller;
    apply_brokers(response);
  }
  for (const auto& topic : response.topics) apply_topic(topic, version);
  for (const auto& call : on_update_) call();
}

void MetadataCache::apply_brokers(const protocol::MetadataResponse& response) {
  if (response.brokers.empty()) return;
  brokers_.clear();
  std::map<std::int32_t, base::Endpoint> live;
  for (const auto& broker : response.brokers) {
    const base::Endpoint address{broker.host, static_cast<std::uint16_t>(broker.port)};
    brokers_.emplace(broker.id, KnownBroker{address, broker.away});
    if (!broker.away) live.emplace(broker.id, address);
  }
  if (!live.empty()) pool_.set_brokers(live);
}

/// CLI-6. Brokers take over a new image one after the other, so an answer may be older than the one
/// before. What was known from a newer one stays: a leader does not go back, a topic that was
/// deleted does not come back, and one that is there is not taken for deleted.
void MetadataCache::apply_topic(const protocol::TopicMetadata& topic, std::uint64_t version) {
  const auto known = by_name_.find(topic.name);
  const bool absent = topic.status.error() == protocol::WireError::unknown_topic;
  if (!topic.status.ok() && !absent) return;
  if (topic.status.ok() && gone_.contains(topic.id)) return;
  if (known != by_name_.end()) {
    if (version < known->second->version) return;
    if (absent || known->second->id != topic.id) {
      gone_.insert(known->second->id);
      by_id_.erase(known->second->id);
      by_name_.erase(known);
    }
  }
  if (absent) return;
  auto info = std::make_shared<TopicInfo>();
  info->name = topic.name;
  info->id = topic.id;
  info->version = version;
  info->learnt = runtime_.now();
  info->batch_bytes_max = topic.batch_bytes_max;
  info->partitions = topic.partitions;
  by_name_[topic.name] = info;
  by_id_[topic.id] = std::move(info);
}

std::string MetadataCache::name_of(const model::PartitionId& partition) const {
  const auto topic = by_id_.find(partition.topic);
  return fmt::format("{}/{}", topic == by_id_.end() ? partition.topic.hex() : topic->second->name,
                     partition.partition);
}

std::int32_t MetadataCache::leader(const model::PartitionId& partition) const {
  const auto topic = by_id_.find(partition.topic);
  if (topic == by_id_.end()) return -1;
  const auto* found = topic->second->find(partition.partition);
  return found == nullptr ? -1 : found->leader;
}

Error MetadataCache::error_of(const protocol::Status& status, const model::PartitionId& partition,
                              const std::string& where) const {
  Error error = from_status(status, where);
  const bool unknown = status.error() == protocol::WireError::unknown_topic_id ||
                       status.error() == protocol::WireError::unknown_partition;
  if (!unknown || error.retriable) return error;
  const auto topic = find(partition.topic);
  error.retriable = topic != nullptr && topic->find(partition.partition) != nullptr;
  return error;
}

TopicPtr MetadataCache::find(const base::Uuid& topic) const {
  const auto known = by_id_.find(topic);
  return known == by_id_.end() ? nullptr : known->second;
}

void MetadataCache::note_version(std::uint64_t version) {
  if (version <= noted_version_) return;
  noted_version_ = version;
  want_older_topics();
  begin_refresh();
}

void MetadataCache::want_older_topics() {
  for (const auto& [id, topic] : by_id_) {
    if (topic->version < noted_version_) refresh_wanted_.insert(id);
  }
}

void MetadataCache::refresh_soon(const base::Uuid& topic) {
  refresh_wanted_.insert(topic);
  begin_refresh();
}

void MetadataCache::refresh_older_than(const base::Uuid& topic, base::Duration age) {
  const auto known = by_id_.find(topic);
  if (known != by_id_.end() && runtime_.now() - known->second->learnt >= age) refresh_soon(topic);
}

void MetadataCache::begin_refresh() {
  if (refresh_wanted_.empty() || refreshing_ || stopped_) return;
  refreshing_ = true;
  tasks_.spawn("metadata refresh", refresh());
}

asio::awaitable<void> MetadataCache::refresh() {
  while (!refresh_wanted_.empty() && !stopped_) {
    const base::TimePoint now = runtime_.now();
    if (now - last_refresh_ > kCalm) {
      trouble_since_ = now;
      pause_ = milliseconds(0);
    } else {
      const bool is_new = now - trouble_since_ < kNewTrouble;
      pause_ = std::clamp(pause_ * 2, kPauseMin, is_new ? kPauseAtFirst : kPauseMax);
    }
    const base::TimePoint due = last_refresh_ + pause_;
    while (!stopped_ && pause_ > milliseconds(0) && runtime_.now() < due)
      co_await stopping_.wait_until(due);
    if (stopped_) break;
    const std::vector<base::Uuid> topics(refresh_wanted_.begin(), refresh_wanted_.end());
    refresh_wanted_.clear();
    ++refreshes_;
    const auto failure = co_await ask_again(topics);
    last_refresh_ = runtime_.now();
    if (failure && failure->retriable) refresh_wanted_.insert(topics.begin(), topics.end());
    want_older_topics();  // whoever answered may lag behind
  }
  refreshing_ = false;
}

/// A request names so many topics at most, so that it and its answer stay modest.
asio::awaitable<std::optional<Error>> MetadataCache::ask_again(std::vector<base::Uuid> topics) {
  std::vector<std::string> names;
  for (const auto& topic : topics) {
    const auto known = by_id_.find(topic);
    if (known != by_id_.end()) names.push_back(known->second->name);
  }
  std::size_t done = 0;
  do {
    protocol::MetadataRequest request;
    const std::size_t end = std::min(names.size(), done + kTopicsAtOnce);
    for (; done < end; ++done) request.topics.push_back(names[done]);
    // A broker that lags behind is waited for; while others are quicker, one of them answers.
    request.newer_than = noted_version_ > version_ ? noted_version_ - 1 : 0;
    const auto answer =
        co_await fetch(std::move(request), runtime_.now() + config_.request_timeout);
    if (!answer) co_return answer.error();
  } while (done < names.size() && !stopped_);
  co_return std::nullopt;
}

asio::awaitable<void> MetadataCache::stop() {
  stopped_ = true;
  stopping_.notify_all();
  co_await tasks_.wait();
}

}  // namespace mq::client
