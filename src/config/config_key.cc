#include "config/config_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "config/broker_schema.h"

namespace mq::config {
namespace {

/// What this release does not have yet.
std::optional<std::string> not_yet(std::string_view key) {
  if (key.starts_with("listener.clients.tls")) return "this release has no TLS";
  if (key == "metrics")
    return "this release has no metrics over HTTP; mqctl status -v has counters";
  if (key == "console") return "this release has no web console";
  return std::nullopt;
}

/// "listener.internal", "listener.internal.bind": only "clients" is there.
bool is_other_listener(std::string_view section) {
  return section.starts_with("listener.") && !section.starts_with("listener.clients");
}
constexpr const char* kOneListener = "this release has one listener, [listener.clients]";

std::string_view leaf_of(std::string_view key) {
  const auto section = section_of(key);
  return section.empty() ? key : key.substr(section.size() + 1);
}

/// The key that ends like `key` in another section.
std::optional<std::string> same_leaf_elsewhere(std::string_view key) {
  for (const auto& known : broker_schema()) {
    if (leaf_of(known.name) == leaf_of(key)) return known.name;
  }
  return std::nullopt;
}

std::vector<std::string> leaves_in(std::string_view section) {
  std::vector<std::string> leaves;
  for (const auto& known : broker_schema()) {
    if (section_of(known.name) == section) leaves.emplace_back(leaf_of(known.name));
  }
  return leaves;
}

std::string brackets(std::string_view section) {
  return section == kDiskSection ? fmt::format("[[{}]]", section) : fmt::format("[{}]", section);
}

}  // namespace

std::string_view section_of(std::string_view key) {
  std::string_view longest;
  for (const auto& section : broker_sections()) {
    if (key.starts_with(section + ".") && section.size() > longest.size()) longest = section;
  }
  return longest;
}

std::string explain_unknown_key(std::string_view key) {
  if (const auto later = not_yet(key)) return *later;
  if (is_other_listener(key) && std::ranges::count(key, '.') > 1) return kOneListener;
  const auto section = section_of(key);
  if (const auto near = base::nearest(leaf_of(key), leaves_in(section)))
    return fmt::format("there is no such key; did you mean \"{}\"?", *near);
  if (const auto elsewhere = same_leaf_elsewhere(key))
    return fmt::format("there is no such key here; \"{}\" belongs in {}", leaf_of(*elsewhere),
                       brackets(section_of(*elsewhere)));
  std::string known;
  for (const auto& leaf : leaves_in(section)) known += (known.empty() ? "" : ", ") + leaf;
  if (known.empty()) return "there is no such key";
  return fmt::format("there is no such key; {} has {}", brackets(section), known);
}

std::string explain_unknown_section(std::string_view section) {
  if (const auto later = not_yet(section)) return *later;
  if (is_other_listener(section)) return kOneListener;
  if (const auto near = base::nearest(section, broker_sections()))
    return fmt::format("there is no such section; did you mean {}?", brackets(*near));
  return "there is no such section";
}

std::optional<std::string> key_of_variable(std::string_view variable) {
  if (!variable.starts_with("MQ_") || variable.find("__") == std::string_view::npos)
    return std::nullopt;
  std::string key;
  variable.remove_prefix(3);
  for (std::size_t at = 0; at < variable.size(); ++at) {
    if (variable.substr(at, 2) == "__") {
      key += '.';
      ++at;
    } else {
      const char c = variable[at];
      key += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return key;
}

}  // namespace mq::config
