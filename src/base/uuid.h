#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace mq::base {

/// 128 random bits (RFC 4122 version 4). Raw bytes on the wire, 32 lower-case hex digits without
/// hyphens in names.
class Uuid {
 public:
  constexpr Uuid() = default;  ///< all zero: none
  constexpr explicit Uuid(std::array<std::byte, 16> bytes) noexcept : bytes_(bytes) {}

  /// From two random words; sets version and variant bits.
  static Uuid from_random(std::uint64_t high, std::uint64_t low) noexcept;
  /// Exactly 16 raw bytes, else nothing.
  static std::optional<Uuid> from_bytes(Bytes bytes) noexcept;
  /// Exactly 32 lower-case hex digits, else nothing.
  static std::optional<Uuid> from_hex(std::string_view text) noexcept;

  [[nodiscard]] std::string hex() const;
  [[nodiscard]] std::string raw() const;
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool is_zero() const noexcept { return *this == Uuid{}; }
  friend auto operator<=>(const Uuid&, const Uuid&) = default;

 private:
  std::array<std::byte, 16> bytes_{};
};

}  // namespace mq::base

template <>
struct std::hash<mq::base::Uuid> {
  std::size_t operator()(const mq::base::Uuid& id) const noexcept {
    return mq::base::load_le<std::uint64_t>(id.bytes().data()) ^
           mq::base::load_le<std::uint64_t>(id.bytes().data() + 8);
  }
};
