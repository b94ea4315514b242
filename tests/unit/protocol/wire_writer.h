#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mq::protocol::testing {

/// Writes Protobuf fields by hand, right or wrong: what a peer of any make could send.
class WireWriter {
 public:
  WireWriter& number(std::uint32_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  /// sint fields.
  WireWriter& signed_number(std::uint32_t field, std::int64_t value) {
    return number(
        field, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  WireWriter& bytes(std::uint32_t field, std::string_view value) {
    length(field, value.size());
    out_ += value;
    return *this;
  }
  /// Claims `size` bytes and writes none.
  WireWriter& length(std::uint32_t field, std::uint64_t size) {
    varint(field << 3 | 2);
    varint(size);
    return *this;
  }
  WireWriter& tag(std::uint32_t field, std::uint32_t wire_type) {
    varint(field << 3 | wire_type);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

}  // namespace mq::protocol::testing
