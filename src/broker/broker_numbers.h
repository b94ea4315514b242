#pragma once

#include <cstdint>
#include <vector>

#include "model/isr.h"

namespace mq::broker {

/// Brokers as messages to clients name them.
inline std::vector<std::int32_t> numbers_of(const std::vector<model::BrokerId>& brokers) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(brokers.size());
  for (const auto broker : brokers) numbers.push_back(broker.value());
  return numbers;
}
inline std::vector<std::int32_t> numbers_of(const std::vector<model::IsrMember>& members) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(members.size());
  for (const auto& member : members) numbers.push_back(member.broker.value());
  return numbers;
}

}  // namespace mq::broker
