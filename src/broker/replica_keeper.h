#pragma once

#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/wait_list.h"
#include "broker/core.h"
#include "replication/cluster_view.h"
#include "replication/replica_reporter.h"
#include "storage/disk_group.h"

namespace mq::broker {

struct ReplicaOrder;
struct ReplicaOutcome;

/// Makes this broker's partitions what the newest cluster image says of them: leads or follows,
/// each in its leader epoch, stops what has no leader, makes the logs of new ones, deletes those of
/// topics that are gone, applies changed settings, and has each replica reported.
///
/// One image after the other, by one task on the home runtime; what concerns a partition itself
/// runs on its worker. Logs are made and topics deleted only after the recovery.
class ReplicaKeeper {
 public:
  /// Everything given outlives it.
  ReplicaKeeper(Core& core, replication::ClusterView& view, replication::ReplicaReporter& reporter);

  /// What recovery has to open: every partition of `image` that this broker keeps. Once.
  [[nodiscard]] std::vector<storage::LogSpec> known(const metadata::ClusterImage& image);
  /// Topics of `image` whose replicas here are to be deleted.
  [[nodiscard]] std::vector<base::Uuid> deleting(const metadata::ClusterImage& image) const;

  /// Told of each image once its leaders and removals are in force on all workers. Set before
  /// start().
  void on_applied(std::function<void(const metadata::ClusterImage&)> listener) {
    on_applied_ = std::move(listener);
  }
  void start();
  /// There is a newer image.
  void wake();
  /// Something has become damaged, or is not any more: told soon.
  void look_for_damage();
  /// Returns when the controller knows of all damage that has been found here so far, or at
  /// `deadline`, or after stop().
  asio::awaitable<void> damage_told(base::TimePoint deadline);
  /// From now on the disks give its log.
  void log_ready(const model::PartitionId& id);
  /// Every log is there that will be there without being made.
  void recovery_ended();

  [[nodiscard]] std::uint64_t applied_version() const noexcept { return applied_version_; }
  /// Returns when every log that was ready has been looked at, or after stop().
  asio::awaitable<void> all_looked_at();
  /// Returns when the image of this version, or a later one, is in force, or after stop().
  asio::awaitable<void> applied(std::uint64_t version);

  /// No image is applied any more, nobody waits any more.
  void give_up();
  /// The same, and returns when nothing of it is under way.
  asio::awaitable<void> stop();
  /// Logs that have to be made, or made anew, where the last try has failed, and why.
  [[nodiscard]] std::map<model::PartitionId, base::Error> failing() const;
  /// Drops every partition, on its worker; after stop(), before the disks stop.
  asio::awaitable<void> drop_all();

 private:
  using Orders = std::vector<std::pair<Worker*, std::vector<ReplicaOrder>>>;
  static std::vector<ReplicaOrder>& orders_for(Worker& worker, Orders& orders);
  static constexpr base::Duration kLookForFailures = std::chrono::seconds(1);
  /// A log that is to be replaced, by a growing pause after each failure.
  struct Damaged {
    storage::Keep keep = storage::Keep::sound_segments;
    model::LeaderEpoch heard_of_in;  ///< the newest in which a leader may have heard of it
    base::TimePoint again_at{};
    base::Duration pause{};
    base::Error failure;  ///< of the last try
  };

  asio::awaitable<void> run();
  asio::awaitable<void> tell_addresses(const metadata::ClusterImage& image);
  asio::awaitable<void> apply(metadata::ImagePtr image);
  asio::awaitable<void> look_at(std::vector<model::PartitionId> ids);
  asio::awaitable<void> carry_out(Orders orders);
  void give_orders(const metadata::TopicInfo& topic, Orders& orders);
  void give_order(const metadata::TopicInfo& topic, const metadata::PartitionAssignment& assignment,
                  Orders& orders);
  void give_up_topic(const metadata::TopicInfo& topic, Orders& orders) const;
  bool tells_leaderless(const metadata::PartitionAssignment& assignment);
  bool tells_loss(const metadata::PartitionAssignment& assignment);
  [[nodiscard]] bool leads_with_loss(const metadata::PartitionAssignment& assignment) const;
  void give_role(const metadata::PartitionAssignment& assignment, ReplicaOrder& order);
  void note(const ReplicaOutcome& outcome);

  asio::awaitable<void> look_for_failures();
  asio::awaitable<void> look_for_stalled(Worker& worker);
  [[nodiscard]] std::optional<model::PartitionId> next_damaged() const;
  [[nodiscard]] bool can_be_replaced(const model::PartitionId& id, const Damaged& damaged) const;
  [[nodiscard]] bool may_stand_aside(const model::PartitionId& id) const;
  [[nodiscard]] base::TimePoint next_try() const;
  asio::awaitable<void> stand_aside(std::vector<model::PartitionId> ids);
  bool give_way(const model::PartitionId& id);
  void tell_damage(const ReplicaOutcome& outcome);
  void forget_mended(const std::set<model::PartitionId>& damaged);
  asio::awaitable<void> replace_damaged(model::PartitionId id);
  void replacement_failed(const model::PartitionId& id, const base::Error& why);
  asio::awaitable<void> make_some();
  void want_logs(const metadata::TopicInfo& topic);
  void find_absent();
  void delete_topics(const metadata::ClusterImage& image);
  asio::awaitable<void> delete_topic(base::Uuid topic);
  [[nodiscard]] storage::LogSpec spec_of(const metadata::TopicInfo& topic,
                                         const metadata::PartitionAssignment& assignment) const;
  [[nodiscard]] bool keeps(const metadata::PartitionAssignment& assignment) const;
  [[nodiscard]] bool something_to_do() const;

  Core& core_;
  replication::ClusterView& view_;
  replication::ReplicaReporter& reporter_;
  base::Runtime& home_;
  std::function<void(const metadata::ClusterImage&)> on_applied_;
  metadata::ImagePtr applied_;
  std::uint64_t applied_version_ = 0;
  std::unordered_map<model::BrokerId, base::Endpoint> addresses_;
  std::vector<model::PartitionId> ready_;   ///< logs that nobody has looked at
  std::set<model::PartitionId> looked_at_;  ///< logs that were reported as they are
  bool looking_ = false;
  bool recovered_ = false;
  std::vector<model::PartitionId> known_;  ///< what recovery has to open
  std::set<model::PartitionId> absent_;    ///< it did not get them
  std::set<model::PartitionId> wanted_;    ///< their logs have to be made
  base::Error make_failure_;               ///< of the last try
  base::TimePoint make_again_at_{};
  base::TimePoint look_for_failures_at_ = base::TimePoint::max();  // max: no replica elsewhere
  bool looks_regularly_ = false;                                   // there is one
  std::uint64_t looks_begun_ = 0;
  std::uint64_t looks_ended_ = 0;
  /// Told to the controller; not followed any more until they are replaced.
  std::set<model::PartitionId> failed_;
  std::map<model::PartitionId, Damaged> damaged_;
  std::map<model::PartitionId, base::TimePoint> resigned_at_;  ///< asked to be led elsewhere
  /// Damaged in places and served all the same, which the controller knows. When one that is led
  /// here may ask again to be led elsewhere, by a growing pause: another may be damaged elsewhere.
  struct Spoilt {
    base::TimePoint asked_at{};
    base::Duration pause{};
    model::LeaderEpoch asked_in;
    std::vector<model::IsrMember> asked;  ///< who could have led then, since the last pause
    int given_back = 0;  ///< led here again and asked at once, since the last pause
  };
  std::map<model::PartitionId, Spoilt> spoilt_;
  /// Without a leader: the epoch in which it was told what there is.
  std::map<model::PartitionId, model::LeaderEpoch> told_leaderless_;
  /// The loss of which it was told what there was.
  std::map<model::PartitionId, model::LeaderEpoch> told_loss_;
  std::set<base::Uuid> deletions_;  ///< under way, or done and not forgotten by the controller
  bool stopping_ = false;
  base::WaitList changed_;
  base::TaskGroup tasks_;
};

}  // namespace mq::broker
