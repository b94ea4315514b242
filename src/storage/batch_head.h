#pragma once

#include "base/bytes.h"
#include "model/ids.h"
#include "model/record_batch_format.h"

namespace mq::storage {

/// What a walk over batches needs of each, read without checks from bytes that were checked before.
struct BatchHead {
  std::uint32_t bytes = 0;
  model::Offset base;
  model::Offset end;  ///< exclusive
};

inline BatchHead head_at(const std::byte* batch) noexcept {
  namespace format = model::batch_format;
  const auto base = base::load_le<std::int64_t>(batch + format::kBaseOffset);
  const auto delta = base::load_le<std::uint32_t>(batch + format::kLastOffsetDelta);
  return {base::load_le<std::uint32_t>(batch + format::kBatchBytes), model::Offset(base),
          model::Offset(base + std::int64_t{delta} + 1)};
}

}  // namespace mq::storage
