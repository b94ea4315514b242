#pragma once

#include <cstdint>

#include "sim/report.h"

namespace mq::sim {

/// One broker, several producers and consumers of the real classes, a network and a disk, through
/// crashes of process and machine, cut and reset connections, full, slow and failing disks, a
/// failing metadata store, clock jumps, and topics that are deleted and made again, all drawn from
/// `seed`. Checks what clients were told against what is there.
Report run_broker_world(std::uint64_t seed);

}  // namespace mq::sim
