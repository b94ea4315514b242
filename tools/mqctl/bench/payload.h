#pragma once

#include <cstddef>
#include <vector>

#include "mq/record.h"

namespace mq::mqctl {

/// Values that do not compress: windows into one block of random bytes, made once, so that making
/// them costs a benchmark nothing.
class Payload {
 public:
  explicit Payload(std::size_t record_bytes);
  [[nodiscard]] Bytes next() noexcept;

 private:
  std::vector<std::byte> block_;
  std::size_t record_bytes_;
  std::size_t at_ = 0;
};

}  // namespace mq::mqctl
