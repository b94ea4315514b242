#pragma once

#include "base/bytes.h"
#include "model/ids.h"
#include "model/record_batch_format.h"

namespace mq::replication {

/// Of a whole batch as a log has it, whose header was checked before.
inline model::Offset base_offset_of(base::Bytes batch) noexcept {
  return model::Offset(
      base::load_le<std::int64_t>(batch.data() + model::batch_format::kBaseOffset));
}

}  // namespace mq::replication
