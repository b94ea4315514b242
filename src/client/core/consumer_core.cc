#include "client/core/consumer_core.h"

#include <fmt/format.h>

#include "client/core/error.h"
#include "client/core/record_taker.h"

namespace mq::client {
namespace {

using protocol::OffsetPoint;

Error not_assigned(const TopicPartition& partition) {
  return make_error(Errc::not_assigned, fmt::format("{}/{} is not assigned to this consumer",
                                                    partition.topic, partition.partition));
}

/// No offset is below 0; -1 is not the end here.
std::optional<Error> check_start(const TopicPartition& partition, Start start) {
  if (start.kind != Start::at_offset || start.offset >= 0) return std::nullopt;
  return make_error(Errc::invalid_argument,
                    fmt::format("{}/{}: offset {} is negative; Start::latest is the end",
                                partition.topic, partition.partition, start.offset));
}

OffsetLookup::Key key_of(const model::PartitionId& id, const Start& start) {
  OffsetLookup::Key key{id};
  if (start.kind == Start::latest) key.point = OffsetPoint::latest;
  if (start.kind == Start::at_time) {
    key.point = OffsetPoint::at_time;
    key.time_ms = start.time.time_since_epoch().count();
  }
  return key;
}

}  // namespace

ConsumerCore::ConsumerCore(base::Runtime& runtime, base::Network& network, ConsumerConfig config)
    : config_(std::move(config)),
      core_(runtime, network, config_),
      buffer_(config_.prefetch_bytes),
      fetcher_(core_, config_, buffer_),
      lookup_(core_) {
  buffer_.on_room([this] { wake_fetcher(); });
  core_.metadata.on_update([this] { read_added(); });
}

base::TimePoint ConsumerCore::deadline() const {
  return core_.runtime.now() + config_.request_timeout;
}

void ConsumerCore::wake_fetcher() {
  core_.runtime.post([this, alive = std::weak_ptr<void>(alive_)] {
    if (!alive.expired()) fetcher_.wake();
  });
}

asio::awaitable<Result<TopicPtr>> ConsumerCore::topic(std::string name) {
  return core_.metadata.lookup(std::move(name), deadline());
}

asio::awaitable<Result<ConsumerCore::Topics>> ConsumerCore::look_up(std::set<std::string> names) {
  Topics topics;
  for (const std::string& name : names) {
    const auto topic = co_await core_.metadata.lookup(name, deadline());
    if (!topic) co_return topic.error();
    topics.emplace(name, *topic);
  }
  co_return topics;
}

asio::awaitable<Result<void>> ConsumerCore::assign(std::map<TopicPartition, Start> partitions,
                                                   std::set<std::string> whole_topics) {
  std::map<TopicPartition, ReadPartitionPtr> next;
  std::vector<OffsetLookup::Key> keys;
  std::set<std::string> names = whole_topics;
  for (const auto& [name, start] : partitions) {
    if (auto refusal = check_start(name, start)) co_return *std::move(refusal);
    names.insert(name.topic);
  }
  const auto topics = co_await look_up(std::move(names));
  if (!topics) co_return topics.error();
  for (const auto& [name, start] : partitions) {
    const auto id = partition_of(*topics->at(name.topic), name);
    if (!id) co_return id.error();
    auto partition = std::make_shared<ReadPartition>();
    partition->name = name;
    partition->id = *id;
    partition->position = start.offset;
    if (start.kind != Start::at_offset) keys.push_back(key_of(partition->id, start));
    next.emplace(name, std::move(partition));
  }
  const auto offsets = co_await lookup_.find(std::move(keys), deadline());
  if (!offsets) co_return offsets.error();
  for (const auto& [name, start] : partitions) {
    if (start.kind == Start::at_offset) continue;
    const ReadPartitionPtr& partition = next.at(name);
    partition->position = offsets->at(key_of(partition->id, start)).offset;
  }
  whole_topics_.clear();
  for (const auto& name : whole_topics) whole_topics_.insert(topics->at(name)->id);
  buffer_.assign(std::move(next));
  read_added();
  fetcher_.forget_trouble();
  fetcher_.wake();
  co_return Result<void>{};
}

asio::awaitable<Result<void>> ConsumerCore::assign_topics(std::map<std::string, Start> topics) {
  std::set<std::string> names;
  for (const auto& [name, start] : topics) names.insert(name);
  const auto found = co_await look_up(std::move(names));
  if (!found) co_return found.error();
  std::map<TopicPartition, Start> partitions;
  std::set<std::string> whole;
  for (const auto& [name, topic] : *found) {
    whole.insert(name);
    for (const auto& partition : topic->partitions)
      partitions.emplace(TopicPartition{name, partition.partition}, topics.at(name));
  }
  co_return co_await assign(std::move(partitions), std::move(whole));
}

/// After each update of the metadata.
void ConsumerCore::read_added() {
  bool added = false;
  for (const auto& id : whole_topics_) {
    const auto topic = core_.metadata.find(id);
    if (!topic) continue;
    for (const auto& one : topic->partitions) {
      TopicPartition name{topic->name, one.partition};
      if (buffer_.find(name)) continue;
      auto partition = std::make_shared<ReadPartition>();
      partition->name = std::move(name);
      partition->id = {id, one.partition};
      partition->from_start = true;
      buffer_.add(std::move(partition));
      added = true;
    }
  }
  if (added) fetcher_.wake();
}

asio::awaitable<Result<void>> ConsumerCore::seek(TopicPartition name, Start to) {
  const ReadPartitionPtr partition = buffer_.find(name);
  if (!partition) co_return not_assigned(name);
  if (auto refusal = check_start(name, to)) co_return *std::move(refusal);
  std::int64_t offset = to.offset;
  if (to.kind != Start::at_offset) {
    std::vector<OffsetLookup::Key> keys;
    keys.push_back(key_of(partition->id, to));
    const auto offsets = co_await lookup_.find(std::move(keys), deadline());
    if (!offsets) co_return offsets.error();
    offset = offsets->begin()->second.offset;
  }
  buffer_.seek(*partition, offset);
  fetcher_.wake();
  co_return Result<void>{};
}

asio::awaitable<Result<std::map<TopicPartition, OffsetRange>>> ConsumerCore::offsets(
    std::vector<TopicPartition> partitions) {
  std::map<TopicPartition, model::PartitionId> ids;
  std::vector<OffsetLookup::Key> keys;
  std::set<std::string> names;
  for (const TopicPartition& name : partitions) names.insert(name.topic);
  const auto topics = co_await look_up(std::move(names));
  if (!topics) co_return topics.error();
  for (const TopicPartition& name : partitions) {
    const auto id = partition_of(*topics->at(name.topic), name);
    if (!id) co_return id.error();
    ids.emplace(name, *id);
    keys.push_back({*id, OffsetPoint::earliest});
    keys.push_back({*id, OffsetPoint::latest});
  }
  const auto offsets = co_await lookup_.find(std::move(keys), deadline());
  if (!offsets) co_return offsets.error();
  std::map<TopicPartition, OffsetRange> ranges;
  for (const auto& [name, id] : ids) {
    const OffsetRange range{offsets->at({id, OffsetPoint::earliest}).offset,
                            offsets->at({id, OffsetPoint::latest}).offset};
    ranges.emplace(name, range);
  }
  co_return ranges;
}

asio::awaitable<Result<std::map<TopicPartition, TimedOffset>>> ConsumerCore::offsets_for_times(
    std::map<TopicPartition, Timestamp> times) {
  std::map<TopicPartition, OffsetLookup::Key> wanted;
  std::vector<OffsetLookup::Key> keys;
  std::set<std::string> names;
  for (const auto& [name, time] : times) names.insert(name.topic);
  const auto topics = co_await look_up(std::move(names));
  if (!topics) co_return topics.error();
  for (const auto& [name, time] : times) {
    const auto id = partition_of(*topics->at(name.topic), name);
    if (!id) co_return id.error();
    const auto key = key_of(*id, Start::at(time));
    wanted.emplace(name, key);
    keys.push_back(key);
  }
  const auto offsets = co_await lookup_.find(std::move(keys), deadline());
  if (!offsets) co_return offsets.error();
  std::map<TopicPartition, TimedOffset> found;
  for (const auto& [name, key] : wanted) {
    const auto& there = offsets->at(key);
    TimedOffset timed;
    timed.offset = there.offset;
    if (there.append_time_ms >= 0) timed.append_time = Timestamp(Duration(there.append_time_ms));
    found.emplace(name, timed);
  }
  co_return found;
}

std::optional<Result<Batch>> ConsumerCore::take() {
  return take_records(buffer_, config_.max_poll_records);
}

Result<void> ConsumerCore::set_paused(const std::vector<TopicPartition>& partitions, bool paused) {
  std::vector<ReadPartitionPtr> found;
  for (const TopicPartition& name : partitions) {
    found.push_back(buffer_.find(name));
    if (!found.back()) return not_assigned(name);
  }
  for (const ReadPartitionPtr& partition : found) buffer_.set_paused(*partition, paused);
  wake_fetcher();
  return {};
}

asio::awaitable<void> ConsumerCore::stop() {
  fetcher_.stop();
  co_await core_.stop();
}

}  // namespace mq::client
