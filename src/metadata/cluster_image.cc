#include "metadata/cluster_image.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"

namespace mq::metadata {

const PartitionAssignment* TopicInfo::find(std::int32_t partition) const noexcept {
  const auto found = std::ranges::lower_bound(
      partitions, partition, {}, [](const PartitionAssignment& one) { return one.id.partition; });
  return found != partitions.end() && found->id.partition == partition ? &*found : nullptr;
}

std::span<const PartitionAssignment> TopicInfo::visible() const noexcept {
  if (hidden_from < 0) return partitions;
  const auto end = std::ranges::lower_bound(
      partitions, hidden_from, {}, [](const PartitionAssignment& one) { return one.id.partition; });
  return {partitions.begin(), end};
}

ClusterImage::ClusterImage(base::Uuid cluster_id, model::BrokerId controller,
                           std::vector<BrokerInfo> brokers, std::vector<TopicPtr> topics,
                           std::uint64_t version, std::vector<DeletingTopic> deleting,
                           std::vector<DamagedNode> damage)
    : version_(version),
      cluster_id_(cluster_id),
      controller_(controller),
      brokers_(std::move(brokers)),
      deleting_(std::move(deleting)),
      damage_(std::move(damage)) {
  for (auto& topic : topics) {
    by_id_[topic->id] = topic;
    topics_[topic->name] = std::move(topic);
  }
}

const BrokerInfo* ClusterImage::find_broker(model::BrokerId id) const noexcept {
  const auto found = std::ranges::find(brokers_, id, &BrokerInfo::id);
  return found == brokers_.end() ? nullptr : &*found;
}

const DamagedNode* ClusterImage::damage_of(std::string_view topic) const noexcept {
  const auto found = std::ranges::find(damage_, topic, &DamagedNode::topic);
  return topic.empty() || found == damage_.end() ? nullptr : &*found;
}

const DamagedNode* ClusterImage::lost_topic() const noexcept {
  const auto found = std::ranges::find_if(damage_, [this](const DamagedNode& node) {
    return !node.topic.empty() && !topics_.contains(node.topic);
  });
  return found == damage_.end() ? nullptr : &*found;
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
  ImageChange change;
  change.topics.push_back(std::move(topic));
  return with(std::move(change), version);
}

ClusterImage ClusterImage::without_topic(std::string_view name, std::uint64_t version) const {
  ImageChange change;
  if (const auto topic = find_topic(name)) change.removed.push_back(topic->id);
  return with(std::move(change), version);
}

ClusterImage ClusterImage::with(ImageChange change, std::uint64_t version) const {
  ClusterImage changed = *this;
  changed.version_ = version;
  for (const auto& id : change.removed) changed.remove(id);
  for (auto& topic : change.topics) changed.put(std::move(topic));
  if (change.brokers) changed.brokers_ = std::move(*change.brokers);
  if (change.deleting) changed.deleting_ = std::move(*change.deleting);
  if (change.damage) changed.damage_ = std::move(*change.damage);
  return changed;
}

std::string unknown_topic_text(const ClusterImage& image, std::string_view name) {
  std::string text = fmt::format("there is no topic \"{}\"", base::printable(name, 260));
  if (const auto near = image.nearest_topic_name(name))
    text += fmt::format("; did you mean \"{}\"?", *near);
  return text;
}

void ClusterImage::put(TopicPtr topic) {
  remove(topic->id);
  if (const auto named = find_topic(topic->name)) remove(named->id);
  by_id_[topic->id] = topic;
  topics_[topic->name] = std::move(topic);
}

void ClusterImage::remove(const base::Uuid& id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  topics_.erase(found->second->name);
  by_id_.erase(found);
}

}  // namespace mq::metadata
