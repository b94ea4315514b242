#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace mq::model {

/// Which of `count` slots a key belongs to: XXH3-64(key, seed 0) mod count, unsigned. An empty key
/// is a key. `count` is not 0.
[[nodiscard]] std::size_t key_slot(base::Bytes key, std::size_t count) noexcept;

/// The partition of a key among the active ones, given in ascending order and not empty. The same
/// in every client and version: tests/unit/model/partitioner_vectors.txt.
[[nodiscard]] inline std::int32_t partition_for_key(base::Bytes key,
                                                    std::span<const std::int32_t> active) noexcept {
  return active[key_slot(key, active.size())];
}

}  // namespace mq::model
