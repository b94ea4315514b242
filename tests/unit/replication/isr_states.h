#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "replication/isr.h"

/// What tests of a leader's ISR are about: broker 1 leads in epoch 5, and the registration of a
/// broker is 10 × its id.
namespace mq::replication {

inline constexpr LeaderEpoch kEpoch{5};

inline IsrMember member(std::int32_t id) { return {BrokerId(id), BrokerEpoch(10L * id)}; }

inline std::vector<IsrMember> members(std::initializer_list<std::int32_t> ids) {
  std::vector<IsrMember> all;
  for (const auto id : ids) all.push_back(member(id));
  return all;
}

inline IsrState state_of(std::int32_t version, std::vector<IsrMember> isr,
                         std::uint32_t min_isr = 2) {
  return {BrokerId(1), kEpoch, model::PartitionVersion(version), std::move(isr), min_isr};
}

}  // namespace mq::replication
