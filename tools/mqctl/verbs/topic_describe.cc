#include <fmt/format.h>

#include "base/units.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/broker_view.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

Value item_of(const TopicDescription& topic) {
  Value settings = Value::object();
  for (const auto& setting : topic.settings)
    settings.set(setting.name,
                 Value::object().set("value", setting.value).set("origin", setting.origin));
  Value partitions = Value::array();
  for (const auto& part : topic.partitions)
    partitions.add(Value::object()
                       .set("id", part.partition)
                       .set("leader", part.leader)
                       .set("leader_epoch", part.leader_epoch)
                       .set("replicas", ids_value(part.replicas))
                       .set("in_sync", ids_value(part.in_sync))
                       .set("log_start_offset", part.log_start_offset)
                       .set("high_watermark", part.high_watermark)
                       .set("log_end_offset", part.log_end_offset)
                       .set("bytes", part.bytes)
                       .set("segments", part.segments)
                       .set("note", part.note));
  return Value::object()
      .set("name", topic.name)
      .set("id", topic.id)
      .set("settings", std::move(settings))
      .set("partitions", std::move(partitions));
}

std::string headline(const TopicDescription& topic) {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
  std::size_t replicas = 0;
  for (const auto& part : topic.partitions) {
    bytes += part.bytes;
    records += static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, part.high_watermark - part.log_start_offset));
    replicas = std::max(replicas, part.replicas.size());
  }
  return fmt::format("{}  {} x{}   {} in {}\n", topic.name,
                     counted(topic.partitions.size(), "partition"), replicas,
                     counted(records, "record"), base::format_bytes(bytes));
}

std::string settings_line(const TopicDescription& topic) {
  std::string line;
  for (const auto& setting : topic.settings)
    line +=
        fmt::format("  {}={}{}", setting.name, setting.value, setting.origin == "topic" ? "*" : "");
  return line + "   (* set on the topic)\n";
}

std::string text_of(const TopicDescription& topic) {
  Table table({{"PART", Table::Align::right},
               {"LEADER", Table::Align::right},
               {"REPLICAS"},
               {"IN-SYNC"},
               {"FIRST", Table::Align::right},
               {"NEXT", Table::Align::right},
               {"SIZE", Table::Align::right},
               {"NOTE"}});
  for (const auto& part : topic.partitions)
    table.add({fmt::format("{}", part.partition),
               part.leader < 0 ? "none" : fmt::format("{}", part.leader), ids_text(part.replicas),
               ids_text(part.in_sync), fmt::format("{}", part.log_start_offset),
               fmt::format("{}", part.high_watermark), base::format_bytes(part.bytes), part.note});
  return headline(topic) + settings_line(topic) + table.text();
}

Exit describe(Context& context) {
  const auto& names = context.distinct_items();
  auto admin = connect_admin(context);
  const auto cluster = take(admin.describe_cluster(), "the topics were not described");
  const auto found = admin.describe_topics(names);
  Report report(context);
  report.head("cluster", cluster.id);
  bool first = true;
  for (const auto& name : names) {
    const auto& topic = found.at(name);
    if (!topic) {
      report.failure(
          client_failure(topic.error(), fmt::format("{} was not described", name), name));
      continue;
    }
    report.item(item_of(*topic));
    report.text((first ? "" : "\n") + text_of(*topic));
    first = false;
  }
  return report.finish();
}

}  // namespace

Command topic_describe_command() {
  return {
      .path = "topic describe",
      .summary = "Shows a topic's settings, partitions, leaders and offsets",
      .examples = {"mqctl topic describe orders",
                   "mqctl topic describe orders -o json --fields name,partitions.id"},
      .positionals = {{.name = "TOPIC",
                       .help = "one or more names",
                       .most = SIZE_MAX,
                       .complete = Complete::topics}},
      .item_shape =
          R"({"name":"string","id":"uuid","settings":{"NAME":{"value":"string",)"
          R"("origin":"string"}},"partitions":[{"id":"int","leader":"int","leader_epoch":"int",)"
          R"("replicas":["int"],"in_sync":["int"],"log_start_offset":"int",)"
          R"("high_watermark":"int","log_end_offset":"int","bytes":"int","segments":"int",)"
          R"("note":"string"}]})",
      .watches = true,
      .run = describe};
}

}  // namespace mq::mqctl
