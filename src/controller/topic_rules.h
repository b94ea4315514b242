#pragma once

#include "controller/cluster_tree.h"
#include "controller/controller.h"

namespace mq::controller {

inline constexpr std::int32_t kPartitionsMax = 10'000;

/// Why a topic may not be made, or ok: name, partitions, replicas, min ISR, settings, in that
/// order. Nothing is read or written.
protocol::Status check_new_topic(const ControllerConfig& config, const protocol::NewTopic& topic);

/// A refusal when the topic's partitions and the `existing` ones are more than the broker can hold.
std::optional<protocol::Status> check_room(const ControllerConfig& config,
                                           const protocol::NewTopic& topic, std::size_t existing);

/// The tree of a topic that was checked: all partitions led by this broker, first leader epoch 0.
TopicTree plan_topic(const ControllerConfig& config, const protocol::NewTopic& topic, base::Uuid id,
                     model::BrokerEpoch broker_epoch);

}  // namespace mq::controller
