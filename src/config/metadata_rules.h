#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/broker_config.h"

namespace mq::config {

inline constexpr std::uint16_t kDefaultZooKeeperPort = 2181;

/// "local" (no servers) or "zookeeper://zk1:2181,zk2,[::1]:2183/mq". Servers without a port have
/// ZooKeeper's own; the path is where the cluster's nodes stand and may be left out.
struct MetadataPlace {
  std::optional<ZooKeeperConfig> zookeeper;
  std::string error;
};
MetadataPlace parse_metadata(std::string_view text);

}  // namespace mq::config
