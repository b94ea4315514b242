#pragma once

#include <memory>
#include <unordered_map>

#include "replication/partition.h"

namespace mq::replication {

/// Which of `workers` workers a partition belongs to, for life.
[[nodiscard]] inline std::size_t worker_of(const PartitionId& id, std::size_t workers) noexcept {
  return std::hash<PartitionId>{}(id) % workers;
}

/// The partitions of one worker. On that worker's runtime only.
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

 private:
  // Ids carry uuids that brokers chose, so no client can make them collide.
  std::unordered_map<PartitionId, std::shared_ptr<Partition>> partitions_;
};

}  // namespace mq::replication
