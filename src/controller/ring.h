#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/uuid.h"
#include "model/ids.h"

namespace mq::controller {

/// Where partitions are put: a consistent-hash ring, on which every broker has points in proportion
/// to its weight. A partition goes to the next broker clockwise from its hash, unless that has its
/// share already; so a broker that comes or goes moves little.
class Ring {
 public:
  /// A broker, its weight (1 is usual, 0 gets nothing), and the partitions that it has.
  struct Broker {
    model::BrokerId id;
    std::uint32_t weight = 1;
    std::size_t partitions = 0;
    std::size_t partitions_max = static_cast<std::size_t>(-1);  ///< it holds no more
  };

  explicit Ring(std::vector<Broker> brokers);

  /// One broker for each of the new partitions `numbers` of `topic`, whose other partitions are on
  /// `existing`. No broker gets more than 1.15 times its share of all partitions and of the
  /// topic's; where not both are possible, the topic's counts. Empty if there is no room for all.
  [[nodiscard]] std::vector<model::BrokerId> place(const base::Uuid& topic,
                                                   std::span<const std::int32_t> numbers,
                                                   std::span<const model::BrokerId> existing) const;

 private:
  struct Load;
  [[nodiscard]] std::size_t choose(std::uint64_t hash, const Load& load) const;

  std::vector<Broker> brokers_;
  std::map<std::uint64_t, std::size_t> points_;  // hash to index in brokers_
};

}  // namespace mq::controller
