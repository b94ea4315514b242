#pragma once

#include <string_view>
#include <vector>

#include "sim/report.h"

namespace mq::sim {

struct World {
  std::string_view name;
  Report (*run)(std::uint64_t seed);
};

/// All simulated worlds.
const std::vector<World>& worlds();

}  // namespace mq::sim
