#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"

namespace mq::fuzz {

/// Cuts the fuzzer's bytes into the numbers and the rest that a target wants.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  /// The next little-endian number; zero when the input is used up.
  template <class T>
  T number() {
    if (rest_.size() < sizeof(T)) return T{};
    const T value = base::load_le<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  [[nodiscard]] base::Bytes rest() const { return rest_; }

 private:
  base::Bytes rest_;
};

}  // namespace mq::fuzz
