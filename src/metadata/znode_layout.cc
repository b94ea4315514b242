#include "metadata/znode_layout.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace mq::metadata::layout {
namespace {

bool is_plain(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string child(std::string_view folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

}  // namespace

const std::vector<std::string>& folders() {
  static const std::vector<std::string> all{std::string(kControl),
                                            "/brokers",
                                            std::string(kBrokersLive),
                                            std::string(kBrokersEpoch),
                                            std::string(kBrokersHeartbeat),
                                            std::string(kTopics),
                                            std::string(kState),
                                            std::string(kDeleting),
                                            std::string(kProducers)};
  return all;
}

std::string broker_live(model::BrokerId broker) {
  return child(kBrokersLive, std::to_string(broker.value()));
}
std::string broker_epoch(model::BrokerId broker) {
  return child(kBrokersEpoch, std::to_string(broker.value()));
}
std::string broker_heartbeat(model::BrokerId broker) {
  return child(kBrokersHeartbeat, std::to_string(broker.value()));
}
std::string topic(std::string_view name) { return child(kTopics, escape_name(name)); }
std::string topic_state(const base::Uuid& topic) { return child(kState, topic.hex()); }
std::string partition_state(const model::PartitionId& partition) {
  return child(topic_state(partition.topic), std::to_string(partition.partition));
}
std::string deleting(const base::Uuid& topic) { return child(kDeleting, topic.hex()); }

std::optional<model::BrokerId> parse_broker(std::string_view node_name) noexcept {
  const auto number = parse_partition(node_name);
  if (!number) return std::nullopt;
  return model::BrokerId(*number);
}

std::optional<std::int32_t> parse_partition(std::string_view node_name) noexcept {
  const auto number = base::parse_unsigned(node_name);
  if (!number || *number > 0x7fffffff) return std::nullopt;
  if (node_name.size() > 1 && node_name.front() == '0') return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

std::string escape_name(std::string_view text) {
  if (text.empty()) return "%";
  const bool dots_only = text == "." || text == "..";
  std::string name;
  for (const char c : text) {
    if (is_plain(c) && !dots_only)
      name += c;
    else
      name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name;
}

std::optional<std::string> unescape_name(std::string_view name) {
  if (name == "%") return std::string();
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      text += name[i];
      continue;
    }
    if (i + 2 >= name.size()) return std::nullopt;
    const int high = hex_value(name[i + 1]);
    const int low = hex_value(name[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    text += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (escape_name(text) != name) return std::nullopt;
  return text;
}

}  // namespace mq::metadata::layout
