#pragma once

#include <cstdint>

#include "sim/report.h"

namespace mq::sim {

/// One to three brokers with one metadata store, producers and consumers of the real classes, and
/// topics that come and go, through crashes, sessions that end, a store that is away or loses
/// answers, and cut links between everybody, all drawn from `seed`.
Report run_cluster_world(std::uint64_t seed);

}  // namespace mq::sim
