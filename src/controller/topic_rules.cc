#include "controller/topic_rules.h"

#include <fmt/format.h>

#include "base/log.h"

namespace mq::controller {
namespace {

using protocol::Status;
using protocol::WireError;

constexpr std::size_t kTextMax = 1000;

std::int32_t partitions_of(const ControllerConfig& config, const protocol::NewTopic& topic) {
  return topic.partitions == -1 ? config.default_partitions : topic.partitions;
}

/// Texts quote what the client sent; nothing of it may look like more than text.
Status refused(const ControllerConfig& config, WireError error, std::string_view text) {
  return Status::of(error, base::printable(text, kTextMax), config.broker.value());
}

/// Whole as long as it could be a name, so that the sentence about it is not cut off.
std::string cut(std::string_view name) {
  constexpr std::size_t kShown = 260;
  return std::string(name.substr(0, kShown)) + (name.size() > kShown ? "..." : "");
}

std::optional<std::string> check_copies(std::string_view name, std::int32_t value) {
  if (value == -1 || value == 1) return std::nullopt;
  if (value < 1) return fmt::format("{} = {}: must be 1", name, value);
  return fmt::format("{} = {}: a standalone broker keeps one replica, so only 1 is possible", name,
                     value);
}

}  // namespace

Status check_new_topic(const ControllerConfig& config, const protocol::NewTopic& topic) {
  if (const auto rule = model::check_topic_name(topic.name))
    return refused(config, WireError::invalid_topic_name,
                   fmt::format("topic \"{}\": {}", cut(topic.name), *rule));
  const auto partitions = partitions_of(config, topic);
  if (partitions < 1 || partitions > kPartitionsMax)
    return refused(config, WireError::invalid_partitions,
                   fmt::format("partitions = {}: choose 1 to {}", partitions, kPartitionsMax));
  if (const auto rule = check_copies("replicas", topic.replicas))
    return refused(config, WireError::invalid_replicas, *rule);
  if (const auto rule = check_copies("min_isr", topic.min_isr))
    return refused(config, WireError::invalid_replicas, *rule);
  auto settings = config.topic_defaults;
  std::string text;
  for (const auto& error : model::apply_topic_settings(settings, topic.settings)) {
    if (!text.empty()) text += "; ";
    text += error.message;
  }
  if (!text.empty()) return refused(config, WireError::invalid_config, text);
  return {};
}

std::optional<Status> check_room(const ControllerConfig& config, const protocol::NewTopic& topic,
                                 std::size_t existing) {
  const auto wanted = static_cast<std::size_t>(partitions_of(config, topic));
  if (existing + wanted <= config.partitions_max) return std::nullopt;
  return refused(
      config, WireError::invalid_request,
      fmt::format("partitions = {}: there are {} already, and the broker's limit of open "
                  "files allows {} in all",
                  wanted, existing, config.partitions_max));
}

TopicTree plan_topic(const ControllerConfig& config, const protocol::NewTopic& topic, base::Uuid id,
                     model::BrokerEpoch broker_epoch) {
  TopicTree tree;
  tree.value.id = id;
  tree.value.name = topic.name;
  tree.value.overrides = topic.settings;
  tree.value.next_partition = partitions_of(config, topic);
  for (std::int32_t number = 0; number < tree.value.next_partition; ++number) {
    tree.value.partitions.push_back({number, {config.broker}});
    metadata::PartitionStateValue state;
    state.leader = config.broker;
    state.leader_epoch = model::LeaderEpoch(0);
    state.isr = {{config.broker, broker_epoch}};
    tree.partitions.push_back({{id, number}, std::move(state), -1});
  }
  return tree;
}

}  // namespace mq::controller
