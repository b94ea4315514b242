#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "client/core/client_core.h"
#include "protocol/list_offsets.h"

namespace mq::client {

/// Asks the leaders of partitions for their start and end offsets and for those at a time, and
/// again where the answer is "try again". On the client's runtime.
class OffsetLookup {
 public:
  struct Key {
    model::PartitionId partition;
    protocol::OffsetPoint point = protocol::OffsetPoint::earliest;
    std::int64_t time_ms = 0;  ///< of at_time; below 0 is as 0
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Found {
    std::int64_t offset = 0;
    std::int64_t append_time_ms = -1;  ///< at_time: of that record; -1: there is none
  };
  using Offsets = std::map<Key, Found>;

  explicit OffsetLookup(ClientCore& core) : core_(core) {}

  /// An offset for every key, or the first error that time does not mend.
  asio::awaitable<Result<Offsets>> find(std::vector<Key> keys, base::TimePoint deadline);

 private:
  using ByLeader = std::map<std::int32_t, std::vector<Key>>;
  asio::awaitable<std::optional<Error>> ask_all(ByLeader by_leader, base::TimePoint deadline,
                                                Offsets* found);
  asio::awaitable<Result<void>> ask(std::int32_t broker, std::vector<Key> keys,
                                    base::TimePoint deadline, Offsets* found);

  ClientCore& core_;
};

}  // namespace mq::client
