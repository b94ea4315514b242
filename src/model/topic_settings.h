#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mq::model {

/// When an append counts as confirmed: `disk` when every byte up to it is synced, `memory` when it
/// is in the page cache.
enum class Durability : std::uint8_t { disk, memory };

/// What a topic decides about its log. Given as text (`--config k=v`, [topic.defaults]); unknown
/// names are refused.
struct TopicSettings {
  Durability durability = Durability::disk;
  std::chrono::milliseconds retention_age{std::chrono::hours(14 * 24)};  ///< 0: for ever
  std::uint64_t retention_bytes = 0;                                     ///< 0: no limit
  std::uint64_t segment_bytes = std::uint64_t{128} << 20;
  std::chrono::milliseconds segment_age{std::chrono::hours(7 * 24)};
  std::uint32_t batch_bytes = std::uint32_t{1} << 20;  ///< largest batch as sent, header counted
  /// The smallest ISR with which acks=all is confirmed; 0: follows from the number of replicas.
  std::uint32_t min_isr = 0;
  /// Whether a replica that lacks records may lead when nobody who has them all can.
  bool unclean_election = false;

  friend bool operator==(const TopicSettings&, const TopicSettings&) = default;
};

/// One refused setting, in words for the person who wrote it: name, value, rule, nearest known
/// name.
struct SettingError {
  std::string name;
  std::string message;
};

/// The names in the order in which they are shown.
const std::vector<std::string>& topic_setting_names();
/// Sets one value from its text form: "durability" = "disk", "retention.age" = "14d" ("forever"),
/// "retention.bytes" = "10GiB"
/// ("unlimited"), "segment.bytes", "segment.age", "batch.bytes", "min_isr" = "2" ("auto"),
/// "unclean_election" = "true". Nothing is changed when it is refused.
std::optional<SettingError> set_topic_setting(TopicSettings& settings, std::string_view name,
                                              std::string_view value);
/// All of `overrides` on top of `defaults`, with every error at once.
std::vector<SettingError> apply_topic_settings(TopicSettings& settings,
                                               const std::map<std::string, std::string>& overrides);
/// The text form of one value, which set_topic_setting reads back.
std::string topic_setting_text(const TopicSettings& settings, std::string_view name);

/// Those that are not built in, by name, as text: apply_topic_settings() makes `settings` of the
/// built-in ones and them.
std::map<std::string, std::string> given_topic_settings(const TopicSettings& settings);

/// Topic names: [A-Za-z0-9._-]{1,249}, neither "." nor "..", not starting with "__" (reserved for
/// internal topics), nor with "-" (it would look like a flag). Returns the rule that is broken.
std::optional<std::string> check_topic_name(std::string_view name);

}  // namespace mq::model
