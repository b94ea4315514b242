#pragma once

#include <cstdint>
#include <optional>

#include "base/uuid.h"
#include "metadata/store.h"

namespace mq::metadata {

/// Layout of the node tree that this release reads and writes, and the features it may use.
inline constexpr std::uint32_t kLayoutVersion = 1;
inline constexpr std::uint32_t kFeatureLevel = 1;

/// The value of /cluster.
struct ClusterIdentity {
  base::Uuid id;
  std::uint32_t layout_version = kLayoutVersion;
  std::uint32_t feature_level = kFeatureLevel;
};

/// Reads /cluster. When it is not there and `new_id` is given (the broker has no data yet), it is
/// made with that id; without one the error is not_found: a broker with data never invents a
/// cluster for it. unknown_format when a newer release has changed the layout or raised the feature
/// level.
asio::awaitable<Result<ClusterIdentity>> load_cluster_identity(MetadataStore& store,
                                                               std::optional<base::Uuid> new_id);

}  // namespace mq::metadata
