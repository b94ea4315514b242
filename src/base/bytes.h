#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace mq::base {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

static_assert(std::endian::native == std::endian::little,
              "mq's formats are little-endian and read by memcpy");

/// Reads or writes one little-endian integer at any alignment. The caller has checked that the
/// bytes are there.
template <std::integral T>
[[nodiscard]] inline T load_le(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <std::integral T>
inline void store_le(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

[[nodiscard]] inline Bytes as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view as_text(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace mq::base
