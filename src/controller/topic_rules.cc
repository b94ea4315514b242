#include "controller/topic_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace mq::controller {
namespace {

using protocol::Status;
using protocol::WireError;

constexpr std::size_t kTextMax = 1000;

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
  return fmt::format(
      "{} = {}: this release keeps one replica of a partition, so only 1 is possible", name, value);
}

Status check_settings(const ControllerConfig& config,
                      const std::map<std::string, std::string>& overrides) {
  auto settings = config.topic_defaults;
  std::string text;
  for (const auto& error : model::apply_topic_settings(settings, overrides)) {
    if (!text.empty()) text += "; ";
    text += error.message;
  }
  if (text.empty()) return {};
  return refused(config, WireError::invalid_config, text);
}

}  // namespace

std::int32_t partitions_of(const ControllerConfig& config, const protocol::NewTopic& topic) {
  return topic.partitions == -1 ? config.default_partitions : topic.partitions;
}

Status check_topic(const ControllerConfig& config, const protocol::NewTopic& topic) {
  if (const auto rule = model::check_topic_name(topic.name))
    return refused(config, WireError::invalid_topic_name,
                   fmt::format("topic \"{}\": {}", cut(topic.name), *rule));
  const auto partitions = partitions_of(config, topic);
  if (partitions < 1 || partitions > kPartitionsOfTopicMax)
    return refused(
        config, WireError::invalid_partitions,
        fmt::format("partitions = {}: choose 1 to {}", partitions, kPartitionsOfTopicMax));
  if (const auto rule = check_copies("replicas", topic.replicas))
    return refused(config, WireError::invalid_replicas, *rule);
  if (const auto rule = check_copies("min_isr", topic.min_isr))
    return refused(config, WireError::invalid_replicas, *rule);
  return check_settings(config, topic.settings);
}

AlteredSettings alter_settings(const ControllerConfig& config,
                               std::map<std::string, std::string> overrides,
                               const protocol::AlterTopic& change) {
  AlteredSettings altered;
  const auto& known = model::topic_setting_names();
  for (const auto& name : change.unset) {
    if (std::ranges::count(known, name) == 0) {
      altered.status = refused(config, WireError::invalid_config,
                               fmt::format("{}: there is no such setting", cut(name)));
      return altered;
    }
    overrides.erase(name);
  }
  for (const auto& [name, value] : change.set) overrides[name] = value;
  altered.status = check_settings(config, overrides);
  altered.overrides = std::move(overrides);
  return altered;
}

Status check_total(const ControllerConfig& config, std::string_view name, std::size_t existing,
                   std::int32_t total) {
  if (total > kPartitionsOfTopicMax)
    return refused(
        config, WireError::invalid_partitions,
        fmt::format("partitions = {}: a topic has at most {}", total, kPartitionsOfTopicMax));
  if (total < 1 || static_cast<std::size_t>(total) < existing)
    return refused(
        config, WireError::invalid_partitions,
        fmt::format("partitions = {}: topic \"{}\" has {} already, and none can be taken away",
                    total, name, existing));
  return {};
}

}  // namespace mq::controller
