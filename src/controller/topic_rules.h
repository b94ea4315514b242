#pragma once

#include <optional>
#include <span>

#include "controller/cluster_tree.h"
#include "controller/controller.h"

namespace mq::controller {

inline constexpr std::int32_t kPartitionsOfTopicMax = 10'000;

/// Why a topic may not be made, or ok: name, partitions, replicas, min ISR, settings, in that
/// order. What depends on the brokers that there are comes later. Nothing is read or written.
protocol::Status check_topic(const ControllerConfig& config, const protocol::NewTopic& topic);
[[nodiscard]] std::int32_t partitions_of(const ControllerConfig& config,
                                         const protocol::NewTopic& topic);

/// The replicas that each partition gets, in a cluster of so many brokers.
[[nodiscard]] std::size_t copies_of(const ControllerConfig& config, const protocol::NewTopic& topic,
                                    std::size_t brokers);
/// What the topic node says: the settings that the topic was given, min_isr among them.
[[nodiscard]] std::map<std::string, std::string> overrides_of(const ControllerConfig& config,
                                                              const protocol::NewTopic& topic);
/// Whether a topic with these settings can have so many replicas.
protocol::Status check_copies(const ControllerConfig& config, std::size_t copies,
                              const std::map<std::string, std::string>& overrides);
/// Whether there are brokers for new partitions: as many as copies, and enough of them alive for
/// min_isr. The others' copies follow when they are back. The refusal says what to do.
protocol::Status check_copies_live(const ControllerConfig& config, std::size_t copies,
                                   std::uint32_t min_isr,
                                   const std::vector<metadata::BrokerInfo>& brokers);

/// What a topic says itself; 0: nothing.
[[nodiscard]] std::uint32_t min_isr_of(const std::map<std::string, std::string>& overrides);
/// What is in force then with so many replicas.
[[nodiscard]] std::uint32_t min_isr_of(std::uint32_t wanted, std::size_t replicas);

/// The topic's settings after the change, or why not: an unknown name, a value that is not allowed.
struct AlteredSettings {
  protocol::Status status;
  std::map<std::string, std::string> overrides;
};
AlteredSettings alter_settings(const ControllerConfig& config,
                               std::map<std::string, std::string> overrides,
                               const protocol::AlterTopic& change, std::size_t replicas);

/// A total that a topic with `existing` partitions may be given.
protocol::Status check_total(const ControllerConfig& config, std::string_view name,
                             std::size_t existing, std::int32_t total);

}  // namespace mq::controller
