#pragma once

#include <optional>
#include <string>
#include <vector>

#include "broker/worker.h"
#include "replication/follower.h"

namespace mq::broker {

/// What one image wants of one partition kept here.
struct ReplicaOrder {
  struct Lead {
    model::LeaderEpoch leader_epoch;
    std::optional<replication::LeaderRole> role;  ///< nothing: it has no followers
  };

  model::PartitionId id;
  std::string name;  ///< of the topic
  storage::PartitionLog* log = nullptr;
  std::optional<Lead> lead;
  std::optional<replication::Following> follow;  ///< neither: it is not served
  bool in_sync = false;                          ///< this broker is in its ISR
  bool lossy = false;  ///< its leader may lack records that were confirmed
  model::TopicSettings settings;
  bool look = false;  ///< tell the state of the log
  /// It leads with whatever it has: tell what that is, or that its log is of no use at all.
  bool leads_with_loss = false;
};

/// What became of it, or what the log says.
struct ReplicaOutcome {
  model::PartitionId id;
  std::string name;
  bool looked = false;  ///< the state of the log is to be told
  bool leads = false;
  bool behind = false;   ///< the epoch to lead in was not above the log's (PAR-4)
  bool ahead = false;    ///< the epoch was below the log's
  bool damaged = false;  ///< to be replaced, as far as it does not hold
  bool foreign = false;  ///< to be replaced whole: nothing of it is the leader's
  bool serves = false;   ///< damaged in places; the rest of it is of use still
  bool useless = false;  ///< it has failed, and was to be led or followed with others
  /// The newest in which a leader may have heard of this log; -1: none under this registration.
  model::LeaderEpoch heard_of_in;
  model::LeaderEpoch leader_epoch;
  model::Offset log_end_offset;
  model::Offset high_watermark;
  base::Error failure;
  std::string reason;  ///< what is damaged, for people; empty: the failure says it
  std::vector<model::DamagedPlace> places;  ///< of one that serves what is not damaged
};

/// Has each of them carried out, on `worker`. A partition whose role or epoch changes is closed
/// first, and nothing of it is under way any more when the other role begins.
asio::awaitable<void> carry_out_orders(Worker& worker, const std::vector<ReplicaOrder>& orders,
                                       std::vector<ReplicaOutcome>& outcomes);

/// Partitions whose logs have failed here or are damaged in places. On `worker`.
asio::awaitable<void> find_failed_replicas(Worker& worker, std::vector<ReplicaOutcome>& found);

/// Nobody else in sync can give out what is damaged in these partitions, led here. On `worker`.
asio::awaitable<void> stay_with(Worker& worker, std::vector<model::PartitionId> ids);

/// Partitions led here whose own log stands still while appends wait. On `worker`.
asio::awaitable<void> find_stalled_leaders(Worker& worker, std::vector<model::PartitionId>& found);

/// Whether the log is still to be replaced: as `foreign`, because nothing of it is the leader's, or
/// because it is damaged. On `worker`.
asio::awaitable<bool> needs_replacement(Worker& worker, const storage::PartitionLog& log,
                                        bool foreign);

/// Drops every partition of `worker`, on it.
asio::awaitable<void> drop_partitions(Worker& worker);

}  // namespace mq::broker
