#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/broker_view.h"
#include "mqctl/verbs/choices.h"
#include "mqctl/verbs/partition_view.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

Value followers_value(const PartitionDescription& partition) {
  Value followers = Value::array();
  for (const auto& follower : partition.followers)
    followers.add(
        Value::object()
            .set("broker", follower.broker)
            .set("confirmed_end", follower.confirmed_end)
            .set("lag", lag_of(partition, follower))
            .set("behind_ms", lag_of(partition, follower) == 0 ? 0 : follower.behind.count()));
  return followers;
}

/// Where nobody leads: why each replica does not.
Value notes_value(const PartitionDescription& partition) {
  Value notes = Value::array();
  for (const auto& note : partition.replica_notes)
    notes.add(Value::object().set("broker", note.broker).set("text", note.text));
  return notes;
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
      .set("min_isr", partition.min_isr)
      .set("loss_epoch", partition.loss_epoch)
      .set("loss_start", partition.loss_start)
      .set("loss_end", partition.loss_end)
      .set("followers", followers_value(partition))
      .set("replica_notes", notes_value(partition))
      .set("note", partition.note);
}

Exit describe(Context& context) {
  std::vector<TopicPartition> wanted;
  std::set<std::string> topics;
  for (const auto& text : context.distinct_items()) {
    wanted.push_back(partition_named(text));
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
    report.text(partition_text(name.topic, *at));
  }
  return report.finish();
}

}  // namespace

Command partition_describe_command() {
  return {
      .path = "partition describe",
      .summary = "Shows a partition: leader, replicas, offsets, and why it is not served",
      .examples = {"mqctl partition describe orders/0", "mqctl partition describe orders/0 -w"},
      .positionals = {{.name = "TOPIC/N", .help = "one or more partitions", .most = SIZE_MAX}},
      .item_shape =
          R"({"topic":"string","partition":"int","leader":"int","leader_epoch":"int",)"
          R"("replicas":["int"],"in_sync":["int"],"log_start_offset":"int",)"
          R"("high_watermark":"int","log_end_offset":"int","bytes":"int",)"
          R"("segments":"int","min_isr":"int","loss_epoch":"int","loss_start":"int","loss_end":"int",)"
          R"("followers":[{"broker":"int","confirmed_end":"int","lag":"int",)"
          R"("behind_ms":"int"}],"replica_notes":[{"broker":"int","text":"string"}],)"
          R"("note":"string"})",
      .watches = true,
      .run = describe};
}

}  // namespace mq::mqctl
