#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace mq::model {

/// LEB128, shortest form, at most 10 bytes.
inline constexpr std::size_t kVarintBytesMax = 10;

[[nodiscard]] constexpr std::size_t uvarint_bytes(std::uint64_t value) noexcept {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

/// Maps small negative numbers to small positive ones: 0, -1, 1, -2, ...
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

/// Writes uvarint_bytes(value) bytes and returns the end.
inline std::byte* write_uvarint(std::byte* to, std::uint64_t value) noexcept {
  while (value >= 0x80) {
    *to++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<std::byte>(value);
  return to;
}

/// Reads one varint of several bytes; see read_uvarint().
[[nodiscard]] const std::byte* read_long_uvarint(const std::byte* from, const std::byte* end,
                                                 std::uint64_t& value) noexcept;

/// Reads one varint from [from, end) and returns what follows, or null when it is cut short, longer
/// than it need be, or above 64 bits.
[[nodiscard]] inline const std::byte* read_uvarint(const std::byte* from, const std::byte* end,
                                                   std::uint64_t& value) noexcept {
  if (from != end && static_cast<std::uint8_t>(*from) < 0x80) [[likely]] {
    value = static_cast<std::uint8_t>(*from);
    return from + 1;
  }
  return read_long_uvarint(from, end, value);
}

}  // namespace mq::model
