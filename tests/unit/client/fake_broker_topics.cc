// What a FakeBroker says of the cluster and of topics, and how it changes them.

#include <fmt/format.h>

#include <algorithm>

#include "fake_broker_connection.h"
#include "protocol/add_partitions.h"
#include "protocol/describe_broker.h"

namespace mq::testing {

using protocol::Status;
using protocol::WireError;

FakeBroker::Topic& FakeBroker::add_topic(const std::string& name, int partitions,
                                         std::uint32_t batch_bytes_max) {
  Topic topic;
  topic.name = name;
  topic.id = base::Uuid::from_random(7, cluster_->next_topic++ << 8);
  topic.batch_bytes_max = batch_bytes_max;
  topic.partitions.resize(static_cast<std::size_t>(partitions));
  return cluster_->topics[name] = std::move(topic);
}

/// What this broker's image has.
bool FakeBroker::knows(const model::PartitionId& partition) const {
  return std::ranges::any_of(image().topics, [&](const auto& one) {
    return one.second.id == partition.topic &&
           std::cmp_less(partition.partition, one.second.partitions.size());
  });
}

FakeBroker::Topic* FakeBroker::find(const base::Uuid& id) {
  if (!knows({id, 0})) return nullptr;
  for (auto& [name, topic] : cluster_->topics) {
    if (topic.id == id) return &topic;
  }
  return nullptr;
}

void FakeBroker::thaw_image() {
  frozen_.reset();
  appended_.notify_all();
}

bool FakeBroker::leads(const Partition& partition) const {
  return partition.leader == kWhoeverIsAsked || partition.leader == broker_id;
}

asio::awaitable<void> FakeBroker::metadata(ConnectionPtr connection, net::Frame frame) {
  ++metadata_requests;
  const auto request = protocol::decode_metadata_request(frame.header);
  metadata_asked = request->topics;
  const base::TimePoint until =
      runtime_.now() + std::chrono::milliseconds(request->envelope.deadline_ms);
  while (!stopped_ && image().version > 0 && image().version <= request->newer_than &&
         runtime_.now() < until)
    co_await appended_.wait_until(until);
  answer_metadata(*connection, frame, *request);
}

void FakeBroker::answer_metadata(Connection& connection, const net::Frame& frame,
                                 const protocol::MetadataRequest& request) {
  protocol::MetadataResponse response;
  if (refuse_metadata) {
    if (const auto status = refuse_metadata()) response.envelope.status = *status;
  }
  response.envelope.metadata_version = image().version;
  response.cluster_id = cluster;
  response.controller = image().controller;
  for (const auto& [id, address] : image().brokers)
    response.brokers.push_back({id, address.host, address.port, image().away.contains(id)});
  for (const std::string& name : request.topics) {
    protocol::TopicMetadata topic;
    topic.name = name;
    const auto found = image().topics.find(name);
    if (found == image().topics.end()) {
      topic.status = Status::of(WireError::unknown_topic,
                                fmt::format("there is no topic '{}'", name), broker_id);
    } else {
      const Topic& known = found->second;
      if (!known.ready && topics_ready_after-- <= 0) cluster_->topics.at(name).ready = true;
      topic.id = known.id;
      topic.batch_bytes_max = known.batch_bytes_max;
      for (std::size_t i = 0; i < known.partitions.size(); ++i) {
        const Partition& log = known.partitions[i];
        protocol::PartitionMetadata partition;
        partition.partition = static_cast<std::int32_t>(i);
        partition.leader = log.leader == kWhoeverIsAsked ? broker_id : log.leader;
        if (!known.ready) partition.leader = -1;
        partition.leader_epoch = log.leader_epoch;
        topic.partitions.push_back(partition);
      }
    }
    response.topics.push_back(std::move(topic));
  }
  const auto parts = protocol::encode_in_parts(response);
  for (int i = 0; endless_metadata && i < 1200; ++i)
    answer(connection, frame.head, parts.front(), {}, true);
  for (std::size_t i = 0; i < parts.size(); ++i)
    answer(connection, frame.head, parts[i], {}, i + 1 < parts.size());
}

Status FakeBroker::may_change() const {
  if (cluster_->controller == broker_id) return Status{};
  return Status::of(WireError::not_controller,
                    fmt::format("the controller is broker {}", cluster_->controller), broker_id);
}

/// One result for each: `change` does it where the result so far allows it, and says whether it
/// did.
template <class Response, class Item, class Change>
void FakeBroker::change_each(Connection& connection, const net::Frame& frame,
                             const std::vector<Item>& items, Change change) {
  ++change_requests;
  Response response;
  for (const Item& item : items) {
    protocol::TopicResult result;
    result.status = may_change();
    if (change(item, result) && cluster_->version > 0) ++cluster_->version;
    response.results.push_back(std::move(result));
  }
  response.envelope.metadata_version = cluster_->version;
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::create_topics(Connection& connection, const net::Frame& frame) {
  const auto request = protocol::decode_create_topics_request(frame.header);
  const auto create = [&](const protocol::NewTopic& wanted, protocol::TopicResult& result) {
    result.name = wanted.name;
    result.partitions = std::max(1, wanted.partitions);
    if (cluster_->topics.contains(wanted.name))
      result.status = Status::of(WireError::topic_exists, "it exists", broker_id);
    if (!result.status.ok() || request->validate_only) return false;
    Topic& topic = add_topic(wanted.name, result.partitions);
    topic.ready = false;
    result.id = topic.id;
    return true;
  };
  change_each<protocol::CreateTopicsResponse>(connection, frame, request->topics, create);
}

void FakeBroker::delete_topics(Connection& connection, const net::Frame& frame) {
  const auto request = protocol::decode_delete_topics_request(frame.header);
  const auto remove = [&](const std::string& name, protocol::TopicResult& result) {
    result.name = name;
    if (result.status.ok() && cluster_->topics.erase(name) == 0)
      result.status = Status::of(WireError::unknown_topic, "there is none", broker_id);
    return result.status.ok();
  };
  change_each<protocol::DeleteTopicsResponse>(connection, frame, request->names, remove);
}

void FakeBroker::alter_topics(Connection& connection, const net::Frame& frame) {
  const auto request = protocol::decode_alter_topics_request(frame.header);
  const auto alter = [&](const protocol::AlterTopic& wanted, protocol::TopicResult& result) {
    result.name = wanted.name;
    if (result.status.ok()) altered = wanted;
    return result.status.ok();
  };
  change_each<protocol::AlterTopicsResponse>(connection, frame, request->topics, alter);
}

void FakeBroker::add_partitions(Connection& connection, const net::Frame& frame) {
  const auto request = protocol::decode_add_partitions_request(frame.header);
  const auto add = [&](const auto& wanted, protocol::TopicResult& result) {
    result.name = wanted.name;
    if (!result.status.ok()) return false;
    Topic& topic = cluster_->topics.at(wanted.name);
    topic.partitions.resize(static_cast<std::size_t>(wanted.total));
    for (Partition& partition : topic.partitions) {
      if (partition.leader == kWhoeverIsAsked) partition.leader = broker_id;
    }
    result.partitions = wanted.total;
    return true;
  };
  change_each<protocol::AddPartitionsResponse>(connection, frame, request->topics, add);
}

void FakeBroker::list_topics(Connection& connection, const net::Frame& frame) {
  ++describe_requests;
  protocol::ListTopicsResponse response;
  response.envelope.metadata_version = image().version;
  for (const auto& [name, topic] : image().topics) {
    protocol::TopicSummary summary;
    summary.name = name;
    summary.id = topic.id;
    summary.partitions = static_cast<std::int32_t>(topic.partitions.size());
    summary.replicas = 1;
    for (const Partition& partition : topic.partitions) {
      if (!leads(partition)) continue;
      ++summary.partitions_led;
      summary.bytes += 1000;
      summary.records += static_cast<std::uint64_t>(partition.end);
    }
    response.topics.push_back(std::move(summary));
  }
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::describe_topics(Connection& connection, const net::Frame& frame) {
  ++describe_requests;
  const auto request = protocol::decode_describe_topics_request(frame.header);
  protocol::DescribeTopicsResponse response;
  response.envelope.metadata_version = image().version;
  for (const std::string& name : request->names) {
    protocol::TopicDescription description;
    description.name = name;
    const auto found = image().topics.find(name);
    if (found == image().topics.end()) {
      description.status = Status::of(WireError::unknown_topic, "there is none", broker_id);
      response.topics.push_back(std::move(description));
      continue;
    }
    description.id = found->second.id;
    for (std::size_t i = 0; i < found->second.partitions.size(); ++i) {
      const Partition& log = found->second.partitions[i];
      protocol::PartitionDescription partition;
      partition.partition = static_cast<std::int32_t>(i);
      partition.leader = log.leader == kWhoeverIsAsked ? broker_id : log.leader;
      partition.replicas = {log.leader < 0 ? 3 : log.leader};
      if (log.leader < 0)
        partition.replica_notes = {{3, broker_id == 3 ? "cannot use its log" : "was not heard of"}};
      if (leads(log)) {
        partition.log_start_offset = log.start;
        partition.high_watermark = log.end;
        partition.log_end_offset = log.end;
      }
      description.partitions.push_back(std::move(partition));
    }
    response.topics.push_back(std::move(description));
  }
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::describe_broker(Connection& connection, const net::Frame& frame) {
  ++describe_requests;
  protocol::DescribeBrokerResponse response;
  response.broker_id = broker_id;
  response.controller = image().controller;
  answer(connection, frame.head, protocol::encode(response));
}

}  // namespace mq::testing
