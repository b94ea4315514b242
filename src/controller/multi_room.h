#pragma once

#include <cstddef>
#include <string>

#include "metadata/store.h"

namespace mq::controller {

/// What one multi may still take: half of what the store allows, so that the fence and what the
/// store adds to each operation have room.
class MultiRoom {
 public:
  static constexpr std::size_t kOperationsMax = 2000;

  /// False when it is full; then nothing is taken.
  bool take(const std::string& path, const std::string& value) noexcept {
    const std::size_t bytes = path.size() + value.size();
    const bool full = operations_ == kOperationsMax || bytes_ + bytes > kBytesMax;
    if (full && operations_ > 0) return false;
    ++operations_;
    bytes_ += bytes;
    return true;
  }

 private:
  static constexpr std::size_t kBytesMax = metadata::kMultiBytesMax / 2;

  std::size_t operations_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace mq::controller
