#include "replication/image_delta.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/log.h"

namespace mq::replication {
namespace {

using metadata::ClusterImage;
using metadata::ImagePtr;
using metadata::PartitionAssignment;

std::vector<model::BrokerId> ids_of(const std::vector<std::int32_t>& numbers) {
  std::vector<model::BrokerId> ids;
  ids.reserve(numbers.size());
  for (const auto number : numbers) ids.emplace_back(number);
  return ids;
}

PartitionAssignment assignment_of(const base::Uuid& topic,
                                  const protocol::ImagePartition& partition) {
  PartitionAssignment assignment;
  assignment.id = {topic, partition.partition};
  assignment.leader = model::BrokerId(partition.leader);
  assignment.leader_epoch = model::LeaderEpoch(partition.leader_epoch);
  assignment.version = model::PartitionVersion(partition.partition_version);
  assignment.replicas = ids_of(partition.replicas);
  assignment.isr = partition.isr;
  assignment.elr = partition.elr;
  assignment.min_isr = partition.min_isr;
  assignment.loss_epoch = model::LeaderEpoch(partition.loss_epoch);
  assignment.loss_start = model::Offset(partition.loss_start);
  assignment.loss_end = model::Offset(partition.loss_end);
  return assignment;
}

auto age_of(const PartitionAssignment& assignment) {
  return std::tie(assignment.leader_epoch, assignment.version);
}

/// A setting that this release does not take is left out of what is in force.
model::TopicSettings settings_of(const protocol::ImageTopic& topic,
                                 const model::TopicSettings& defaults) {
  model::TopicSettings settings = defaults;
  for (const auto& [name, value] : topic.overrides) {
    const auto refused = model::set_topic_setting(settings, name, value);
    if (!refused) continue;
    base::log_warning("metadata", "topic \"{}\": {} = {} is not in force here: {}", topic.name,
                      name, value, refused->message);
  }
  return settings;
}

metadata::TopicPtr topic_of(const protocol::ImageTopic& topic, const ClusterImage* current,
                            const model::TopicSettings& defaults) {
  auto info = std::make_shared<metadata::TopicInfo>();
  info->name = topic.name;
  info->id = topic.id;
  info->overrides = topic.overrides;
  info->settings = settings_of(topic, defaults);
  info->hidden_from = topic.hidden_from;
  info->partitions.reserve(topic.partitions.size());
  const auto before = current ? current->find_topic(topic.id) : nullptr;
  for (const auto& partition : topic.partitions) {
    auto assignment = assignment_of(topic.id, partition);
    const auto* known = before ? before->find(partition.partition) : nullptr;
    if (known && age_of(*known) > age_of(assignment)) assignment = *known;
    info->partitions.push_back(std::move(assignment));
  }
  if (!info->partitions.empty()) info->settings.min_isr = info->partitions.front().min_isr;
  return info;
}

std::vector<metadata::BrokerInfo> brokers_of(const protocol::PullImageResponse& answer) {
  std::vector<metadata::BrokerInfo> brokers;
  for (const auto& broker : answer.brokers) {
    metadata::BrokerInfo info;
    info.id = model::BrokerId(broker.id);
    info.epoch = model::BrokerEpoch(broker.epoch);
    info.advertised = {broker.host, static_cast<std::uint16_t>(broker.port)};
    info.alive = !broker.away;
    info.rack = broker.rack;
    brokers.push_back(std::move(info));
  }
  return brokers;
}

std::vector<metadata::DeletingTopic> deleting_of(const protocol::PullImageResponse& answer) {
  std::vector<metadata::DeletingTopic> deleting;
  for (const auto& topic : answer.deleting) deleting.push_back({topic.id, ids_of(topic.brokers)});
  return deleting;
}

std::vector<metadata::DamagedNode> damage_of(const protocol::PullImageResponse& answer) {
  std::vector<metadata::DamagedNode> damage;
  for (const auto& node : answer.damage) damage.push_back({node.path, node.topic, node.text});
  return damage;
}

/// Topics of `current` that `answer` lacks because their nodes are damaged.
std::vector<metadata::TopicPtr> kept_topics(const ClusterImage& current,
                                            const protocol::PullImageResponse& answer) {
  std::vector<metadata::TopicPtr> kept;
  for (const auto& node : answer.damage) {
    const bool sent =
        std::ranges::count(answer.topics, node.topic, &protocol::ImageTopic::name) > 0;
    const auto topic = node.topic.empty() || sent ? nullptr : current.find_topic(node.topic);
    if (topic && std::ranges::count(kept, topic) == 0) kept.push_back(topic);
  }
  return kept;
}

}  // namespace

model::TopicSettings defaults_of(const std::map<std::string, std::string>& told) {
  model::TopicSettings defaults;
  for (const auto& [name, value] : told) {
    const auto refused = model::set_topic_setting(defaults, name, value);
    if (!refused) continue;
    base::log_warning("metadata", "a topic default of the controller is not in force here: {}",
                      refused->message);
  }
  return defaults;
}

ImagePtr next_image(const ImagePtr& current, const protocol::PullImageResponse& answer,
                    const model::TopicSettings& defaults) {
  if (current && answer.version < current->version()) return nullptr;
  std::vector<metadata::TopicPtr> topics;
  topics.reserve(answer.topics.size());
  for (const auto& topic : answer.topics)
    topics.push_back(topic_of(topic, current.get(), defaults));
  // Of a change they go away before they come again.
  if (current) std::ranges::move(kept_topics(*current, answer), std::back_inserter(topics));
  if (answer.base_version == 0) {
    return std::make_shared<const ClusterImage>(
        answer.cluster_id, model::BrokerId(answer.controller), brokers_of(answer),
        std::move(topics), answer.version, deleting_of(answer), damage_of(answer));
  }
  const bool follows =
      current && current->version() == answer.base_version &&
      controller_epoch_of(answer.base_version) == controller_epoch_of(answer.version);
  if (!follows) return nullptr;
  metadata::ImageChange change;
  change.removed = answer.removed;
  change.topics = std::move(topics);
  change.brokers = brokers_of(answer);
  change.deleting = deleting_of(answer);
  change.damage = damage_of(answer);
  return std::make_shared<const ClusterImage>(current->with(std::move(change), answer.version));
}

}  // namespace mq::replication
