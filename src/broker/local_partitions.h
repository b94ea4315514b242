#pragma once

#include <vector>

#include "broker/core.h"
#include "controller/local_replicas.h"

namespace mq::broker {

/// The partitions whose logs this broker keeps: opens them on their workers, closes and deletes
/// them. On the home runtime; what concerns a partition itself runs on its worker.
class LocalPartitions final : public controller::LocalReplicas {
 public:
  explicit LocalPartitions(Core& core) : core_(core) {}

  /// What recovery has to open: every partition of `image` that this broker keeps.
  [[nodiscard]] std::vector<storage::LogSpec> known(const metadata::ClusterImage& image) const;
  /// Starts the leader epochs of recovered logs and serves them. Those that have seen an epoch not
  /// below the one in `image` (PAR-4) are left out and returned.
  asio::awaitable<std::vector<controller::LogEpoch>> serve_recovered(
      metadata::ImagePtr image, std::vector<model::PartitionId> ids);
  /// Drops every partition, on its worker; before the disk stops.
  asio::awaitable<void> drop_all();

  asio::awaitable<base::Result<void>> open_topic(metadata::TopicPtr topic) override;
  asio::awaitable<void> stop_topic(base::Uuid topic) override;
  asio::awaitable<base::Result<void>> delete_topic(base::Uuid topic) override;
  [[nodiscard]] bool waits_for_start(const base::Error& error) const override {
    return error == make_error_code(storage::StorageErrc::disk_failed);
  }

 private:
  [[nodiscard]] storage::LogSpec spec_of(const metadata::TopicInfo& topic,
                                         const metadata::PartitionAssignment& assignment) const;
  /// Makes the logs of `topic` that are not there yet, some at a time.
  asio::awaitable<base::Result<void>> create_missing(metadata::TopicPtr topic);

  Core& core_;
};

}  // namespace mq::broker
