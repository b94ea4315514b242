#pragma once

#include <map>
#include <set>
#include <string>

#include "base/wait_list.h"
#include "model/ids.h"
#include "replication/controller_link.h"

namespace mq::replication {

/// Tells the controller what this broker has found on its disks (C4): each replica once it is
/// recovered or made, in batches as they come; all of them again after each registration and to
/// each new controller. A report that was not answered is sent again.
///
/// On the home runtime.
class ReplicaReporter {
 public:
  /// Everything given outlives it.
  ReplicaReporter(model::BrokerId broker, ControllerLink& link, base::Runtime& home);

  void start();
  /// After a registration.
  void set_epoch(model::BrokerEpoch epoch);
  /// An image of this version is there; a new controller gets everything again.
  void note_image(std::uint64_t version);
  /// The controller may be another one: no more waiting before the next try.
  void try_now();

  /// `intact_since`: the registration since which nothing can be missing from the log; -1: as long
  /// as its disk exists.
  void opened(const model::PartitionId& id, model::LeaderEpoch last, model::Offset log_end_offset,
              model::Offset high_watermark, model::BrokerEpoch intact_since);
  /// `heard_of_in`: the newest leader epoch in which a leader may have heard of the log, when that
  /// is going to be another one; -1: it is not, or none has.
  void failed(const model::PartitionId& id, protocol::Status reason,
              model::LeaderEpoch heard_of_in = {});
  /// What cannot be read of one that was opened, as far as that is known now; no place: all can.
  void damaged(const model::PartitionId& id, std::vector<model::DamagedPlace> places,
               protocol::Status which);
  /// Once: what is known of it, as `state`; nothing of one that was not reported yet.
  void ask(const model::PartitionId& id, protocol::ReplicaState state);
  /// The log has got this epoch; nobody needs to be told.
  void leads(const model::PartitionId& id, model::LeaderEpoch epoch);
  /// The replica is none of ours any more.
  void forget(const model::PartitionId& id);
  /// No file of the topic is left here, until the controller has forgotten it.
  void deleted(const base::Uuid& topic);
  void forget_deleted(const base::Uuid& topic);

  /// Whether the controller has taken all that was known so far, at `deadline` the latest.
  asio::awaitable<bool> all_taken(base::TimePoint deadline);
  /// The newest image version of those answers: what follows from the reports is in it.
  [[nodiscard]] std::uint64_t taken_version() const noexcept { return taken_version_; }
  /// Replicas that the controller has not been told of yet.
  [[nodiscard]] std::size_t left() const noexcept;
  /// What was said of each last.
  [[nodiscard]] const std::map<model::PartitionId, protocol::ReplicaReport>& last_reports()
      const noexcept {
    return replicas_;
  }
  /// What was said of it last; null: nothing yet.
  [[nodiscard]] const protocol::ReplicaReport* last_report(const model::PartitionId& id) const;
  /// Why the last try failed, for people; empty: it did not.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
  /// Nothing is sent any more, nobody waits any more.
  void give_up();
  asio::awaitable<void> stop();

 private:
  asio::awaitable<void> run();
  asio::awaitable<bool> report_some();
  asio::awaitable<void> pause();
  protocol::ReportReplicasRequest next_request();
  void give_back(const protocol::ReportReplicasRequest& request);
  void report(protocol::ReplicaReport report);
  void report_all_again();

  model::BrokerId broker_;
  ControllerLink& link_;
  base::Runtime& home_;
  model::BrokerEpoch epoch_;
  std::uint64_t controller_epoch_ = 0;
  std::map<model::PartitionId, protocol::ReplicaReport> replicas_;
  std::set<model::PartitionId> due_;
  std::map<model::PartitionId, protocol::ReplicaState> asks_;  ///< what of those that are due says
  std::set<base::Uuid> deleted_;
  std::set<base::Uuid> deleted_due_;
  std::size_t under_way_ = 0;
  std::uint64_t taken_version_ = 0;
  std::string trouble_;
  bool hurry_ = false;
  bool stopping_ = false;
  base::Duration back_off_{};
  base::WaitList changed_;
  base::TaskGroup tasks_;
};

}  // namespace mq::replication
