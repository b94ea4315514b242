#include <fmt/format.h>

#include <map>
#include <set>

#include "base/units.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/partition_view.h"
#include "mqctl/verbs/topic_view.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// So many are asked about damage.
constexpr std::size_t kLookedAt = 1000;

/// How many partitions of each topic have a replica that is damaged in places.
std::map<std::string, std::int32_t> damaged_in(Admin& admin,
                                               const std::vector<TopicSummary>& topics) {
  std::set<std::string> names;
  for (const auto& topic : topics) {
    if (names.size() < kLookedAt) names.insert(topic.name);
  }
  return counted_by_topic(damage_notes(admin, names));
}

Exit list(Context& context) {
  auto admin = connect_admin(context);
  const auto cluster = take(admin.describe_cluster(), "the topics were not listed");
  const auto topics = take(admin.list_topics(), "the topics were not listed");
  const auto damaged = damaged_in(admin, topics);
  Report report(context);
  report.head("cluster", cluster.id);
  Table table({{"TOPIC"},
               {"PARTITIONS", Table::Align::right},
               {"REPLICAS", Table::Align::right},
               {"RECORDS", Table::Align::right},
               {"SIZE", Table::Align::right},
               {"NOTE"}});
  for (const auto& topic : topics) {
    const auto found = damaged.find(topic.name);
    const auto in_places = found == damaged.end() ? 0 : found->second;
    table.add({topic.name, fmt::format("{}", topic.partitions), fmt::format("{}", topic.replicas),
               grouped(topic.records), base::format_bytes(topic.bytes),
               topic_note(topic, in_places)});
    report.item(listed_topic(topic, in_places));
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
                        R"("records":"int","bytes":"int","partitions_not_serving":"int",)"
                        R"("partitions_damaged":"int"})",
          .watches = true,
          .run = list};
}

}  // namespace mq::mqctl
