#include "controller/ring.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"

namespace mq::controller {
namespace {

constexpr std::uint32_t kPointsPerWeight = 128;
constexpr double kSlack = 1.15;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

template <std::size_t N>
std::uint64_t hash(const std::array<std::byte, N>& bytes) {
  return base::xxh3_64(bytes);
}

std::uint64_t point_hash(model::BrokerId broker, std::uint32_t point) {
  std::array<std::byte, 8> bytes;
  base::store_le(bytes.data(), broker.value());
  base::store_le(bytes.data() + 4, point);
  return hash(bytes);
}

std::uint64_t partition_hash(const base::Uuid& topic, std::int32_t number) {
  std::array<std::byte, 20> bytes;
  std::ranges::copy(topic.bytes(), bytes.begin());
  base::store_le(bytes.data() + 16, number);
  return hash(bytes);
}

/// The most that a broker with this part of the weight may have of `count`: at least its share,
/// rounded up, or not all would find a place.
std::size_t bound(double part, std::size_t count) {
  const double share = part * static_cast<double>(count);
  return static_cast<std::size_t>(std::max(std::ceil(share - 1e-9), std::floor(kSlack * share)));
}

}  // namespace

/// What each broker has, and may have, of all partitions and of the topic's.
struct Ring::Load {
  std::vector<std::size_t> all;
  std::vector<std::size_t> of_topic;
  std::vector<std::size_t> all_max;
  std::vector<std::size_t> of_topic_max;

  void add(std::size_t broker) {
    ++all[broker];
    ++of_topic[broker];
  }
  [[nodiscard]] bool topic_allows(std::size_t broker) const {
    return of_topic[broker] < of_topic_max[broker];
  }
  [[nodiscard]] bool allows(std::size_t broker) const {
    return topic_allows(broker) && all[broker] < all_max[broker];
  }
};

struct Ring::Loads {
  Load replicas;
  Load firsts;
};

Ring::Ring(std::vector<Broker> brokers) : brokers_(std::move(brokers)) {
  std::erase_if(brokers_, [](const Broker& broker) { return broker.weight == 0; });
  for (std::size_t i = 0; i < brokers_.size(); ++i) {
    for (std::uint32_t point = 0; point < kPointsPerWeight * brokers_[i].weight; ++point)
      points_.emplace(point_hash(brokers_[i].id, point), i);
  }
}

Ring::Loads Ring::loads(std::size_t numbers, std::span<const Replicas> existing,
                        std::size_t copies) const {
  double weights = 0;
  std::size_t all_replicas = numbers * copies;
  std::size_t all_firsts = numbers;
  std::size_t topic_replicas = numbers * copies;
  for (const auto& replicas : existing) topic_replicas += replicas.size();
  Loads loads;
  for (const auto& broker : brokers_) {
    weights += broker.weight;
    all_replicas += broker.replicas;
    all_firsts += broker.firsts;
    loads.replicas.all.push_back(broker.replicas);
    loads.firsts.all.push_back(broker.firsts);
    const auto has = [&](const Replicas& replicas) {
      return std::ranges::count(replicas, broker.id) > 0;
    };
    const auto is_first = [&](const Replicas& replicas) { return replicas.front() == broker.id; };
    loads.replicas.of_topic.push_back(
        static_cast<std::size_t>(std::ranges::count_if(existing, has)));
    loads.firsts.of_topic.push_back(
        static_cast<std::size_t>(std::ranges::count_if(existing, is_first)));
  }
  for (const auto& broker : brokers_) {
    const double part = broker.weight / weights;
    loads.replicas.all_max.push_back(bound(part, all_replicas));
    loads.replicas.of_topic_max.push_back(bound(part, topic_replicas));
    loads.firsts.all_max.push_back(bound(part, all_firsts));
    loads.firsts.of_topic_max.push_back(bound(part, numbers + existing.size()));
  }
  return loads;
}

std::vector<Ring::Replicas> Ring::place(const base::Uuid& topic,
                                        std::span<const std::int32_t> numbers,
                                        std::span<const Replicas> existing,
                                        std::size_t copies) const {
  if (brokers_.size() < copies || copies == 0) return {};
  Loads loads = this->loads(numbers.size(), existing, copies);
  std::vector<Replicas> chosen;
  chosen.reserve(numbers.size());
  for (const auto number : numbers) {
    const auto hash = partition_hash(topic, number);
    auto& replicas = chosen.emplace_back();
    while (replicas.size() < copies) {
      const std::size_t broker = choose(hash, loads, replicas);
      if (broker == kNone) return {};
      if (replicas.empty()) loads.firsts.add(broker);
      loads.replicas.add(broker);
      replicas.push_back(brokers_[broker].id);
    }
  }
  return chosen;
}

std::size_t Ring::choose(std::uint64_t hash, const Loads& loads, const Replicas& chosen) const {
  const auto& replicas = loads.replicas;
  const auto& firsts = loads.firsts;
  const bool first = chosen.empty();
  std::size_t second = kNone;  // within the topic's bound only
  std::size_t least = kNone;   // when nothing fits
  auto point = points_.lower_bound(hash);
  for (std::size_t seen = 0; seen < points_.size(); ++seen, ++point) {
    if (point == points_.end()) point = points_.begin();
    const std::size_t broker = point->second;
    if (replicas.all[broker] >= brokers_[broker].replicas_max) continue;
    if (std::ranges::count(chosen, brokers_[broker].id) > 0) continue;
    const auto& load = first ? firsts : replicas;
    if (least == kNone || load.of_topic[broker] < load.of_topic[least]) least = broker;
    if (!replicas.topic_allows(broker) || (first && !firsts.topic_allows(broker))) continue;
    if (replicas.allows(broker) && (!first || firsts.allows(broker))) return broker;
    if (second == kNone) second = broker;
  }
  return second != kNone ? second : least;
}

}  // namespace mq::controller
