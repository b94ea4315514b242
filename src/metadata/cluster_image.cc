#include "metadata/cluster_image.h"

#include <algorithm>

#include "base/strings.h"

namespace mq::metadata {

const PartitionAssignment* TopicInfo::find(std::int32_t partition) const noexcept {
  const auto found = std::ranges::lower_bound(
      partitions, partition, {}, [](const PartitionAssignment& one) { return one.id.partition; });
  return found != partitions.end() && found->id.partition == partition ? &*found : nullptr;
}

ClusterImage::ClusterImage(base::Uuid cluster_id, model::BrokerId controller,
                           std::vector<BrokerInfo> brokers, std::vector<TopicPtr> topics,
                           std::uint64_t version)
    : version_(version),
      cluster_id_(cluster_id),
      controller_(controller),
      brokers_(std::move(brokers)) {
  for (auto& topic : topics) {
    by_id_[topic->id] = topic;
    topics_[topic->name] = std::move(topic);
  }
}

const BrokerInfo* ClusterImage::find_broker(model::BrokerId id) const noexcept {
  const auto found = std::ranges::find(brokers_, id, &BrokerInfo::id);
  return found == brokers_.end() ? nullptr : &*found;
}

TopicPtr ClusterImage::find_topic(std::string_view name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : found->second;
}

TopicPtr ClusterImage::find_topic(const base::Uuid& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

const PartitionAssignment* ClusterImage::find_partition(const model::PartitionId& id) const {
  const auto found = by_id_.find(id.topic);
  return found == by_id_.end() ? nullptr : found->second->find(id.partition);
}

std::size_t ClusterImage::partitions() const noexcept {
  std::size_t count = 0;
  for (const auto& [name, topic] : topics_) count += topic->partitions.size();
  return count;
}

std::optional<std::string> ClusterImage::nearest_topic_name(std::string_view name) const {
  std::vector<std::string> names;
  names.reserve(topics_.size());
  for (const auto& [topic_name, topic] : topics_) names.push_back(topic_name);
  return base::nearest(name, names);
}

ClusterImage ClusterImage::with_topic(TopicPtr topic, std::uint64_t version) const {
  ClusterImage changed = without_topic(topic->name, version);
  changed.by_id_[topic->id] = topic;
  changed.topics_[topic->name] = std::move(topic);
  return changed;
}

ClusterImage ClusterImage::without_topic(std::string_view name, std::uint64_t version) const {
  ClusterImage changed = *this;
  changed.version_ = version;
  if (const auto found = changed.topics_.find(name); found != changed.topics_.end()) {
    changed.by_id_.erase(found->second->id);
    changed.topics_.erase(found);
  }
  return changed;
}

}  // namespace mq::metadata
