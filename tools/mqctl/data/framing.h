#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mqctl/cli/console.h"

namespace mq::mqctl {

/// How a byte stream is cut into records.
struct Framing {
  enum class Mode {
    delimiter,  ///< the delimiter ends a record and is not part of it
    line,       ///< a newline ends a record and is its last byte
    paragraph,  ///< blank lines end a record and are its last bytes
    chunk,      ///< every chunk_bytes
  };
  Mode mode = Mode::delimiter;
  std::string delimiter = "\n";
  std::size_t chunk_bytes = std::size_t{64} << 10;
  /// A longer piece is dropped up to its end and reported as too large, so that a file without
  /// delimiters does not fill the memory.
  std::size_t piece_bytes_max = std::size_t{64} << 20;
};

/// Cuts one input into pieces. In all modes but `delimiter` the pieces joined are the input, byte
/// for byte. The last piece needs no delimiter; nothing after the last delimiter is no piece.
class Framer {
 public:
  enum class Got { piece, too_large, end, failed, interrupted };

  Framer(Input& input, Framing framing) : input_(input), framing_(std::move(framing)) {}
  /// The next piece is in piece(), valid until the next call. After too_large, piece_bytes() is its
  /// size and piece() its beginning.
  Got next();
  [[nodiscard]] std::string_view piece() const noexcept { return piece_; }
  [[nodiscard]] std::uint64_t piece_bytes() const noexcept { return piece_bytes_; }
  /// The errno of a failed read.
  [[nodiscard]] int error() const noexcept { return error_; }
  /// Whether next() can answer without reading, which may block.
  [[nodiscard]] bool has_buffered_piece();

 private:
  /// Bytes of buffer_ (from at_) that make the next piece, none when more must be read.
  [[nodiscard]] std::optional<std::size_t> piece_end();
  [[nodiscard]] std::optional<std::size_t> paragraph_end();
  Got take(std::size_t bytes);
  bool fill();
  void drop_overlong();

  Input& input_;
  Framing framing_;
  std::string buffer_;
  std::size_t at_ = 0;       // where the next piece starts
  std::size_t scanned_ = 0;  // bytes from at_ that hold no end
  std::uint64_t dropped_ = 0;
  bool input_ended_ = false;
  int error_ = 0;
  std::string_view piece_;
  std::uint64_t piece_bytes_ = 0;
};

/// The value of "Field: value" in the first line that starts so, without blanks around it. Names
/// compare without case.
std::optional<std::string_view> field_of(std::string_view paragraph, std::string_view field);

}  // namespace mq::mqctl
