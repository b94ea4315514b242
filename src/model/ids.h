#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>

#include "base/uuid.h"
#include "model/strong_int.h"

namespace mq::model {

/// Position of a record in its partition.
using Offset = StrongInt<struct OffsetTag, std::int64_t>;
/// Rises with every start of a partition's leader.
using LeaderEpoch = StrongInt<struct LeaderEpochTag, std::int32_t>;
/// Rises with every registration of a broker.
using BrokerEpoch = StrongInt<struct BrokerEpochTag, std::int64_t>;
/// Version of a partition's state node.
using PartitionVersion = StrongInt<struct PartitionVersionTag, std::int32_t>;
using BrokerId = StrongInt<struct BrokerIdTag, std::int32_t>;

static_assert(!std::is_convertible_v<LeaderEpoch, Offset>);

/// How the data path names a partition: never by topic name.
struct PartitionId {
  base::Uuid topic;
  std::int32_t partition = -1;

  /// "<32 hex digits>-<partition>", the name of its directory.
  [[nodiscard]] std::string text() const { return topic.hex() + "-" + std::to_string(partition); }
  friend auto operator<=>(const PartitionId&, const PartitionId&) = default;
};

/// Offset + n, the only arithmetic that offsets need.
[[nodiscard]] constexpr Offset advance(Offset offset, std::int64_t by) noexcept {
  return Offset(offset.value() + by);
}

}  // namespace mq::model

template <>
struct std::hash<mq::model::PartitionId> {
  std::size_t operator()(const mq::model::PartitionId& id) const noexcept {
    return std::hash<mq::base::Uuid>{}(id.topic) * 31 + static_cast<std::size_t>(id.partition);
  }
};
template <class Tag, class Rep>
struct std::hash<mq::model::StrongInt<Tag, Rep>> {
  std::size_t operator()(mq::model::StrongInt<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
template <class Tag, class Rep>
struct fmt::formatter<mq::model::StrongInt<Tag, Rep>> : fmt::formatter<Rep> {
  template <class Context>
  auto format(mq::model::StrongInt<Tag, Rep> id, Context& context) const {
    return fmt::formatter<Rep>::format(id.value(), context);
  }
};
