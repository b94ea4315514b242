#include <fmt/format.h>

#include "base/units.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

std::string note_of(const TopicSummary& topic) {
  return topic.partitions_not_serving == 0
             ? ""
             : fmt::format("{} of {} partitions not served", topic.partitions_not_serving,
                           topic.partitions);
}

Exit list(Context& context) {
  auto admin = connect_admin(context);
  const auto cluster = take(admin.describe_cluster(), "the topics were not listed");
  const auto topics = take(admin.list_topics(), "the topics were not listed");
  Report report(context);
  report.head("cluster", cluster.id);
  Table table({{"TOPIC"},
               {"PARTITIONS", Table::Align::right},
               {"REPLICAS", Table::Align::right},
               {"RECORDS", Table::Align::right},
               {"SIZE", Table::Align::right},
               {"NOTE"}});
  for (const auto& topic : topics) {
    table.add({topic.name, fmt::format("{}", topic.partitions), fmt::format("{}", topic.replicas),
               grouped(topic.records), base::format_bytes(topic.bytes), note_of(topic)});
    report.item(Value::object()
                    .set("name", topic.name)
                    .set("id", topic.id)
                    .set("partitions", topic.partitions)
                    .set("replicas", topic.replicas)
                    .set("records", topic.records)
                    .set("bytes", topic.bytes)
                    .set("partitions_not_serving", topic.partitions_not_serving));
  }
  if (topics.empty())
    context.notice("no topics yet; create one: mqctl topic create NAME");
  else
    report.text(table.text());
  return report.finish();
}

}  // namespace

Command topic_list_command() {
  return {.path = "topic list",
          .summary = "Lists the topics",
          .examples = {"mqctl topic list", "mqctl topic list -o json --fields name,records"},
          .item_shape = R"({"name":"string","id":"uuid","partitions":"int","replicas":"int",)"
                        R"("records":"int","bytes":"int","partitions_not_serving":"int"})",
          .watches = true,
          .run = list};
}

}  // namespace mq::mqctl
