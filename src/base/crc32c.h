#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace mq::base {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4): "123456789" gives 0xE3069283. `previous` is the CRC
/// of the bytes before, for a sum over several pieces.
[[nodiscard]] std::uint32_t crc32c(Bytes bytes, std::uint32_t previous = 0) noexcept;

}  // namespace mq::base
