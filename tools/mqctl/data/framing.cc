#include "mqctl/data/framing.h"

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "base/strings.h"

namespace mq::mqctl {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

std::optional<std::size_t> Framer::paragraph_end() {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  // Blank lines at the very start belong to the first paragraph.
  std::size_t from = std::max(scanned_, rest.find_first_not_of('\n'));
  if (from == std::string_view::npos) return std::nullopt;
  const auto blank = rest.find("\n\n", from > 0 ? from - 1 : 0);
  if (blank == std::string_view::npos) {
    scanned_ = rest.size();
    return std::nullopt;
  }
  const auto next = rest.find_first_not_of('\n', blank);
  if (next != std::string_view::npos) return next;
  scanned_ = blank + 1;
  return std::nullopt;  // more blank lines may follow
}

std::optional<std::size_t> Framer::piece_end() {
  const std::size_t left = buffer_.size() - at_;
  if (framing_.mode == Framing::Mode::chunk)
    return left >= framing_.chunk_bytes ? std::optional(framing_.chunk_bytes) : std::nullopt;
  if (framing_.mode == Framing::Mode::paragraph) return paragraph_end();
  const std::string_view end =
      framing_.mode == Framing::Mode::line ? std::string_view("\n") : framing_.delimiter;
  const std::size_t back = std::min(scanned_, end.size() - 1);
  const auto found = buffer_.find(end, at_ + scanned_ - back);
  if (found == std::string::npos) {
    scanned_ = left;
    return std::nullopt;
  }
  return found + end.size() - at_;
}

Framer::Got Framer::take(std::size_t bytes) {
  std::size_t shown = bytes;
  if (framing_.mode == Framing::Mode::delimiter) {
    const std::string_view piece(buffer_.data() + at_, bytes);
    if (piece.ends_with(framing_.delimiter)) shown -= framing_.delimiter.size();
  }
  piece_ = std::string_view(buffer_).substr(at_, shown);
  piece_bytes_ = dropped_ + shown;
  at_ += bytes;
  scanned_ = 0;
  dropped_ = 0;
  return piece_bytes_ > framing_.piece_bytes_max ? Got::too_large : Got::piece;
}

/// Keeps the part that may still hold a delimiter's beginning.
void Framer::drop_overlong() {
  if (framing_.mode == Framing::Mode::chunk) return;
  const std::size_t left = buffer_.size() - at_;
  if (left <= framing_.piece_bytes_max) return;
  const std::size_t keep = framing_.delimiter.size() + 1;
  const std::size_t drop = left - keep;
  buffer_.erase(at_, drop);
  dropped_ += drop;
  scanned_ = 0;
}

bool Framer::fill() {
  buffer_.erase(0, at_);
  at_ = 0;
  drop_overlong();
  const std::size_t old = buffer_.size();
  buffer_.resize(old + kReadBytes);
  const auto got = input_.read({buffer_.data() + old, kReadBytes});
  buffer_.resize(old + static_cast<std::size_t>(std::max<std::ptrdiff_t>(got, 0)));
  if (got < 0) error_ = static_cast<int>(-got);
  if (got == 0) input_ended_ = true;
  return got > 0;
}

Framer::Got Framer::next() {
  error_ = 0;
  while (true) {
    if (const auto bytes = piece_end()) return take(*bytes);
    if (input_ended_) break;
    if (!fill() && error_ != 0) return error_ == EINTR ? Got::interrupted : Got::failed;
  }
  const std::size_t left = buffer_.size() - at_;
  return left == 0 && dropped_ == 0 ? Got::end : take(left);
}

bool Framer::has_buffered_piece() { return piece_end().has_value(); }

std::optional<std::string_view> field_of(std::string_view paragraph, std::string_view field) {
  for (const auto line : base::split(paragraph, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !same_letters(line.substr(0, colon), field)) continue;
    return base::trim(line.substr(colon + 1));
  }
  return std::nullopt;
}

}  // namespace mq::mqctl
