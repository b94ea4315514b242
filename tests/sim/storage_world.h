#pragma once

#include <cstdint>

#include "sim/report.h"

namespace mq::sim {

/// One data directory with a few partitions through crashes of process and machine, full disks,
/// failing syncs, clock jumps and clean restarts, all drawn from `seed`. Every answer is held
/// against a model of what was appended.
Report run_storage_world(std::uint64_t seed);

}  // namespace mq::sim
