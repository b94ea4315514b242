#pragma once

#include "base/asio.h"
#include "base/result.h"
#include "base/uuid.h"
#include "metadata/cluster_image.h"

namespace mq::controller {

/// What the controller's changes do to this broker's disks and partitions; the broker implements
/// it. Called on the controller's runtime, one call at a time.
class LocalReplicas {
 public:
  virtual ~LocalReplicas() = default;
  /// Makes the logs of all partitions of a new topic that this broker keeps, starts their leader
  /// epochs and serves them. When it fails the controller deletes the topic again.
  virtual asio::awaitable<base::Result<void>> open_topic(metadata::TopicPtr topic) = 0;
  /// Stops serving the topic's partitions (every waiter gets an error) and deletes their files.
  /// Called again until it succeeds, also for a topic of which nothing is there any more.
  virtual asio::awaitable<base::Result<void>> delete_topic(base::Uuid topic) = 0;
};

}  // namespace mq::controller
