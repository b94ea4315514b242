#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "client/core/client_core.h"
#include "protocol/list_offsets.h"

namespace mq::client {

/// Asks the leaders of partitions for their start and end offsets, and again where the answer is
/// "try again". On the client's runtime.
class OffsetLookup {
 public:
  using Key = std::pair<model::PartitionId, protocol::OffsetPoint>;
  using Offsets = std::map<Key, std::int64_t>;

  explicit OffsetLookup(ClientCore& core) : core_(core) {}

  /// An offset for every key, or the first error that time does not mend.
  asio::awaitable<Result<Offsets>> find(std::vector<Key> keys, base::TimePoint deadline);

 private:
  asio::awaitable<Result<void>> ask(std::int32_t broker, std::vector<Key> keys,
                                    base::TimePoint deadline, Offsets* found);

  ClientCore& core_;
};

}  // namespace mq::client
