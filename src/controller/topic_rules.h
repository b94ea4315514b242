#pragma once

#include <optional>
#include <span>

#include "controller/cluster_tree.h"
#include "controller/controller.h"

namespace mq::controller {

inline constexpr std::int32_t kPartitionsOfTopicMax = 10'000;

/// Why a topic may not be made, or ok: name, partitions, replicas, min ISR, settings, in that
/// order. Nothing is read or written.
protocol::Status check_topic(const ControllerConfig& config, const protocol::NewTopic& topic);
[[nodiscard]] std::int32_t partitions_of(const ControllerConfig& config,
                                         const protocol::NewTopic& topic);

/// The topic's settings after the change, or why not: an unknown name, a value that is not allowed.
struct AlteredSettings {
  protocol::Status status;
  std::map<std::string, std::string> overrides;
};
AlteredSettings alter_settings(const ControllerConfig& config,
                               std::map<std::string, std::string> overrides,
                               const protocol::AlterTopic& change);

/// A total that a topic with `existing` partitions may be given.
protocol::Status check_total(const ControllerConfig& config, std::string_view name,
                             std::size_t existing, std::int32_t total);

}  // namespace mq::controller
