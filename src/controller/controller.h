#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/runtime.h"
#include "controller/local_replicas.h"
#include "metadata/cluster_image.h"
#include "metadata/store.h"
#include "protocol/topics.h"

namespace mq::controller {

using base::Error;
using base::Result;
using metadata::BrokerInfo;
using metadata::ClusterImage;
using metadata::ImagePtr;
using metadata::PartitionAssignment;
using metadata::TopicInfo;
using metadata::TopicPtr;

struct ControllerConfig {
  model::BrokerId broker;
  base::Uuid cluster_id;
  base::Uuid incarnation;         ///< drawn anew at every process start
  std::vector<base::Uuid> disks;  ///< identities of the broker's data directories
  base::Endpoint advertised;
  model::TopicSettings topic_defaults;
  std::int32_t default_partitions = 1;
  std::size_t partitions_max = 1'000'000;  ///< of all topics together
  /// Other processes may reach the store, and it may end this one's session: ZooKeeper.
  bool shared_store = false;
};

/// What a partition's log says about its newest leader epoch.
struct LogEpoch {
  model::PartitionId id;
  model::LeaderEpoch last;
};

/// The only writer of topics and partition state. In a standalone broker it leads everything
/// itself; nothing of its interface says so.
///
/// Order at start: start(), then the broker opens its disks and recovers the logs of image() with
/// their new leader epochs (raise_leader_epochs() if a log is ahead), then finish_half_done().
/// Partitions may be served as they are recovered; changes of topics are refused until
/// finish_half_done() (PARTITION_RECOVERING). Changes are made one at a time, in order of arrival,
/// and go on when their caller gives up waiting; what a change makes is published in a new image
/// after the store has confirmed it and the local replicas are open, never before.
///
/// Belongs to the home runtime: all calls come from its thread, except image().
class Controller {
 public:
  /// `store`, `replicas` and `home` outlive it.
  Controller(ControllerConfig config, metadata::MetadataStore& store, LocalReplicas& replicas,
             base::Runtime& home);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// One transaction registers this broker (its incarnation in /brokers/epoch/<id>) and raises the
  /// leader epoch of every partition (MET-3); then the image is there. With so many partitions that
  /// one multi does not hold them, the first has the registration and each further one names its
  /// version. Errors: ControllerErrc, or MetadataErrc when the store failed.
  asio::awaitable<Result<void>> start();
  /// Deletes what a crash left half done: state nodes of topics that never became real, and, beside
  /// other changes, replicas of topics under /deleting. Needs the disks open. An error means that
  /// something is left for the next try, which comes by itself.
  asio::awaitable<Result<void>> finish_half_done();
  /// The disks are open: changes are taken from now on, as finish_half_done() says by itself.
  void allow_changes();
  /// Topics whose replicas are to be deleted: their directories are ours, not strangers.
  [[nodiscard]] std::vector<base::Uuid> topics_being_deleted() const;
  /// What keeps the metadata store from answering now; empty: nothing known.
  [[nodiscard]] std::string metadata_trouble() const;
  /// How many topics' files are being deleted just now.
  [[nodiscard]] std::size_t deletions_under_way() const;
  /// A metadata store that came from a backup may lead with epochs that the logs have seen already:
  /// sets the epoch of each named partition above its log's. The new image has them.
  asio::awaitable<Result<void>> raise_leader_epochs(std::vector<LogEpoch> logs);

  /// Refusals come before anything is written. Success comes when the topic's replicas here are
  /// open. When `deadline` passes first the answer is TIMED_OUT and the change goes on.
  asio::awaitable<protocol::TopicResult> create_topic(protocol::NewTopic topic, bool validate_only,
                                                      base::TimePoint deadline);
  /// Success means that the topic is gone from the metadata and its replicas here serve no one.
  /// Their files go afterwards, beside other changes, and are tried again when that fails.
  asio::awaitable<protocol::TopicResult> delete_topic(std::string name, base::TimePoint deadline);

  /// A producer id that was never given out before (IDM-5).
  asio::awaitable<Result<std::int64_t>> next_producer_id();

  /// The newest image; never null after start(). Any thread.
  [[nodiscard]] ImagePtr image() const;
  /// Returns the image once it has a version above `newer_than`, or the current one at `deadline`
  /// or stop().
  asio::awaitable<ImagePtr> wait_for_image(std::uint64_t newer_than, base::TimePoint deadline);
  /// Called on the home thread after each new image.
  void on_image(std::function<void(const ImagePtr&)> listener);

  /// Refuses new changes (SHUTTING_DOWN), waits for those under way, wakes every waiter.
  asio::awaitable<void> stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mq::controller
