#include "base/uuid.h"

#include <cstring>

namespace mq::base {
namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Uuid Uuid::from_random(std::uint64_t high, std::uint64_t low) noexcept {
  std::array<std::byte, 16> bytes;
  store_le(bytes.data(), high);
  store_le(bytes.data() + 8, low);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  return Uuid(bytes);
}

std::optional<Uuid> Uuid::from_bytes(Bytes bytes) noexcept {
  if (bytes.size() != 16) return std::nullopt;
  std::array<std::byte, 16> copy;
  std::memcpy(copy.data(), bytes.data(), 16);
  return Uuid(copy);
}

std::optional<Uuid> Uuid::from_hex(std::string_view text) noexcept {
  if (text.size() != 32) return std::nullopt;
  std::array<std::byte, 16> bytes;
  for (std::size_t i = 0; i < 16; ++i) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return Uuid(bytes);
}

std::string Uuid::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (const std::byte b : bytes_) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

std::string Uuid::raw() const { return std::string(as_text(bytes_)); }

}  // namespace mq::base
