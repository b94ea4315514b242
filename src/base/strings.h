#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mq::base {

/// The candidate nearest to `word` by edit distance, if one is near enough to be what was meant
/// ("did you mean").
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// Splits at every `separator`; an empty text gives one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Without blanks and tabs at both ends.
std::string_view trim(std::string_view text) noexcept;

/// A whole decimal number without sign, blanks or leading text; nothing on overflow.
std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept;
std::optional<std::int64_t> parse_signed(std::string_view text) noexcept;

}  // namespace mq::base
