#include "metadata/cluster_identity.h"

#include "base/log.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"

namespace mq::metadata {
namespace {

Result<ClusterIdentity> check(const Node& node) {
  MQ_TRY(const auto value, decode_cluster(node.value));
  if (value.layout_version != kLayoutVersion || value.feature_level > kFeatureLevel) {
    base::log_error("metadata",
                    "the cluster's metadata has layout {} and feature level {}; this release knows "
                    "layout {} and levels up to {}",
                    value.layout_version, value.feature_level, kLayoutVersion, kFeatureLevel);
    return make_error_code(MetadataErrc::unknown_format);
  }
  return ClusterIdentity{value.id, value.layout_version, value.feature_level};
}

}  // namespace

asio::awaitable<Result<ClusterIdentity>> load_cluster_identity(MetadataStore& store,
                                                               std::optional<base::Uuid> new_id) {
  const auto found = co_await store.get(std::string(layout::kCluster));
  if (found) co_return check(*found);
  if (found.error() != MetadataErrc::not_found || !new_id) co_return found.error();
  // The id itself is the writer tag: whoever reads it back knows whose write it was.
  const ClusterValue value{WriterTag{*new_id, 0}, *new_id, kLayoutVersion, kFeatureLevel};
  const auto made = co_await store.create(std::string(layout::kCluster), encode(value));
  // Made by us, by another broker at the same moment, or with an answer that was lost: read.
  if (!made && made.error() != MetadataErrc::already_exists &&
      made.error() != MetadataErrc::outcome_unknown)
    co_return made.error();
  const auto now = co_await store.get(std::string(layout::kCluster));
  if (!now) co_return now.error();
  co_return check(*now);
}

}  // namespace mq::metadata
