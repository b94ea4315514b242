#include "mqctl/verbs/choices.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace mq::mqctl {

TopicPartition partition_named(const std::string& text) {
  const auto slash = text.rfind('/');
  const auto number = slash == std::string::npos
                          ? std::nullopt
                          : base::parse_unsigned(std::string_view(text).substr(slash + 1));
  if (slash == 0 || !number || *number > INT32_MAX)
    throw Failed(usage_failure(fmt::format("\"{}\" is not a partition", text),
                               "it is named by topic and number, as in orders/0"));
  return {text.substr(0, slash), static_cast<std::int32_t>(*number)};
}

std::vector<std::int32_t> partition_numbers(const Context& context) {
  std::vector<std::int32_t> partitions;
  if (!context.args.has("partition")) return partitions;
  for (const auto part : base::split(context.args.text("partition"), ',')) {
    const auto number = base::parse_unsigned(base::trim(part));
    if (!number || *number > INT32_MAX)
      throw Failed(usage_failure(fmt::format("-p: \"{}\" is not a partition", part),
                                 "it takes one or more numbers, as in -p 0,2"));
    partitions.push_back(static_cast<std::int32_t>(*number));
  }
  return partitions;
}

Flag config_flag() {
  return {.name = "config",
          .letter = 'c',
          .kind = Kind::setting,
          .value = "NAME=VALUE",
          .help = "a setting of the topic",
          .repeats = true};
}

std::map<std::string, std::string> settings_of(const Context& context) {
  std::map<std::string, std::string> settings;
  for (const auto& text : context.args.list("config")) {
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    if (!settings.emplace(name, text.substr(equals + 1)).second)
      throw Failed(usage_failure(fmt::format("--config {} is given twice", name),
                                 "each setting may be given once"));
  }
  return settings;
}

Flag acks_flag(std::string fallback) {
  return {.name = "acks",
          .kind = Kind::choice,
          .value = "HOW",
          .help = "none, leader or all: when a record counts as delivered",
          .choices = {"none", "leader", "all"},
          .fallback = std::move(fallback),
          .complete = Complete::choices};
}

Flag compression_flag(std::string fallback) {
  return {.name = "compression",
          .letter = 'z',
          .kind = Kind::choice,
          .value = "CODEC",
          .help = "none, lz4 or zstd",
          .choices = {"none", "lz4", "zstd"},
          .fallback = std::move(fallback),
          .complete = Complete::choices};
}

Acks acks_of(const std::string& name) {
  return name == "none" ? Acks::none : name == "leader" ? Acks::leader : Acks::all;
}

Compression compression_of(const std::string& name) {
  return name == "lz4" ? Compression::lz4 : name == "zstd" ? Compression::zstd : Compression::none;
}

}  // namespace mq::mqctl
