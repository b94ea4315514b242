#include "controller/topic_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace mq::controller {
namespace {

using protocol::Status;
using protocol::WireError;

constexpr std::size_t kTextMax = 1000;
constexpr std::size_t kDefaultReplicas = 3;
const std::string kMinIsr = "min_isr";

/// Texts quote what the client sent; nothing of it may look like more than text.
Status refused(const ControllerConfig& config, WireError error, std::string_view text) {
  return Status::of(error, base::printable(text, kTextMax), config.broker.value());
}

/// Whole as long as it could be a name, so that the sentence about it is not cut off.
std::string cut(std::string_view name) {
  constexpr std::size_t kShown = 260;
  return std::string(name.substr(0, kShown)) + (name.size() > kShown ? "..." : "");
}

std::optional<std::string> check_number(const ControllerConfig& config, std::string_view name,
                                        std::int32_t value) {
  if (value == -1) return std::nullopt;
  if (config.replicas_max == 1 && value > 1)
    return fmt::format(
        "{} = {}: this release keeps one replica of a partition, so only 1 is possible", name,
        value);
  if (value >= 1 && value <= config.replicas_max) return std::nullopt;
  return fmt::format("{} = {}: choose 1 to {}", name, value, config.replicas_max);
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
  if (const auto rule = check_number(config, "replicas", topic.replicas))
    return refused(config, WireError::invalid_replicas, *rule);
  if (const auto rule = check_number(config, "min_isr", topic.min_isr))
    return refused(config, WireError::invalid_replicas, *rule);
  return check_settings(config, topic.settings);
}

std::size_t copies_of(const ControllerConfig& config, const protocol::NewTopic& topic,
                      std::size_t brokers) {
  if (topic.replicas != -1) return static_cast<std::size_t>(topic.replicas);
  if (config.default_replicas != 0) return static_cast<std::size_t>(config.default_replicas);
  const auto most = std::min<std::size_t>(kDefaultReplicas, brokers);
  return std::clamp<std::size_t>(most, 1, static_cast<std::size_t>(config.replicas_max));
}

std::map<std::string, std::string> overrides_of(const ControllerConfig& config,
                                                const protocol::NewTopic& topic) {
  auto overrides = topic.settings;
  if (topic.min_isr != -1)
    overrides[kMinIsr] = std::to_string(topic.min_isr);
  else if (config.default_min_isr != 0)
    overrides.emplace(kMinIsr, std::to_string(config.default_min_isr));
  return overrides;
}

Status check_copies(const ControllerConfig& config, std::size_t copies,
                    const std::map<std::string, std::string>& overrides) {
  const auto wanted = min_isr_of(overrides);
  if (wanted <= copies) return {};
  return refused(config, WireError::invalid_replicas,
                 fmt::format("min_isr = {}: a partition has {} replica{}", wanted, copies,
                             copies == 1 ? "" : "s"));
}

Status check_copies_live(const ControllerConfig& config, std::size_t copies, std::uint32_t min_isr,
                         const std::vector<metadata::BrokerInfo>& brokers) {
  std::vector<model::BrokerId> away;
  for (const auto& broker : brokers) {
    if (!broker.alive) away.push_back(broker.id);
  }
  const auto live = brokers.size() - away.size();
  const auto count = [](std::size_t number) {
    return fmt::format("{} broker{}", number, number == 1 ? "" : "s");
  };
  if (copies > brokers.size())
    return refused(config, WireError::invalid_replicas,
                   fmt::format("replicas = {}: the cluster has {}; choose --replicas {}, or start "
                               "another broker first",
                               copies, count(brokers.size()), brokers.size()));
  if (live >= min_isr) return {};
  return refused(config, WireError::invalid_replicas,
                 fmt::format("replicas = {}: min_isr = {} wants as many brokers, and {} alive; "
                             "broker{} {} {} away: start {}, or choose --replicas {}",
                             copies, min_isr, count(live) + (live == 1 ? " is" : " are"),
                             away.size() == 1 ? "" : "s", fmt::join(away, ", "),
                             away.size() == 1 ? "is" : "are", away.size() == 1 ? "it" : "one",
                             std::max<std::size_t>(live, 1)));
}

std::uint32_t min_isr_of(const std::map<std::string, std::string>& overrides) {
  const auto found = overrides.find(kMinIsr);
  if (found == overrides.end()) return 0;
  model::TopicSettings settings;
  if (model::set_topic_setting(settings, kMinIsr, found->second)) return 0;
  return settings.min_isr;
}

std::uint32_t min_isr_of(std::uint32_t wanted, std::size_t replicas) {
  const auto most = static_cast<std::uint32_t>(replicas);
  if (wanted != 0) return std::min(wanted, most);
  return most >= 3 ? 2 : 1;
}

AlteredSettings alter_settings(const ControllerConfig& config,
                               std::map<std::string, std::string> overrides,
                               const protocol::AlterTopic& change, std::size_t replicas) {
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
  if (altered.status.ok() && change.set.contains(kMinIsr))
    altered.status = check_copies(config, replicas, overrides);
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
