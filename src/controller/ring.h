#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/uuid.h"
#include "model/ids.h"

namespace mq::controller {

/// Where partitions are put: a consistent-hash ring, on which every broker has points in proportion
/// to its weight. The replicas of a partition go to the next brokers clockwise from its hash, but
/// for those that have their share already; so a broker that comes or goes moves little.
class Ring {
 public:
  /// A broker, its weight (1 is usual, 0 gets nothing), and what it has: replicas, and those of
  /// them that are the first of their partition, which is the one that leads at first.
  struct Broker {
    model::BrokerId id;
    std::uint32_t weight = 1;
    std::size_t replicas = 0;
    std::size_t firsts = 0;
    std::size_t replicas_max = static_cast<std::size_t>(-1);  ///< it holds no more
  };
  using Replicas = std::vector<model::BrokerId>;

  explicit Ring(std::vector<Broker> brokers);

  /// `copies` different brokers for each of the new partitions `numbers` of `topic`, whose other
  /// partitions are on `existing`. As far as that is possible no broker gets more than 1.15 times
  /// its share of the topic's replicas, nor of all, and the same holds for first replicas; the
  /// topic's share comes first. Empty if there is no room for all, or there are fewer brokers.
  [[nodiscard]] std::vector<Replicas> place(const base::Uuid& topic,
                                            std::span<const std::int32_t> numbers,
                                            std::span<const Replicas> existing,
                                            std::size_t copies) const;

 private:
  struct Load;
  struct Loads;
  [[nodiscard]] Loads loads(std::size_t numbers, std::span<const Replicas> existing,
                            std::size_t copies) const;
  [[nodiscard]] std::size_t choose(std::uint64_t hash, const Loads& loads,
                                   const Replicas& chosen) const;

  std::vector<Broker> brokers_;
  std::map<std::uint64_t, std::size_t> points_;  // hash to index in brokers_
};

}  // namespace mq::controller
