#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/network.h"
#include "controller/leader_balance.h"
#include "metadata/cluster_image.h"
#include "metadata/store.h"
#include "protocol/alter_isr.h"
#include "protocol/alter_topics.h"
#include "protocol/control_partitions.h"
#include "protocol/leave_broker.h"
#include "protocol/pull_image.h"
#include "protocol/report_replicas.h"
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
  base::Endpoint advertised;
  model::TopicSettings topic_defaults;
  std::int32_t default_partitions = 1;
  std::int32_t default_replicas = 0;  ///< 0: three, or as many as there are brokers
  std::uint32_t default_min_isr = 0;  ///< 0: two where there are three replicas or more, else one
  std::int32_t replicas_max = 1;      ///< of a partition
  std::size_t partitions_max = 1'000'000;  ///< of one broker
  BalanceRules balance;
  /// Of the home runtime; where brokers are looked for whose connections were lost (CTL-9). Null:
  /// the end of their sessions is waited for.
  base::Network* network = nullptr;
};

/// The only writer of topics and partition state while this broker is elected (CTL-1): built from
/// the store alone (CTL-3), gone with the election. Every write of it names its controller epoch,
/// so that one that was deposed changes nothing any more.
///
/// Brokers pull the cluster image from it and report what they find on their disks; a partition
/// gets a leader when the broker that keeps it has reported it. What the image shows was confirmed
/// by the store before (CTL-2).
///
/// Belongs to the home runtime. Callers may give up waiting, their change goes on. A refusal is in
/// the status of the answer; one that has been deposed answers NOT_CONTROLLER.
class Controller {
 public:
  Controller(ControllerConfig config, metadata::MetadataStore& store, base::Runtime& home,
             std::int32_t controller_epoch, std::function<void()> deposed);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// Reads the whole tree and makes the first image. Errors: damaged_metadata, or the store's.
  asio::awaitable<Result<void>> load();

  /// Refusals come before anything is written. Success comes when every broker that lives has
  /// opened its replicas. When `deadline` passes first the answer is TIMED_OUT and the change goes
  /// on. One that cannot be opened somewhere is taken back.
  asio::awaitable<protocol::TopicResult> create_topic(protocol::NewTopic topic, bool validate_only,
                                                      base::TimePoint deadline);
  /// Success means that the topic is gone from the metadata and that no broker that lives serves
  /// it. Its files go afterwards, also those on brokers that are away now.
  asio::awaitable<protocol::TopicResult> delete_topic(std::string name, base::TimePoint deadline);
  asio::awaitable<protocol::TopicResult> alter_topic(protocol::AlterTopic change,
                                                     base::TimePoint deadline);
  /// As many as there are already: nothing changes.
  asio::awaitable<protocol::TopicResult> add_partitions(std::string name, std::int32_t total,
                                                        base::TimePoint deadline);

  /// Answers when there is an image newer than the one the broker has, or at `deadline`. A pull
  /// says that what its image tells about leaders and removals is in force on all its workers.
  asio::awaitable<protocol::PullImageResponse> pull(protocol::PullImageRequest request,
                                                    base::TimePoint deadline);
  /// OK means that what follows from the reports is stored, or needed no write.
  asio::awaitable<protocol::ReportReplicasResponse> report(protocol::ReportReplicasRequest request,
                                                           base::TimePoint deadline);
  /// The leader of partitions asks for another ISR of each. What is refused comes with the state
  /// that is in force.
  asio::awaitable<protocol::AlterIsrResponse> alter_isr(protocol::AlterIsrRequest request,
                                                        base::TimePoint deadline);
  /// OK means stored, or so already.
  asio::awaitable<protocol::ControlPartitionsResponse> control(
      protocol::ControlPartitionsRequest request, base::TimePoint deadline);
  /// A broker is about to stop. OK: what it led is led elsewhere, where anybody can.
  asio::awaitable<protocol::LeaveBrokerResponse> leave(protocol::LeaveBrokerRequest request,
                                                       base::TimePoint deadline);

  /// The connection on which this broker asked for images has ended, and not by our doing. Where
  /// its process is dead then, it is taken out before its session ends (CTL-9).
  void lost_connection(model::BrokerId broker, model::BrokerEpoch epoch);

  /// The newest image; null before load().
  [[nodiscard]] ImagePtr image() const;
  [[nodiscard]] std::int32_t controller_epoch() const noexcept;

  /// The highest controller epoch of which a broker has shown an image. Above its own, this
  /// controller has resigned: no broker takes an older image.
  [[nodiscard]] std::int32_t newest_epoch_seen() const noexcept;

  /// It has resigned because none of two or more other brokers was heard of, while the metadata
  /// store goes on taking them for alive: it is cut off from them, and another one may not be.
  [[nodiscard]] bool unheard() const noexcept;

  /// Nothing is written any more; waiters are answered NOT_CONTROLLER. May be called again.
  void resign();
  [[nodiscard]] bool resigned() const noexcept;
  /// After resign(): returns when no call and no task is left.
  asio::awaitable<void> stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mq::controller
