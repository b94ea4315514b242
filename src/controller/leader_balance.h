#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/runtime.h"
#include "model/ids.h"

namespace mq::controller {

struct BalanceRules {
  bool on = true;
  /// So long the first replica of a partition has to be able to lead, and not to do it.
  base::Duration after = std::chrono::seconds(60);
  /// Nothing is moved to a broker that leads all but so many percent of what it is the first of.
  std::uint32_t limit_percent = 10;
};

/// Which partitions are to be led again by the first of their replicas, which is how leaders are
/// spread over the brokers. A broker that was away would lead nothing otherwise when it is back.
///
/// A partition that has lost the leader it was given back to waits twice as long before it is moved
/// again, up to hours. Without a clock and a store: a new controller begins anew.
class LeaderBalance {
 public:
  explicit LeaderBalance(BalanceRules rules) : rules_(rules) {}

  /// One partition with several replicas, as it is now.
  struct Seen {
    model::PartitionId id;
    model::BrokerId first;  ///< of its replicas
    bool leads = false;     ///< the first one
    bool may_lead = false;  ///< it is in sync, and its broker lives and stays
  };
  /// What to move now, few at a time; moved() has to follow for each that was.
  std::vector<model::PartitionId> due(const std::vector<Seen>& all, base::TimePoint now);
  void moved(const model::PartitionId& id, base::TimePoint now);
  /// It is not given back to its first replica before.
  void hold(const model::PartitionId& id, base::TimePoint until);
  /// Whether some partition only waits for its time.
  [[nodiscard]] bool something_waits() const noexcept { return waiting_; }

 private:
  struct Known {
    std::optional<base::TimePoint> since;     ///< it could be moved; nothing: it cannot
    std::optional<base::TimePoint> moved_at;  ///< and has its leader since
    base::TimePoint not_before{};
    int lost = 0;  ///< how often it lost that leader again
  };
  void look_at(const Seen& seen, base::TimePoint now);
  [[nodiscard]] bool is_due(const Known& known, base::TimePoint now) const;

  BalanceRules rules_;
  std::map<model::PartitionId, Known> known_;
  bool waiting_ = false;
};

}  // namespace mq::controller
