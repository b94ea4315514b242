#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mq::protocol {

/// Well-formed UTF-8 (RFC 3629: shortest form, no surrogates, at most U+10FFFF).
[[nodiscard]] bool valid_utf8(std::string_view text) noexcept;
/// At most `bytes_max` bytes, not ending inside a character.
[[nodiscard]] std::string_view cut_utf8(std::string_view text, std::size_t bytes_max) noexcept;
/// Every byte that is not part of a well-formed character becomes '?'.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

}  // namespace mq::protocol
