#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "base/units.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/broker_view.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

TopicPartition parse(const std::string& text) {
  const auto slash = text.rfind('/');
  const auto number = slash == std::string::npos
                          ? std::nullopt
                          : base::parse_unsigned(std::string_view(text).substr(slash + 1));
  if (slash == 0 || !number || *number > INT32_MAX)
    throw Failed(usage_failure(fmt::format("\"{}\" is not a partition", text),
                               "it is named by topic and number, as in orders/0"));
  return {text.substr(0, slash), static_cast<std::int32_t>(*number)};
}

Value item_of(const std::string& topic, const PartitionDescription& partition) {
  return Value::object()
      .set("topic", topic)
      .set("partition", partition.partition)
      .set("leader", partition.leader)
      .set("leader_epoch", partition.leader_epoch)
      .set("replicas", ids_value(partition.replicas))
      .set("in_sync", ids_value(partition.in_sync))
      .set("log_start_offset", partition.log_start_offset)
      .set("high_watermark", partition.high_watermark)
      .set("log_end_offset", partition.log_end_offset)
      .set("bytes", partition.bytes)
      .set("segments", partition.segments)
      .set("note", partition.note);
}

std::string text_of(const std::string& topic, const PartitionDescription& partition) {
  const auto records =
      std::max<std::int64_t>(0, partition.high_watermark - partition.log_start_offset);
  std::string text = fmt::format(
      "{}/{}  leader: {} (epoch {})   replicas {}   in sync {}\n", topic, partition.partition,
      partition.leader < 0 ? "none" : fmt::format("broker {}", partition.leader),
      partition.leader_epoch, ids_text(partition.replicas), ids_text(partition.in_sync));
  if (partition.log_end_offset >= 0) {
    text +=
        fmt::format("  offsets {} to {}, log end {}   {} in {}, {}\n", partition.log_start_offset,
                    partition.high_watermark, partition.log_end_offset,
                    counted(static_cast<std::uint64_t>(records), "record"),
                    base::format_bytes(partition.bytes), counted(partition.segments, "segment"));
  }
  if (!partition.note.empty()) text += fmt::format("  ! {}\n", partition.note);
  return text;
}

Exit describe(Context& context) {
  std::vector<TopicPartition> wanted;
  std::set<std::string> topics;
  for (const auto& text : context.distinct_items()) {
    wanted.push_back(parse(text));
    topics.insert(wanted.back().topic);
  }
  auto admin = connect_admin(context);
  const auto found = admin.describe_topics({topics.begin(), topics.end()});
  Report report(context);
  for (const auto& name : wanted) {
    const auto item = fmt::format("{}/{}", name.topic, name.partition);
    const auto& topic = found.at(name.topic);
    if (!topic) {
      report.failure(
          client_failure(topic.error(), fmt::format("{} was not described", item), item));
      continue;
    }
    const auto at =
        std::ranges::find(topic->partitions, name.partition, &PartitionDescription::partition);
    if (at == topic->partitions.end()) {
      auto failure = make_failure(
          protocol::WireError::unknown_partition, fmt::format("{} was not described", item),
          fmt::format("the topic has {}", counted(topic->partitions.size(), "partition")));
      failure.item = item;
      report.failure(std::move(failure));
      continue;
    }
    report.item(item_of(name.topic, *at));
    report.text(text_of(name.topic, *at));
  }
  return report.finish();
}

}  // namespace

Command partition_describe_command() {
  return {.path = "partition describe",
          .summary = "Shows a partition: leader, replicas, offsets, and why it is not served",
          .examples = {"mqctl partition describe orders/0", "mqctl partition describe orders/0 -w"},
          .positionals = {{.name = "TOPIC/N", .help = "one or more partitions", .most = SIZE_MAX}},
          .item_shape =
              R"({"topic":"string","partition":"int","leader":"int","leader_epoch":"int",)"
              R"("replicas":["int"],"in_sync":["int"],"log_start_offset":"int",)"
              R"("high_watermark":"int","log_end_offset":"int","bytes":"int",)"
              R"("segments":"int","note":"string"})",
          .watches = true,
          .run = describe};
}

}  // namespace mq::mqctl
