#include "base/crc32c.h"

#include <isa-l/crc.h>

namespace mq::base {

std::uint32_t crc32c(Bytes bytes, std::uint32_t previous) noexcept {
  // ISA-L takes and gives the register before the final inversion, and an int as length.
  std::uint32_t state = ~previous;
  auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
  std::size_t left = bytes.size();
  while (left > 0) {
    const int step = left > (1u << 30) ? (1 << 30) : static_cast<int>(left);
    state = crc32_iscsi(data, step, state);
    data += step;
    left -= static_cast<std::size_t>(step);
  }
  return ~state;
}

}  // namespace mq::base
