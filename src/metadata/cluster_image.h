#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/network.h"
#include "base/uuid.h"
#include "model/ids.h"
#include "model/isr.h"
#include "model/topic_settings.h"

namespace mq::metadata {

struct BrokerInfo {
  model::BrokerId id;
  model::BrokerEpoch epoch;
  base::Endpoint advertised;
  bool alive = true;  ///< false: it has been registered, and its session has ended
  std::string rack;   ///< empty: none was given
};

struct PartitionAssignment {
  model::PartitionId id;
  model::BrokerId leader;
  model::LeaderEpoch leader_epoch;
  model::PartitionVersion version;
  std::vector<model::BrokerId> replicas;
  std::vector<model::IsrMember> isr;
  std::vector<model::IsrMember> elr;  ///< may be elected when nobody of the ISR can
  std::uint32_t min_isr = 1;          ///< in force
  model::LeaderEpoch loss_epoch;      ///< it began with a possible loss; -1: none
  model::Offset loss_start;           ///< of what may be lost; -1: not known
  model::Offset loss_end;             ///< the same
};

struct TopicInfo {
  std::string name;
  base::Uuid id;
  std::map<std::string, std::string> overrides;  ///< what the topic was given, as text
  model::TopicSettings
      settings;  ///< in force: built-in, the controller's [topic.defaults], overrides
  std::vector<PartitionAssignment> partitions;  ///< ascending by number
  /// The replicas of the partitions from this number on are being made, and may be taken back:
  /// clients are not shown them. -1: none.
  std::int32_t hidden_from = -1;

  /// What clients are shown. Empty: the topic itself is not there for them yet.
  [[nodiscard]] std::span<const PartitionAssignment> visible() const noexcept;
  [[nodiscard]] const PartitionAssignment* find(std::int32_t partition) const noexcept;
};

using TopicPtr = std::shared_ptr<const TopicInfo>;

/// A topic that is gone, and the brokers that have not reported its files as deleted yet.
struct DeletingTopic {
  base::Uuid id;
  std::vector<model::BrokerId> brokers;
  friend bool operator==(const DeletingTopic&, const DeletingTopic&) = default;
};

/// A node of the metadata store that is missing or does not parse. Everything else goes on.
struct DamagedNode {
  std::string path;
  std::string topic;  ///< which it belongs to; empty: to none
  std::string text;   ///< what is wrong, what that means, and what to do
  friend bool operator==(const DamagedNode&, const DamagedNode&) = default;
};

/// What one image has that the image before has not.
struct ImageChange {
  std::vector<base::Uuid> removed;  ///< goes first: a new topic may have the name of an old one
  std::vector<TopicPtr> topics;     ///< new ones, and those that take the place of what was there
  std::optional<std::vector<BrokerInfo>> brokers;
  std::optional<std::vector<DeletingTopic>> deleting;
  std::optional<std::vector<DamagedNode>> damage;
};

/// What the metadata store has confirmed about the cluster at one moment: topics, partitions,
/// leaders, brokers. Immutable; shared between workers; a change makes a new one, which shares the
/// topics that did not change.
class ClusterImage {
 public:
  ClusterImage(base::Uuid cluster_id, model::BrokerId controller, std::vector<BrokerInfo> brokers,
               std::vector<TopicPtr> topics, std::uint64_t version,
               std::vector<DeletingTopic> deleting = {}, std::vector<DamagedNode> damage = {});

  /// Rises with every change, over restarts too: the controller's epoch in the upper half, the
  /// change within it below.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  [[nodiscard]] const base::Uuid& cluster_id() const noexcept { return cluster_id_; }
  [[nodiscard]] model::BrokerId controller() const noexcept { return controller_; }
  /// Ascending by id; those that are away too.
  [[nodiscard]] const std::vector<BrokerInfo>& brokers() const noexcept { return brokers_; }
  [[nodiscard]] const std::vector<DeletingTopic>& deleting() const noexcept { return deleting_; }
  [[nodiscard]] const std::vector<DamagedNode>& damage() const noexcept { return damage_; }
  /// The first of them that belongs to this topic; null: none.
  [[nodiscard]] const DamagedNode* damage_of(std::string_view topic) const noexcept;
  /// Null: every topic is here. Else a topic's node is damaged and nobody knows its id: what is on
  /// disks under ids that this image lacks may be its.
  [[nodiscard]] const DamagedNode* lost_topic() const noexcept;
  [[nodiscard]] const BrokerInfo* find_broker(model::BrokerId id) const noexcept;

  /// By name, ascending.
  [[nodiscard]] const std::map<std::string, TopicPtr, std::less<>>& topics() const noexcept {
    return topics_;
  }
  [[nodiscard]] TopicPtr find_topic(std::string_view name) const;
  [[nodiscard]] TopicPtr find_topic(const base::Uuid& id) const;
  /// Nothing if the topic or the partition is not there. Valid as long as the image.
  [[nodiscard]] const PartitionAssignment* find_partition(const model::PartitionId& id) const;
  [[nodiscard]] std::size_t partitions() const noexcept;
  /// For "did you mean".
  [[nodiscard]] std::optional<std::string> nearest_topic_name(std::string_view name) const;

  /// A copy with that change and this version.
  [[nodiscard]] ClusterImage with_topic(TopicPtr topic, std::uint64_t version) const;
  [[nodiscard]] ClusterImage without_topic(std::string_view name, std::uint64_t version) const;
  [[nodiscard]] ClusterImage with(ImageChange change, std::uint64_t version) const;

 private:
  void put(TopicPtr topic);
  void remove(const base::Uuid& id);

  std::uint64_t version_ = 0;
  base::Uuid cluster_id_;
  model::BrokerId controller_;
  std::vector<BrokerInfo> brokers_;
  std::vector<DeletingTopic> deleting_;
  std::vector<DamagedNode> damage_;
  std::map<std::string, TopicPtr, std::less<>> topics_;
  std::unordered_map<base::Uuid, TopicPtr> by_id_;
};

using ImagePtr = std::shared_ptr<const ClusterImage>;

/// "there is no topic "ordres"; did you mean "orders"?": the text of every UNKNOWN_TOPIC. The
/// caller has looked at damage_of().
std::string unknown_topic_text(const ClusterImage& image, std::string_view name);

}  // namespace mq::metadata
