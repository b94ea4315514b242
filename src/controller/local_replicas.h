#pragma once

#include "base/asio.h"
#include "base/result.h"
#include "base/uuid.h"
#include "metadata/cluster_image.h"

namespace mq::controller {

/// What the controller's changes do to this broker's disks and partitions; the broker implements
/// it. Called on the controller's runtime: open_topic() and stop_topic() one at a time,
/// delete_topic() beside them, once at a time for a topic.
class LocalReplicas {
 public:
  virtual ~LocalReplicas() = default;
  /// Makes the logs of all partitions of a new topic that this broker keeps, starts their leader
  /// epochs and serves them. When it fails the controller deletes the topic again.
  virtual asio::awaitable<base::Result<void>> open_topic(metadata::TopicPtr topic) = 0;
  /// Stops serving the topic's partitions: every waiter gets an error.
  virtual asio::awaitable<void> stop_topic(base::Uuid topic) = 0;
  /// The same, and deletes their files, which may take long.
  /// Called again until it succeeds, also for a topic of which nothing is there any more.
  virtual asio::awaitable<base::Result<void>> delete_topic(base::Uuid topic) = 0;
  /// Whether delete_topic() with this error is worth another try only after the next start: some
  /// of the files are out of reach, and stay known as being deleted until they are back.
  [[nodiscard]] virtual bool waits_for_start(const base::Error& error) const = 0;
};

}  // namespace mq::controller
