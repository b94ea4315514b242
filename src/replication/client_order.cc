#include "replication/client_order.h"

#include "base/mutants.h"

namespace mq::replication {

Error ClientOrder::check(const BatchOrigin& origin) const {
  if (MQ_MUTANT("order_rule_off")) return {};
  const auto found = by_instance_.find(origin.client_instance);
  const Client* known = found == by_instance_.end() ? nullptr : &*found->second;
  if (known && origin.connection_number < known->connection_number)
    return ReplicationErrc::stale_connection;
  if (origin.sequence == 0) return {};
  if (known && origin.connection_number == known->connection_number &&
      origin.sequence == known->next_sequence) {
    return {};
  }
  return ReplicationErrc::out_of_order;
}

void ClientOrder::tried(const BatchOrigin& origin) {
  if (origin.sequence != 0) return;
  const auto found = by_instance_.find(origin.client_instance);
  if (found == by_instance_.end()) return;
  // A newer connection takes over only with its first append.
  if (found->second->connection_number == origin.connection_number)
    found->second->next_sequence = 0;
}

void ClientOrder::set_next(const BatchOrigin& origin, std::uint64_t next_sequence) {
  const Client now{origin.client_instance, origin.connection_number, next_sequence};
  if (const auto found = by_instance_.find(now.instance); found != by_instance_.end()) {
    *found->second = now;
    newest_first_.splice(newest_first_.begin(), newest_first_, found->second);
    return;
  }
  if (by_instance_.size() == clients_max_) {
    by_instance_.erase(newest_first_.back().instance);
    newest_first_.pop_back();
  }
  newest_first_.push_front(now);
  by_instance_.emplace(now.instance, newest_first_.begin());
}

}  // namespace mq::replication
