#include "broker/replica_order.h"

#include <algorithm>

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

bool is_corrupt(const PartitionLog& log) {
  return log.failure() == make_error_code(storage::StorageErrc::partition_corrupt);
}

/// Damaged; or closed, since a replacement has failed half way and is tried again.
bool may_be_replaced(const PartitionLog& log) {
  return is_corrupt(log) || log.failure() == make_error_code(storage::StorageErrc::closed);
}

/// Whether it is served as ordered already. A newer state of the ISR is all that may change then.
bool leads_already(Worker& worker, const ReplicaOrder& order) {
  auto* const served = worker.partitions().find(order.id);
  if (!served || !order.lead || served->leader_epoch() != order.lead->leader_epoch) return false;
  if (order.lead->role && served->replicated()) served->take_state(order.lead->role->state);
  return true;
}

bool follows_already(Worker& worker, const ReplicaOrder& order) {
  auto* const followed = worker.partitions().find_followed(order.id);
  if (!followed || followed->following() != order.follow) return false;
  followed->set_in_sync(order.in_sync);
  followed->keep_what_is_cut(order.lossy);
  return true;
}

/// A log that cannot be led is served all the same: its failure tells why.
void lead(Worker& worker, const ReplicaOrder& order, ReplicaOutcome& outcome) {
  PartitionLog& log = *order.log;
  const auto epoch = order.lead->leader_epoch;
  auto role = order.lead->role;
  // What is damaged is put away before it leads with the rest, and says what that is.
  if (order.leads_with_loss && !log.failure() && !log.read_damage().empty()) {
    outcome.damaged = true;
    return;
  }
  if (log.failure()) {
    outcome.damaged = may_be_replaced(log);
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
    outcome.damaged = is_corrupt(log);
    return;
  }
  if (log.leader_epoch() > order.follow->leader_epoch) {
    outcome.ahead = true;
    return;
  }
  auto& fetchers = worker.replica_fetchers();
  const auto partition = std::make_shared<replication::FollowedPartition>(
      worker.runtime(), log, worker.core().counters, fetchers.memory(), *order.follow);
  partition->set_in_sync(order.in_sync);
  partition->keep_what_is_cut(order.lossy);
  worker.partitions().add_followed(partition);
  fetchers.follow(partition);
}

/// The leader epoch in which it leads or follows; -1: it does neither.
model::LeaderEpoch role_epoch(Worker& worker, const model::PartitionId& id) {
  model::LeaderEpoch epoch;
  if (const auto* const led = worker.partitions().find(id)) epoch = led->leader_epoch();
  if (const auto* const followed = worker.partitions().find_followed(id))
    epoch = std::max(epoch, followed->following().leader_epoch);
  return epoch;
}

/// It has failed, and others count on it, or will.
bool is_useless(const ReplicaOrder& order) {
  const base::Error failed = order.log->failure();
  const bool shared = order.follow || (order.lead && order.lead->role);
  return shared && failed && failed != make_error_code(storage::StorageErrc::closed);
}

asio::awaitable<void> carry_out(Worker& worker, const ReplicaOrder& order,
                                ReplicaOutcome& outcome) {
  const auto before = role_epoch(worker, order.id);
  const bool leads = leads_already(worker, order);
  const bool follows = follows_already(worker, order);
  // REP-3
  if (!leads) co_await drop_leading(worker, order.id);
  if (!follows) co_await drop_followed(worker, order.id);
  if (!order.log) co_return;
  if (order.log->settings() != order.settings) order.log->set_settings(order.settings);
  if (order.lead && !leads) lead(worker, order, outcome);
  if (order.follow && !follows) follow(worker, order, outcome);
  outcome.heard_of_in = std::max(before, role_epoch(worker, order.id));
  outcome.useless = is_useless(order);
  // Also one that was followed already, and has failed since it was last looked at.
  outcome.damaged = outcome.damaged || (outcome.useless && is_corrupt(*order.log));
  outcome.leader_epoch = order.log->leader_epoch();
  outcome.log_end_offset = order.log->log_end_offset();
  outcome.high_watermark = order.log->high_watermark_hint();
  outcome.failure = order.log->failure();
  outcome.reason = order.log->failure_text();
  outcome.places = order.log->damaged_places();
  if (!outcome.failure && !outcome.places.empty()) outcome.reason = order.log->read_damage();
  const bool to_be_mended = may_be_replaced(*order.log) || !outcome.places.empty();
  const bool first_mended = order.leads_with_loss && outcome.damaged && !outcome.failure;
  outcome.looked = (order.look && !first_mended) || (order.leads_with_loss && !to_be_mended);
}

}  // namespace

asio::awaitable<void> carry_out_orders(Worker& worker, const std::vector<ReplicaOrder>& orders,
                                       std::vector<ReplicaOutcome>& outcomes) {
  for (const ReplicaOrder& order : orders) {
    ReplicaOutcome outcome;
    outcome.id = order.id;
    outcome.name = order.name;
    co_await carry_out(worker, order, outcome);
    if (outcome.looked || outcome.leads || outcome.behind || outcome.ahead || outcome.damaged ||
        outcome.useless)
      outcomes.push_back(std::move(outcome));
  }
}

asio::awaitable<void> find_failed_replicas(Worker& worker, std::vector<ReplicaOutcome>& found) {
  const auto corrupt = make_error_code(storage::StorageErrc::partition_corrupt);
  const auto look = [&](const PartitionLog& log, model::LeaderEpoch epoch, bool foreign) {
    ReplicaOutcome outcome;
    outcome.heard_of_in = epoch;
    outcome.failure = log.failure();
    outcome.foreign = foreign;
    if (outcome.failure == make_error_code(storage::StorageErrc::closed)) return;
    outcome.reason = outcome.failure ? log.failure_text() : log.read_damage();
    outcome.serves = !outcome.failure && !outcome.reason.empty() && !foreign;
    if (outcome.serves) {
      outcome.failure = corrupt;
      outcome.places = log.damaged_places();
    }
    outcome.damaged = foreign || outcome.failure == corrupt;
    outcome.looked = static_cast<bool>(outcome.failure);
    outcome.id = log.id();
    outcome.name = log.topic_name();
    if (outcome.damaged || outcome.failure) found.push_back(std::move(outcome));
  };
  for (const auto& [id, partition] : worker.partitions().all()) {
    look(partition->log(), partition->leader_epoch(), false);
  }
  for (const auto& [id, partition] : worker.partitions().followed())
    look(partition->log(), partition->following().leader_epoch, partition->needs_another_log());
  co_return;
}

asio::awaitable<void> stay_with(Worker& worker, std::vector<model::PartitionId> ids) {
  for (const auto& id : ids) {
    if (auto* const partition = worker.partitions().find(id)) partition->nobody_is_better();
  }
  co_return;
}

asio::awaitable<void> find_stalled_leaders(Worker& worker, std::vector<model::PartitionId>& found) {
  for (const auto& [id, partition] : worker.partitions().all()) {
    if (partition->replicated() && partition->stands_still()) found.push_back(id);
  }
  co_return;
}

asio::awaitable<bool> needs_replacement(Worker& worker, const PartitionLog& log, bool foreign) {
  const auto* followed = worker.partitions().find_followed(log.id());
  if (foreign) co_return followed && followed->needs_another_log();
  co_return log.failure() ? may_be_replaced(log) : !log.read_damage().empty();
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
