#pragma once

#include <memory>
#include <unordered_map>

#include "replication/follower.h"
#include "replication/partition.h"

namespace mq::replication {

/// Which of `workers` workers a partition belongs to, for life.
[[nodiscard]] inline std::size_t worker_of(const PartitionId& id, std::size_t workers) noexcept {
  return std::hash<PartitionId>{}(id) % workers;
}

/// The partitions of one worker: those that it leads, which clients are served from, and those that
/// it follows. A partition is one of them at a time. On that worker's runtime only.
class PartitionTable {
 public:
  /// Null when this worker does not serve it. Not to be kept over a suspension.
  [[nodiscard]] Partition* find(const PartitionId& id) const {
    const auto found = partitions_.find(id);
    return found == partitions_.end() ? nullptr : found->second.get();
  }
  void add(std::shared_ptr<Partition> partition) {
    const PartitionId id = partition->id();
    partitions_[id] = std::move(partition);
  }
  /// Shared for whoever reads from the disk; nothing if unknown.
  [[nodiscard]] std::shared_ptr<Partition> share(const PartitionId& id) const {
    const auto found = partitions_.find(id);
    return found == partitions_.end() ? nullptr : found->second;
  }
  std::shared_ptr<Partition> remove(const PartitionId& id) {
    const auto found = partitions_.find(id);
    if (found == partitions_.end()) return nullptr;
    auto partition = std::move(found->second);
    partitions_.erase(found);
    return partition;
  }
  [[nodiscard]] const std::unordered_map<PartitionId, std::shared_ptr<Partition>>& all() const {
    return partitions_;
  }

  /// Null when this worker does not follow it.
  [[nodiscard]] FollowedPartition* find_followed(const PartitionId& id) const {
    const auto found = followed_.find(id);
    return found == followed_.end() ? nullptr : found->second.get();
  }
  [[nodiscard]] std::shared_ptr<FollowedPartition> share_followed(const PartitionId& id) const {
    const auto found = followed_.find(id);
    return found == followed_.end() ? nullptr : found->second;
  }
  void add_followed(std::shared_ptr<FollowedPartition> partition) {
    const PartitionId id = partition->id();
    followed_[id] = std::move(partition);
  }
  std::shared_ptr<FollowedPartition> remove_followed(const PartitionId& id) {
    const auto found = followed_.find(id);
    if (found == followed_.end()) return nullptr;
    auto partition = std::move(found->second);
    followed_.erase(found);
    return partition;
  }
  [[nodiscard]] const std::unordered_map<PartitionId, std::shared_ptr<FollowedPartition>>&
  followed() const {
    return followed_;
  }

 private:
  // Ids carry uuids that brokers chose, so no client can make them collide.
  std::unordered_map<PartitionId, std::shared_ptr<Partition>> partitions_;
  std::unordered_map<PartitionId, std::shared_ptr<FollowedPartition>> followed_;
};

}  // namespace mq::replication
