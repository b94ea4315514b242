#pragma once

#include <cstdint>

#include "sim/report.h"

namespace mq::sim {

/// One to three brokers with one metadata store, producers and consumers of the real classes, and
/// topics that come and go, through crashes, sessions that end, a store that is away or loses
/// answers, and cut links between everybody, all drawn from `seed`.
Report run_cluster_world(std::uint64_t seed);

/// The same with three brokers and topics of which each keeps a copy: nothing that was acknowledged
/// by all is lost, and the copies are equal in the end.
Report run_replicated_world(std::uint64_t seed);

}  // namespace mq::sim
