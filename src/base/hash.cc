#include "base/hash.h"

#include <xxhash.h>

namespace mq::base {

std::uint64_t xxh3_64(Bytes bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace mq::base
