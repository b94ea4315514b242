#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace mq::base {

/// XXH3, 64 bits, seed 0: the hash of record keys, groups and the placement ring.
[[nodiscard]] std::uint64_t xxh3_64(Bytes bytes) noexcept;

}  // namespace mq::base
