#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/uuid.h"
#include "model/ids.h"

namespace mq::metadata::layout {

/// Paths of the nodes; README.md says what is in them.
inline constexpr std::string_view kCluster = "/cluster";
inline constexpr std::string_view kControl = "/ctl";
inline constexpr std::string_view kControllerLeader = "/ctl/leader";
inline constexpr std::string_view kControllerEpoch = "/ctl/epoch";
inline constexpr std::string_view kBrokersHeartbeat = "/brokers/hb";
inline constexpr std::string_view kBrokersLive = "/brokers/live";
inline constexpr std::string_view kBrokersEpoch = "/brokers/epoch";
inline constexpr std::string_view kTopics = "/topics";
inline constexpr std::string_view kState = "/state";
inline constexpr std::string_view kDeleting = "/deleting";
inline constexpr std::string_view kProducers = "/producers";
inline constexpr std::string_view kProducerIds = "/producers/ids";

/// Nodes without a value under which all others stand, parents first.
const std::vector<std::string>& folders();

std::string broker_live(model::BrokerId broker);
std::string broker_epoch(model::BrokerId broker);
std::string broker_heartbeat(model::BrokerId broker);
std::string topic(std::string_view name);
std::string topic_state(const base::Uuid& topic);
std::string partition_state(const model::PartitionId& partition);
std::string deleting(const base::Uuid& topic);

/// The broker that a child of kBrokersLive or kBrokersEpoch is named after.
std::optional<model::BrokerId> parse_broker(std::string_view node_name) noexcept;
/// The partition number that a child of topic_state() is named after.
std::optional<std::int32_t> parse_partition(std::string_view node_name) noexcept;

/// One part of a path for any text: bytes outside A-Z a-z 0-9 . _ - become %XX, and so do the dots
/// of "." and ".."; the empty text is "%". Different texts give different names; topic names stay
/// as they are.
std::string escape_name(std::string_view text);
/// The text again; nothing for a name that escape_name does not make.
std::optional<std::string> unescape_name(std::string_view name);

}  // namespace mq::metadata::layout
