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
  model::TopicSettings settings;
  bool look = false;  ///< tell the state of the log
};

/// What became of it, or what the log says.
struct ReplicaOutcome {
  model::PartitionId id;
  std::string name;
  bool looked = false;  ///< the state of the log is to be told
  bool leads = false;
  bool behind = false;   ///< the epoch to lead in was not above the log's (PAR-4)
  bool ahead = false;    ///< the epoch was below the log's
  bool damaged = false;  ///< it was to follow and cannot
  model::LeaderEpoch leader_epoch;
  model::Offset log_end_offset;
  base::Error failure;
};

/// Has each of them carried out, on `worker`. A partition whose role or epoch changes is closed
/// first, and nothing of it is under way any more when the other role begins.
asio::awaitable<void> carry_out_orders(Worker& worker, const std::vector<ReplicaOrder>& orders,
                                       std::vector<ReplicaOutcome>& outcomes);

/// Partitions that other brokers keep too, whose logs have failed here. On `worker`.
asio::awaitable<void> find_failed_replicas(Worker& worker, std::vector<ReplicaOutcome>& found);

/// Drops every partition of `worker`, on it.
asio::awaitable<void> drop_partitions(Worker& worker);

}  // namespace mq::broker
