#pragma once

#include <cstdint>
#include <string>

#include "mq/admin.h"

namespace mq::mqctl {

/// What the partition loses when the broker stops; empty: it is read and written as before.
std::string why_not_without(const PartitionDescription& partition, std::int32_t broker);

}  // namespace mq::mqctl
