#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/broker_config.h"
#include "config/config_value.h"

namespace mq::config {

/// One key of broker.toml: how it is read, and how its value in force is shown.
struct ConfigKey {
  std::string name;       ///< "broker.id"
  bool required = false;  ///< has no built-in value
  /// Takes the value over, or says why not; nothing is changed then.
  std::function<std::optional<std::string>(BrokerConfig&, const ConfigValue&)> set;
  /// As it would stand in the file.
  std::function<std::string(const BrokerConfig&)> text;
};

/// "broker" of "broker.id"; "topic.defaults" of "topic.defaults.retention.age".
std::string_view section_of(std::string_view key);

/// What is wrong with a key or section that is not in the schema: that it belongs elsewhere, what
/// was probably meant, or that this release does not have it.
std::string explain_unknown_key(std::string_view key);
std::string explain_unknown_section(std::string_view section);

/// MQ_BROKER__ID is broker.id; nothing for variables that are not ours.
std::optional<std::string> key_of_variable(std::string_view variable);

}  // namespace mq::config
