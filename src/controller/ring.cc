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
};

Ring::Ring(std::vector<Broker> brokers) : brokers_(std::move(brokers)) {
  std::erase_if(brokers_, [](const Broker& broker) { return broker.weight == 0; });
  for (std::size_t i = 0; i < brokers_.size(); ++i) {
    for (std::uint32_t point = 0; point < kPointsPerWeight * brokers_[i].weight; ++point)
      points_.emplace(point_hash(brokers_[i].id, point), i);
  }
}

std::vector<model::BrokerId> Ring::place(const base::Uuid& topic,
                                         std::span<const std::int32_t> numbers,
                                         std::span<const model::BrokerId> existing) const {
  if (brokers_.empty()) return {};
  double weights = 0;
  std::size_t all = numbers.size();
  Load load;
  for (const auto& broker : brokers_) {
    weights += broker.weight;
    all += broker.partitions;
    load.all.push_back(broker.partitions);
    load.of_topic.push_back(static_cast<std::size_t>(std::ranges::count(existing, broker.id)));
  }
  for (const auto& broker : brokers_) {
    const double part = broker.weight / weights;
    load.all_max.push_back(bound(part, all));
    load.of_topic_max.push_back(bound(part, numbers.size() + existing.size()));
  }
  std::vector<model::BrokerId> chosen;
  chosen.reserve(numbers.size());
  for (const auto number : numbers) {
    const std::size_t broker = choose(partition_hash(topic, number), load);
    if (broker == kNone) return {};
    ++load.all[broker];
    ++load.of_topic[broker];
    chosen.push_back(brokers_[broker].id);
  }
  return chosen;
}

std::size_t Ring::choose(std::uint64_t hash, const Load& load) const {
  std::size_t second = kNone;  // within the topic's bound only
  std::size_t least = kNone;   // when nothing fits
  auto point = points_.lower_bound(hash);
  for (std::size_t seen = 0; seen < points_.size(); ++seen, ++point) {
    if (point == points_.end()) point = points_.begin();
    const std::size_t broker = point->second;
    if (load.all[broker] >= brokers_[broker].partitions_max) continue;
    if (least == kNone || load.of_topic[broker] < load.of_topic[least]) least = broker;
    if (load.of_topic[broker] >= load.of_topic_max[broker]) continue;
    if (load.all[broker] < load.all_max[broker]) return broker;
    if (second == kNone) second = broker;
  }
  return second != kNone ? second : least;
}

}  // namespace mq::controller
