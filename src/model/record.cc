#include "model/record.h"

#include "base/hash.h"

namespace mq::model {

std::uint64_t tag_bits(base::Bytes tag) noexcept {
  const std::uint64_t hash = base::xxh3_64(tag);
  return (std::uint64_t{1} << (hash & 63)) | (std::uint64_t{1} << ((hash >> 8) & 63));
}

}  // namespace mq::model
