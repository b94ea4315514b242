#include "model/topic_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "base/units.h"
#include "model/record_batch_format.h"

namespace mq::model {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = 1024 * kKib;
constexpr std::uint64_t kGib = 1024 * kMib;

/// Why a value is refused; nothing when it was set.
using Refusal = std::optional<std::string>;

struct Setting {
  std::string name;
  Refusal (*set)(TopicSettings& settings, std::string_view value);
  std::string (*text)(const TopicSettings& settings);
};

template <class T>
Refusal set_bytes(T& to, std::string_view value, std::uint64_t min, std::uint64_t max) {
  const auto bytes = base::parse_bytes(value);
  if (!bytes) return "give a size with its unit, such as 64MiB";
  if (*bytes < min || *bytes > max)
    return fmt::format("must be from {} to {}", base::format_bytes_exact(min),
                       base::format_bytes_exact(max));
  to = static_cast<T>(*bytes);
  return std::nullopt;
}

Refusal set_age(milliseconds& to, std::string_view value) {
  const auto age = base::parse_duration(value);
  if (!age) return "give a time with its unit, such as 14d or 30m";
  if (*age < std::chrono::seconds(1)) return "must be 1s or more";
  to = *age;
  return std::nullopt;
}

Refusal set_durability(TopicSettings& settings, std::string_view value) {
  if (value != "disk" && value != "memory") return "must be disk or memory";
  settings.durability = value == "disk" ? Durability::disk : Durability::memory;
  return std::nullopt;
}
std::string durability_text(const TopicSettings& settings) {
  return settings.durability == Durability::disk ? "disk" : "memory";
}

Refusal set_retention_age(TopicSettings& settings, std::string_view value) {
  if (value == "forever") {
    settings.retention_age = milliseconds(0);
    return std::nullopt;
  }
  auto refusal = set_age(settings.retention_age, value);
  if (refusal) *refusal += ", or forever";
  return refusal;
}
std::string retention_age_text(const TopicSettings& settings) {
  if (settings.retention_age == milliseconds(0)) return "forever";
  return base::format_duration_exact(settings.retention_age);
}

Refusal set_retention_bytes(TopicSettings& settings, std::string_view value) {
  if (value == "unlimited") {
    settings.retention_bytes = 0;
    return std::nullopt;
  }
  auto refusal = set_bytes(settings.retention_bytes, value, kMib, kGib * kMib);
  if (refusal) *refusal += ", or unlimited";
  return refusal;
}
std::string retention_bytes_text(const TopicSettings& settings) {
  if (settings.retention_bytes == 0) return "unlimited";
  return base::format_bytes_exact(settings.retention_bytes);
}

Refusal set_segment_bytes(TopicSettings& settings, std::string_view value) {
  return set_bytes(settings.segment_bytes, value, 64 * kKib, kGib);
}
std::string segment_bytes_text(const TopicSettings& settings) {
  return base::format_bytes_exact(settings.segment_bytes);
}

Refusal set_segment_age(TopicSettings& settings, std::string_view value) {
  return set_age(settings.segment_age, value);
}
std::string segment_age_text(const TopicSettings& settings) {
  return base::format_duration_exact(settings.segment_age);
}

Refusal set_batch_bytes(TopicSettings& settings, std::string_view value) {
  return set_bytes(settings.batch_bytes, value, kKib, batch_format::kBatchBytesMax);
}
std::string batch_bytes_text(const TopicSettings& settings) {
  return base::format_bytes_exact(settings.batch_bytes);
}

Refusal set_min_isr(TopicSettings& settings, std::string_view value) {
  constexpr std::uint32_t kMost = 128;
  std::uint32_t number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = read.ec == std::errc() && read.ptr == value.data() + value.size();
  if (value != "auto" && (!whole || number < 1 || number > kMost))
    return fmt::format("must be from 1 to {}, or auto", kMost);
  settings.min_isr = value == "auto" ? 0 : number;
  return std::nullopt;
}
std::string min_isr_text(const TopicSettings& settings) {
  return settings.min_isr == 0 ? "auto" : std::to_string(settings.min_isr);
}

Refusal set_unclean_election(TopicSettings& settings, std::string_view value) {
  if (value != "true" && value != "false") return "must be true or false";
  settings.unclean_election = value == "true";
  return std::nullopt;
}
std::string unclean_election_text(const TopicSettings& settings) {
  return settings.unclean_election ? "true" : "false";
}

const std::vector<Setting>& known_settings() {
  static const std::vector<Setting> settings{
      {"durability", set_durability, durability_text},
      {"retention.age", set_retention_age, retention_age_text},
      {"retention.bytes", set_retention_bytes, retention_bytes_text},
      {"segment.bytes", set_segment_bytes, segment_bytes_text},
      {"segment.age", set_segment_age, segment_age_text},
      {"batch.bytes", set_batch_bytes, batch_bytes_text},
      {"min_isr", set_min_isr, min_isr_text},
      {"unclean_election", set_unclean_election, unclean_election_text}};
  return settings;
}

const Setting* find_setting(std::string_view name) {
  const auto& settings = known_settings();
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

/// What other brokers call it.
bool asks_for_compaction(std::string_view name) {
  return name.find("compact") != name.npos || name.find("cleanup") != name.npos;
}

bool allowed_in_topic_name(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

const std::vector<std::string>& topic_setting_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& setting : known_settings()) result.push_back(setting.name);
    return result;
  }();
  return names;
}

std::optional<SettingError> set_topic_setting(TopicSettings& settings, std::string_view name,
                                              std::string_view value) {
  const Setting* setting = find_setting(name);
  if (!setting) {
    std::string message = fmt::format("there is no topic setting \"{}\"", name);
    if (asks_for_compaction(name)) {
      message += "; this release does not compact by key, records go by their age and size alone";
    } else if (const auto near = base::nearest(name, topic_setting_names())) {
      message += fmt::format("; did you mean \"{}\"?", *near);
    }
    return SettingError{std::string(name), std::move(message)};
  }
  if (const auto refusal = setting->set(settings, value))
    return SettingError{setting->name, fmt::format("{} = \"{}\": {}", name, value, *refusal)};
  return std::nullopt;
}

std::vector<SettingError> apply_topic_settings(
    TopicSettings& settings, const std::map<std::string, std::string>& overrides) {
  std::vector<SettingError> errors;
  TopicSettings changed = settings;
  for (const auto& [name, value] : overrides) {
    if (auto error = set_topic_setting(changed, name, value)) errors.push_back(std::move(*error));
  }
  if (errors.empty()) settings = changed;
  return errors;
}

std::string topic_setting_text(const TopicSettings& settings, std::string_view name) {
  const Setting* setting = find_setting(name);
  return setting ? setting->text(settings) : std::string();
}

std::map<std::string, std::string> given_topic_settings(const TopicSettings& settings) {
  const TopicSettings built_in;
  std::map<std::string, std::string> given;
  for (const auto& setting : known_settings()) {
    auto text = setting.text(settings);
    if (text != setting.text(built_in)) given.emplace(setting.name, std::move(text));
  }
  return given;
}

std::optional<std::string> check_topic_name(std::string_view name) {
  if (name.empty()) return "a topic name is not empty";
  if (name.size() > 249) return "a topic name has at most 249 characters";
  if (!std::ranges::all_of(name, allowed_in_topic_name))
    return "a topic name consists of A-Z a-z 0-9 . _ -";
  if (name == "." || name == "..") return "a topic is not called \".\" or \"..\"";
  if (name.starts_with("__")) return "names that start with \"__\" are reserved";
  if (name.starts_with("-")) return "a topic name does not start with \"-\"";
  return std::nullopt;
}

}  // namespace mq::model
