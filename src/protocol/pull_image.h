#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/isr.h"
#include "protocol/status.h"

namespace mq::protocol {

/// A broker asks the controller for the cluster image: answered when there is a newer one than it
/// has, or at the deadline with nothing new.
struct PullImageRequest {
  RequestEnvelope envelope;
  std::int32_t broker = -1;
  std::int64_t broker_epoch = -1;  ///< of its registration; another one is STALE_BROKER_EPOCH
  /// What the broker has, and more: leaders and removals of this image are in force on all of its
  /// workers. 0: nothing.
  std::uint64_t have_version = 0;
  std::int64_t wall_clock_ms = 0;  ///< of the broker, as it sends this; 0: not told
  friend bool operator==(const PullImageRequest&, const PullImageRequest&) = default;
};
struct ImageBroker {
  std::int32_t id = -1;
  std::int64_t epoch = -1;
  std::string host;
  std::uint32_t port = 0;
  bool away = false;  ///< it has been registered, and is not live
  std::string rack;
  friend bool operator==(const ImageBroker&, const ImageBroker&) = default;
};
/// What Metadata says of a partition, and what brokers have to know besides.
struct ImagePartition {
  std::int32_t partition = -1;
  std::int32_t leader = -1;  ///< -1: none
  std::int32_t leader_epoch = -1;
  std::int32_t partition_version = -1;
  std::vector<std::int32_t> replicas;
  std::vector<model::IsrMember> isr;
  std::vector<model::IsrMember> elr;
  std::uint32_t min_isr = 1;     ///< in force
  std::int32_t loss_epoch = -1;  ///< leader epoch that began with a possible loss; -1: none
  std::int64_t loss_start = -1;  ///< of what may be lost; -1: not known
  std::int64_t loss_end = -1;    ///< the same
  friend bool operator==(const ImagePartition&, const ImagePartition&) = default;
};
struct ImageTopic {
  std::string name;
  base::Uuid id;
  std::map<std::string, std::string> overrides;  ///< as text
  std::vector<ImagePartition> partitions;        ///< all of them, ascending
  /// Clients are not shown the partitions from this number on: their replicas are being made, and
  /// may be taken back. -1: none.
  std::int32_t hidden_from = -1;
  friend bool operator==(const ImageTopic&, const ImageTopic&) = default;
};
/// A topic whose replicas are being deleted.
struct DeletingTopic {
  base::Uuid id;
  std::vector<std::int32_t> brokers;  ///< those that still have to report it as deleted
  friend bool operator==(const DeletingTopic&, const DeletingTopic&) = default;
};
/// A damaged node of the metadata store.
struct ImageDamage {
  std::string path;
  std::string topic;  ///< empty: of no topic
  std::string text;
  friend bool operator==(const ImageDamage&, const ImageDamage&) = default;
};
/// What the wall clocks of the brokers that live say together.
enum class ClockVerdict : std::uint8_t {
  unknown = 0,  ///< too few have told theirs so far
  alone = 1,    ///< there is no other broker to compare with
  agreed = 2,   ///< more than half of them are close to the median
  split = 3,    ///< none of their times has a majority
};
struct ClusterTime {
  ClockVerdict verdict = ClockVerdict::unknown;
  std::int64_t median_ms = 0;  ///< agreed: when the answer was made
  std::int64_t spread_ms = 0;  ///< split: between the first and the last clock
  std::uint32_t brokers = 0;   ///< compared
  friend bool operator==(const ClusterTime&, const ClusterTime&) = default;
};
/// A snapshot is everything; else it is what changed since `base_version`, which is the request's
/// have_version. Brokers, deleting topics and damage are listed whole in both.
struct PullImageResponse {
  ResponseEnvelope envelope;
  std::uint64_t version = 0;       ///< equal to base_version: nothing new
  std::uint64_t base_version = 0;  ///< 0: this is a snapshot
  base::Uuid cluster_id;
  std::int32_t controller = -1;
  std::vector<ImageBroker> brokers;
  std::vector<ImageTopic> topics;  ///< of a delta: those that are new or changed
  std::vector<base::Uuid> removed;
  std::vector<DeletingTopic> deleting;
  std::vector<ImageDamage> damage;
  ClusterTime cluster_time;
  std::int64_t held_ms = 0;  ///< between the request's arrival and this answer
  /// Of topics that have no override, where it is not the built-in value: the controller's own, so
  /// that a topic has the same settings on all brokers.
  std::map<std::string, std::string> topic_defaults;
  friend bool operator==(const PullImageResponse&, const PullImageResponse&) = default;
};

std::string encode(const PullImageRequest&);
std::string encode(const PullImageResponse&);
base::Result<PullImageRequest> decode_pull_image_request(base::Bytes header);
base::Result<PullImageResponse> decode_pull_image_response(base::Bytes header);

}  // namespace mq::protocol
