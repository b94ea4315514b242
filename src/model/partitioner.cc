#include "model/partitioner.h"

#include "base/check.h"
#include "base/hash.h"

namespace mq::model {

std::size_t key_slot(base::Bytes key, std::size_t count) noexcept {
  MQ_CHECK(count > 0, "no partition to choose from");
  return static_cast<std::size_t>(base::xxh3_64(key) % count);
}

}  // namespace mq::model
