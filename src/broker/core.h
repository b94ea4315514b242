#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/file_system.h"
#include "base/network.h"
#include "broker/catch_up_pace.h"
#include "broker/limits.h"
#include "broker/rate_limited_log.h"
#include "config/broker_config.h"
#include "metadata/cluster_image.h"
#include "protocol/frame.h"
#include "protocol/status.h"
#include "storage/checked_clock.h"
#include "storage/disk_group.h"

namespace mq::replication {
class IsrKeeper;
}

namespace mq::broker {

class Membership;
class ReplicaKeeper;
class Worker;

/// Gives a stream of one worker's runtime, on which nothing is in progress, to another worker's.
/// Called on the thread of the first.
using MoveStream = std::function<base::Result<std::unique_ptr<base::Stream>>(
    std::unique_ptr<base::Stream>, std::size_t worker)>;

/// The counters that requests touch, looked up once.
struct HotCounters {
  explicit HotCounters(base::Counters& counters);

  base::Counter& connections_open;
  base::Counter& connections_total;
  base::Counter& connections_refused;
  base::Counter& connections_moved;
  base::Counter& connections_timed_out;
  base::Counter& foreign_protocols;
  base::Counter& frames_refused;
  base::Counter& requests_total;
  base::Counter& requests_refused;
  base::Counter& produce_batches;
  base::Counter& produce_bytes;
  base::Counter& fetch_answers;
  base::Counter& fetch_bytes;
  base::Counter& fetch_disk_reads;
  base::Counter& replica_answers;
  base::Counter& replica_bytes;
};

/// What every part of one broker shares. Made by Broker, which outlives all of its users. Members
/// are set before the listener opens and constant afterwards, but for the atomics; what belongs to
/// the home runtime (membership, disks, replica_keeper) is called there.
struct Core {
  Core(base::Counters& all_counters, base::FileSystem& file_system);
  ~Core();

  base::Counters& counters;
  HotCounters hot;
  base::FileSystem& files;
  Limits limits;
  CatchUpPace catch_up;
  storage::CheckedClock clock;
  RateLimitedLog peer_warnings;

  model::BrokerId id;
  base::Uuid cluster_id;
  std::string metadata_kind;
  base::Endpoint advertised;
  std::string rack;
  model::TopicSettings topic_defaults;
  std::vector<std::string> warnings;               ///< repeated by `mqctl status`
  std::vector<config::EffectiveSetting> settings;  ///< of broker.toml, for `mqctl config show`
  base::TimePoint started_at;

  base::Runtime* home = nullptr;
  base::Network* network = nullptr;  ///< of the home runtime
  MoveStream move_stream;
  Membership* membership = nullptr;
  storage::DiskGroup* disks = nullptr;
  replication::IsrKeeper* isr_keeper = nullptr;
  ReplicaKeeper* replica_keeper = nullptr;
  std::vector<std::unique_ptr<Worker>> workers;

  std::atomic<bool> stopping{false};
  /// Until every log has been recovered: how many are left, and what was read so far.
  std::atomic<std::uint32_t> partitions_recovering{0};
  std::atomic<std::uint64_t> recovery_bytes_read{0};
  std::atomic<std::uint64_t> image_version{0};
  /// Of this broker's present registration; -1: there was none yet.
  std::atomic<std::int64_t> broker_epoch{-1};
  /// The registration of this broker that the image in force knows of. Set once partitions here go
  /// by that image.
  std::atomic<std::int64_t> epoch_in_force{-1};
  /// The largest batch that any topic takes.
  std::atomic<std::uint32_t> batch_bytes_max{0};

  [[nodiscard]] std::uint32_t frame_bytes_max() const noexcept {
    return batch_bytes_max.load(std::memory_order_relaxed) + protocol::kFrameSlackBytes;
  }
  /// The newest cluster image; never null after the listener opened. Any thread.
  [[nodiscard]] metadata::ImagePtr image() const;
  /// The metadata store has confirmed this broker's session of late, and since it registered it has
  /// heard what it leads: others lead what it led before. Any thread.
  [[nodiscard]] bool has_lease(base::TimePoint now) const;
  /// Whether people and clients are to ask this broker about a partition: it leads it, or will.
  [[nodiscard]] bool answers_for(const metadata::PartitionAssignment& assignment) const;
  /// Takes over what a new image changes for the atomics above.
  void adopt(const metadata::ImagePtr& image);
  /// Partitions here go by this image now.
  void put_in_force(const metadata::ClusterImage& image);

  /// An error of this broker, with its id.
  [[nodiscard]] protocol::Status status(protocol::WireError error, std::string text) const {
    return protocol::Status::of(error, std::move(text), id.value());
  }
  /// A successful envelope.
  [[nodiscard]] protocol::ResponseEnvelope envelope() const;
  /// Why there is no topic of this name in `image` for whoever asks.
  [[nodiscard]] protocol::Status no_topic(const metadata::ClusterImage& image,
                                          std::string_view name) const;
  /// Why no worker serves `partition`: unknown topic or partition, led elsewhere, or not ready.
  [[nodiscard]] protocol::Status missing(const model::PartitionId& partition) const;
  /// "orders-3", or the uuid's form if the topic is unknown.
  [[nodiscard]] std::string partition_name(const model::PartitionId& partition) const;
  [[nodiscard]] Worker& worker_of(const model::PartitionId& partition) const;
};

}  // namespace mq::broker
