#include "model/varint.h"

namespace mq::model {

const std::byte* read_long_uvarint(const std::byte* from, const std::byte* end,
                                   std::uint64_t& value) noexcept {
  std::uint64_t result = 0;
  for (unsigned shift = 0; from != end && shift < 70; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(*from++);
    if (shift == 63 && byte > 1) return nullptr;  // above 64 bits, or an eleventh byte
    result |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    if (byte == 0 && shift != 0) return nullptr;  // a shorter form exists
    value = result;
    return from;
  }
  return nullptr;
}

}  // namespace mq::model
