#include "config/broker_schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "config/listener_rules.h"
#include "config/metadata_rules.h"

namespace mq::config {
namespace {

using std::chrono::milliseconds;
using Refusal = std::optional<std::string>;

constexpr std::int64_t kIdMax = 2'147'483'647;
constexpr std::int64_t kWorkersMax = 256;
constexpr std::int64_t kConnectionsMax = 1'000'000;
constexpr std::int64_t kPartitionsMax = 10'000;
constexpr std::int64_t kReplicasMax = 7;
constexpr std::uint64_t kMemoryMin = std::uint64_t{32} << 20;  // room for the largest frame
constexpr std::uint64_t kMemoryMax = std::uint64_t{1} << 40;
constexpr milliseconds kTimeoutMin{100};
constexpr milliseconds kTimeoutMax{std::chrono::hours(24)};

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

Refusal set_id(BrokerConfig& config, const ConfigValue& value) {
  const auto id = read_integer(value, 0, kIdMax);
  if (!id.value) return id.refusal;
  config.id = model::BrokerId(static_cast<std::int32_t>(*id.value));
  return std::nullopt;
}

Refusal set_metadata(BrokerConfig& config, const ConfigValue& value) {
  const auto text = read_string(value, "\"local\" or \"zookeeper://…\"");
  if (!text.value) return text.refusal;
  auto place = parse_metadata(*text.value);
  if (!place.zookeeper) return place.error;
  config.metadata = *text.value;
  config.zookeeper = *std::move(place.zookeeper);
  return std::nullopt;
}

Refusal set_workers(BrokerConfig& config, const ConfigValue& value) {
  if (value.text == "auto" && value.type != ConfigValue::Type::other) {
    config.workers = 0;
    return std::nullopt;
  }
  const auto workers = read_integer(value, 1, kWorkersMax);
  if (!workers.value) return workers.refusal + " (or \"auto\": by the number of cores)";
  config.workers = static_cast<std::uint32_t>(*workers.value);
  return std::nullopt;
}

Refusal add_path(std::vector<std::string>& paths, const ConfigValue& value,
                 std::string_view example) {
  const auto path = read_string(value, "a path");
  if (!path.value) return path.refusal;
  const bool control = std::ranges::any_of(
      *path.value, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!path.value->starts_with('/') || control)
    return fmt::format("expected an absolute path, such as \"{}\", got {}", example, value.shown());
  std::string trimmed = *path.value;
  while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.pop_back();
  paths.push_back(std::move(trimmed));
  return std::nullopt;
}

Refusal add_disk(BrokerConfig& config, const ConfigValue& value) {
  return add_path(config.disks, value, "/var/lib/mq");
}

Refusal add_journal(BrokerConfig& config, const ConfigValue& value) {
  if (value.type != ConfigValue::Type::other && value.text.empty()) {
    config.journals.emplace_back();
    return std::nullopt;
  }
  return add_path(config.journals, value, "/ssd/mq-journal");
}

Refusal set_dirty_max(BrokerConfig& config, const ConfigValue& value) {
  // Room for a few strides and the largest batches.
  const auto bytes = read_bytes(value, std::uint64_t{64} << 20, std::uint64_t{1} << 40);
  if (!bytes.value) return bytes.refusal;
  config.dirty_bytes_max = *bytes.value;
  return std::nullopt;
}

/// "5MiB/s", or 0 for none.
ConfigKey rate(std::string name, std::uint64_t BrokerConfig::*member) {
  const auto set = [member](BrokerConfig& config, const ConfigValue& value) -> Refusal {
    constexpr std::uint64_t kMin = std::uint64_t{64} << 10;
    constexpr std::uint64_t kMax = std::uint64_t{1} << 40;
    const bool text = value.type != ConfigValue::Type::other;
    if (text && value.text == "0") {
      config.*member = 0;
      return std::nullopt;
    }
    const auto size = std::string_view(value.text)
                          .substr(0, value.text.ends_with("/s") ? value.text.size() - 2 : 0);
    const auto bytes = text ? base::parse_bytes(size) : std::nullopt;
    if (!bytes || *bytes < kMin || *bytes > kMax) {
      return fmt::format("expected a rate such as \"5MiB/s\", at least \"64KiB/s\", or 0, got {}",
                         value.shown());
    }
    config.*member = *bytes;
    return std::nullopt;
  };
  return {std::move(name), false, set, [member](const BrokerConfig& config) -> std::string {
            if (config.*member == 0) return "0";
            return quoted(base::format_bytes_exact(config.*member) + "/s");
          }};
}

Refusal set_rack(BrokerConfig& config, const ConfigValue& value) {
  constexpr std::size_t kBytesMax = 128;
  const auto text = read_string(value, "a name");
  if (!text.value) return text.refusal;
  const bool plain = std::ranges::all_of(*text.value, [](char c) { return c > ' ' && c < 127; });
  if (text.value->size() > kBytesMax || !plain) {
    return fmt::format("expected a name of up to {} letters, digits and signs, got {}", kBytesMax,
                       value.shown());
  }
  config.rack = *text.value;
  return std::nullopt;
}

Refusal set_balance_after(BrokerConfig& config, const ConfigValue& value) {
  if (value.text == "never" && value.type != ConfigValue::Type::other) {
    config.leader_balance_after = milliseconds(0);
    return std::nullopt;
  }
  const auto after = read_duration(value, std::chrono::seconds(1), kTimeoutMax);
  if (!after.value) return after.refusal + " (or \"never\")";
  config.leader_balance_after = *after.value;
  return std::nullopt;
}

std::string balance_after_text(const BrokerConfig& config) {
  const auto after = config.leader_balance_after;
  return quoted(after == milliseconds(0) ? "never" : base::format_duration_exact(after));
}

Refusal set_balance_limit(BrokerConfig& config, const ConfigValue& value) {
  const auto percent = read_integer(value, 0, 100);
  if (!percent.value) return percent.refusal;
  config.leader_balance_limit = static_cast<std::uint32_t>(*percent.value);
  return std::nullopt;
}

Refusal set_bind(BrokerConfig& config, const ConfigValue& value) {
  const auto text = read_string(value, "an address");
  if (!text.value) return text.refusal;
  auto bind = parse_bind(*text.value);
  if (!bind.endpoint) return bind.error;
  config.listener.bind = std::move(*bind.endpoint);
  return std::nullopt;
}

Refusal set_advertised(BrokerConfig& config, const ConfigValue& value) {
  const auto text = read_string(value, "an address");
  if (!text.value) return text.refusal;
  auto advertised = parse_advertised(*text.value, config.listener.bind.port);
  if (!advertised.endpoint) return advertised.error;
  config.listener.advertised = std::move(*advertised.endpoint);
  return std::nullopt;
}

Refusal set_partitions(BrokerConfig& config, const ConfigValue& value) {
  const auto partitions = read_integer(value, 1, kPartitionsMax);
  if (!partitions.value) return partitions.refusal;
  config.default_partitions = static_cast<std::int32_t>(*partitions.value);
  return std::nullopt;
}

/// Replicas and min ISR: 0 stands for "auto".
template <class Number>
Refusal set_copies(Number& to, const ConfigValue& value) {
  if (value.text == "auto" && value.type != ConfigValue::Type::other) {
    to = 0;
    return std::nullopt;
  }
  const auto copies = read_integer(value, 1, kReplicasMax);
  if (!copies.value) return copies.refusal + " (or \"auto\")";
  to = static_cast<Number>(*copies.value);
  return std::nullopt;
}
template <class Number>
std::string copies_text(Number copies) {
  return copies == 0 ? quoted("auto") : std::to_string(copies);
}

Refusal set_replicas(BrokerConfig& config, const ConfigValue& value) {
  return set_copies(config.default_replicas, value);
}
Refusal set_min_isr(BrokerConfig& config, const ConfigValue& value) {
  return set_copies(config.default_min_isr, value);
}

Refusal set_unclean_election(BrokerConfig& config, const ConfigValue& value) {
  const auto allowed = read_boolean(value);
  if (!allowed.value) return allowed.refusal;
  config.topic_defaults.unclean_election = *allowed.value;
  return std::nullopt;
}
std::string unclean_election_text(const BrokerConfig& config) {
  return config.topic_defaults.unclean_election ? "true" : "false";
}

Refusal set_level(BrokerConfig& config, const ConfigValue& value) {
  static const std::vector<std::pair<std::string, base::LogLevel>> kLevels{
      {"debug", base::LogLevel::debug},
      {"info", base::LogLevel::info},
      {"warning", base::LogLevel::warning},
      {"error", base::LogLevel::error}};
  for (const auto& [name, level] : kLevels) {
    if (value.type == ConfigValue::Type::other || value.text != name) continue;
    config.log_level = level;
    return std::nullopt;
  }
  return fmt::format("expected \"debug\", \"info\", \"warning\" or \"error\", got {}",
                     value.shown());
}
std::string level_text(const BrokerConfig& config) {
  switch (config.log_level) {
    case base::LogLevel::debug:
      return quoted("debug");
    case base::LogLevel::info:
      return quoted("info");
    case base::LogLevel::warning:
      return quoted("warning");
    case base::LogLevel::error:
    case base::LogLevel::off:
      break;
  }
  return quoted("error");
}

/// A topic setting takes text only; a bare number gets the advice that its kind needs.
Refusal set_topic_default(BrokerConfig& config, const std::string& name, const ConfigValue& value) {
  const bool text =
      value.type == ConfigValue::Type::string || value.type == ConfigValue::Type::plain;
  if (!text && name.ends_with(".bytes")) return read_bytes(value, 0, 0).refusal;
  if (!text && name.ends_with(".age")) return read_duration(value, {}, {}).refusal;
  if (!text) return fmt::format("expected text in quotes, got {}", value.shown());
  const auto refused = model::set_topic_setting(config.topic_defaults, name, value.text);
  if (!refused) return std::nullopt;
  return refused->message;
}

ConfigKey topic_default(const std::string& name) {
  if (name == "unclean_election")
    return {"topic.defaults." + name, false, set_unclean_election, unclean_election_text};
  return {"topic.defaults." + name, false,
          [name](BrokerConfig& config, const ConfigValue& value) {
            return set_topic_default(config, name, value);
          },
          [name](const BrokerConfig& config) {
            return quoted(model::topic_setting_text(config.topic_defaults, name));
          }};
}

ConfigKey timeout(std::string name, milliseconds LimitsConfig::*member) {
  return {std::move(name), false,
          [member](BrokerConfig& config, const ConfigValue& value) -> Refusal {
            const auto time = read_duration(value, kTimeoutMin, kTimeoutMax);
            if (!time.value) return time.refusal;
            config.limits.*member = *time.value;
            return std::nullopt;
          },
          [member](const BrokerConfig& config) {
            return quoted(base::format_duration_exact(config.limits.*member));
          }};
}

Refusal set_memory(BrokerConfig& config, const ConfigValue& value) {
  const auto bytes = read_bytes(value, kMemoryMin, kMemoryMax);
  if (!bytes.value) return bytes.refusal;
  config.limits.memory_bytes = *bytes.value;
  return std::nullopt;
}

Refusal set_connections(BrokerConfig& config, const ConfigValue& value) {
  const auto count = read_integer(value, 1, kConnectionsMax);
  if (!count.value) return count.refusal;
  config.limits.connections = static_cast<std::uint32_t>(*count.value);
  return std::nullopt;
}

std::string paths_text(const std::vector<std::string>& paths) {
  std::string text;
  for (const auto& path : paths) text += (text.empty() ? "" : ", ") + quoted(path);
  return text;
}

std::string disks_text(const BrokerConfig& config) { return paths_text(config.disks); }
/// Empty for those that have their journal inside.
std::string journals_text(const BrokerConfig& config) {
  return config.journals.empty() ? quoted("") : paths_text(config.journals);
}

std::vector<ConfigKey> make_schema() {
  std::vector<ConfigKey> keys{
      {"broker.id", true, set_id,
       [](const BrokerConfig& config) { return std::to_string(config.id.value()); }},
      {"broker.metadata", true, set_metadata,
       [](const BrokerConfig& config) { return quoted(config.metadata); }},
      {"broker.workers", false, set_workers,
       [](const BrokerConfig& config) {
         return config.workers == 0 ? quoted("auto") : std::to_string(config.workers);
       }},
      {"broker.rack", false, set_rack,
       [](const BrokerConfig& config) { return quoted(config.rack); }},
      {"storage.disk.path", true, add_disk, disks_text},
      {"storage.disk.journal", false, add_journal, journals_text},
      {"storage.dirty_max", false, set_dirty_max,
       [](const BrokerConfig& config) {
         return quoted(base::format_bytes_exact(config.dirty_bytes_max));
       }},
      rate("storage.scrub_rate", &BrokerConfig::scrub_bytes_per_second),
      rate("replication.catch_up_rate", &BrokerConfig::catch_up_bytes_per_second),
      {"replication.leader_balance_after", false, set_balance_after, balance_after_text},
      {"replication.leader_balance_limit", false, set_balance_limit,
       [](const BrokerConfig& config) { return std::to_string(config.leader_balance_limit); }},
      {"listener.clients.bind", false, set_bind,
       [](const BrokerConfig& config) { return quoted(config.listener.bind.text()); }},
      {"listener.clients.advertised", false, set_advertised,
       [](const BrokerConfig& config) { return quoted(config.listener.advertised.text()); }},
      {"topic.defaults.partitions", false, set_partitions,
       [](const BrokerConfig& config) { return std::to_string(config.default_partitions); }},
      {"topic.defaults.replicas", false, set_replicas,
       [](const BrokerConfig& config) { return copies_text(config.default_replicas); }},
      {"topic.defaults.min_isr", false, set_min_isr,
       [](const BrokerConfig& config) { return copies_text(config.default_min_isr); }}};
  for (const auto& name : model::topic_setting_names()) {
    // It has its own rules, above.
    if (name != "min_isr") keys.push_back(topic_default(name));
  }
  keys.push_back({"limits.memory", false, set_memory, [](const BrokerConfig& config) {
                    return quoted(base::format_bytes_exact(config.limits.memory_bytes));
                  }});
  keys.push_back({"limits.connections", false, set_connections, [](const BrokerConfig& config) {
                    return std::to_string(config.limits.connections);
                  }});
  keys.push_back(timeout("limits.hello_timeout", &LimitsConfig::hello_timeout));
  keys.push_back(timeout("limits.frame_timeout", &LimitsConfig::frame_timeout));
  keys.push_back(timeout("limits.write_timeout", &LimitsConfig::write_timeout));
  keys.push_back(timeout("limits.idle_timeout", &LimitsConfig::idle_timeout));
  keys.push_back({"log.level", false, set_level, level_text});
  return keys;
}

}  // namespace

const std::vector<ConfigKey>& broker_schema() {
  static const std::vector<ConfigKey> keys = make_schema();
  return keys;
}

const ConfigKey* find_key(std::string_view name) {
  const auto& keys = broker_schema();
  const auto found = std::ranges::find(keys, name, &ConfigKey::name);
  return found == keys.end() ? nullptr : &*found;
}

const std::vector<std::string>& broker_sections() {
  static const std::vector<std::string> sections{
      "broker",           "storage", "storage.disk",   "replication", "listener",
      "listener.clients", "topic",   "topic.defaults", "limits",      "log"};
  return sections;
}

}  // namespace mq::config
