#include "protocol/utf8.h"

#include <algorithm>
#include <cstdint>

namespace mq::protocol {
namespace {

struct Lead {
  std::size_t bytes;  // of the whole character; 0: no character starts so
  std::uint8_t second_min;
  std::uint8_t second_max;
};

/// The table of RFC 3629 section 4.
Lead lead_of(std::uint8_t first) noexcept {
  if (first < 0x80) return {1, 0, 0};
  if (first < 0xc2) return {0, 0, 0};
  if (first < 0xe0) return {2, 0x80, 0xbf};
  if (first == 0xe0) return {3, 0xa0, 0xbf};
  if (first == 0xed) return {3, 0x80, 0x9f};
  if (first < 0xf0) return {3, 0x80, 0xbf};
  if (first == 0xf0) return {4, 0x90, 0xbf};
  if (first < 0xf4) return {4, 0x80, 0xbf};
  if (first == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

/// Length of the character at the start of `text`, or 0.
std::size_t character_bytes(std::string_view text) noexcept {
  const Lead lead = lead_of(static_cast<std::uint8_t>(text[0]));
  if (lead.bytes == 0 || lead.bytes > text.size()) return 0;
  if (lead.bytes == 1) return 1;
  const auto second = static_cast<std::uint8_t>(text[1]);
  if (second < lead.second_min || second > lead.second_max) return 0;
  for (std::size_t i = 2; i < lead.bytes; ++i) {
    if ((static_cast<std::uint8_t>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return lead.bytes;
}

}  // namespace

bool valid_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string_view cut_utf8(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  const std::size_t lowest = end - std::min<std::size_t>(end, 3);
  while (end > lowest && (static_cast<std::uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    result += bytes == 0 ? std::string_view("?") : text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

}  // namespace mq::protocol
