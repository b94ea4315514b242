#include "broker/replica_order.h"

#include "base/log.h"

namespace mq::broker {
namespace {

using storage::PartitionLog;

asio::awaitable<void> drop_leading(Worker& worker, model::PartitionId id) {
  const auto partition = worker.partitions().remove(id);
  if (!partition) co_return;
  partition->close();
  co_await partition->closed();
}

asio::awaitable<void> drop_followed(Worker& worker, model::PartitionId id) {
  const auto partition = worker.partitions().remove_followed(id);
  if (!partition) co_return;
  worker.replica_fetchers().unfollow(*partition);
  partition->close();
  co_await partition->closed();
}

/// Whether it is served as ordered already. A newer state of the ISR is all that may change then.
bool leads_already(Worker& worker, const ReplicaOrder& order) {
  auto* const served = worker.partitions().find(order.id);
  if (!served || !order.lead || served->leader_epoch() != order.lead->leader_epoch) return false;
  if (order.lead->role && served->replicated()) served->take_state(order.lead->role->state);
  return true;
}

bool follows_already(Worker& worker, const ReplicaOrder& order) {
  const auto* const followed = worker.partitions().find_followed(order.id);
  return followed && followed->following() == order.follow;
}

/// A log that cannot be led is served all the same: its failure tells why.
void lead(Worker& worker, const ReplicaOrder& order, ReplicaOutcome& outcome) {
  PartitionLog& log = *order.log;
  const auto epoch = order.lead->leader_epoch;
  auto role = order.lead->role;
  if (log.failure()) {
    role.reset();
  } else if (log.leader_epoch() >= epoch) {
    outcome.behind = true;
    outcome.ahead = log.leader_epoch() > epoch;
    return;
  } else if (const auto started = log.start_epoch(epoch); !started) {
    base::log_error("partition", "{} ({}): epoch {} cannot start: {}", order.name, order.id.text(),
                    epoch, started.error().message());
    role.reset();
  }
  outcome.leads = true;
  worker.partitions().add(std::make_shared<replication::Partition>(
      worker.runtime(), log, worker.core().counters, std::move(role)));
}

void follow(Worker& worker, const ReplicaOrder& order, ReplicaOutcome& outcome) {
  PartitionLog& log = *order.log;
  if (log.failure()) {
    outcome.damaged = log.failure() == make_error_code(storage::StorageErrc::partition_corrupt);
    return;
  }
  if (log.leader_epoch() > order.follow->leader_epoch) {
    outcome.ahead = true;
    return;
  }
  auto& fetchers = worker.replica_fetchers();
  const auto partition = std::make_shared<replication::FollowedPartition>(
      worker.runtime(), log, worker.core().counters, fetchers.memory(), *order.follow);
  worker.partitions().add_followed(partition);
  fetchers.follow(partition);
}

asio::awaitable<void> carry_out(Worker& worker, const ReplicaOrder& order,
                                ReplicaOutcome& outcome) {
  const bool leads = leads_already(worker, order);
  const bool follows = follows_already(worker, order);
  // REP-3
  if (!leads) co_await drop_leading(worker, order.id);
  if (!follows) co_await drop_followed(worker, order.id);
  if (!order.log) co_return;
  if (order.log->settings() != order.settings) order.log->set_settings(order.settings);
  if (order.lead && !leads) lead(worker, order, outcome);
  if (order.follow && !follows) follow(worker, order, outcome);
  outcome.looked = order.look;
  outcome.leader_epoch = order.log->leader_epoch();
  outcome.log_end_offset = order.log->log_end_offset();
  outcome.failure = order.log->failure();
}

}  // namespace

asio::awaitable<void> carry_out_orders(Worker& worker, const std::vector<ReplicaOrder>& orders,
                                       std::vector<ReplicaOutcome>& outcomes) {
  for (const ReplicaOrder& order : orders) {
    ReplicaOutcome outcome;
    outcome.id = order.id;
    outcome.name = order.name;
    co_await carry_out(worker, order, outcome);
    if (outcome.looked || outcome.leads || outcome.behind || outcome.ahead || outcome.damaged)
      outcomes.push_back(std::move(outcome));
  }
}

asio::awaitable<void> find_failed_replicas(Worker& worker, std::vector<ReplicaOutcome>& found) {
  const auto look = [&](const PartitionLog& log) {
    const auto failure = log.failure();
    if (!failure || failure == make_error_code(storage::StorageErrc::closed)) return;
    auto& outcome = found.emplace_back();
    outcome.id = log.id();
    outcome.name = log.topic_name();
    outcome.looked = true;
    outcome.failure = failure;
  };
  for (const auto& [id, partition] : worker.partitions().all()) {
    if (partition->replicated()) look(partition->log());
  }
  for (const auto& [id, partition] : worker.partitions().followed()) {
    look(partition->log());
    const auto failure = partition->log().failure();
    const bool corrupt = failure == make_error_code(storage::StorageErrc::partition_corrupt);
    if (partition->needs_another_log()) found.emplace_back().id = id;
    if (corrupt || partition->needs_another_log()) found.back().damaged = true;
  }
  co_return;
}

asio::awaitable<void> drop_partitions(Worker& worker) {
  std::vector<model::PartitionId> leading;
  for (const auto& [id, partition] : worker.partitions().all()) leading.push_back(id);
  for (const auto& id : leading) co_await drop_leading(worker, id);
  std::vector<model::PartitionId> followed;
  for (const auto& [id, partition] : worker.partitions().followed()) followed.push_back(id);
  for (const auto& id : followed) co_await drop_followed(worker, id);
}

}  // namespace mq::broker
