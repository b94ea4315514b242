#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/cluster_health.h"
#include "mqctl/verbs/partition_view.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// So many are asked about why nobody leads them, and so many topics about damage.
constexpr std::size_t kExplained = 1000;

bool wanted(const Context& context, const PartitionInfo& partition) {
  const auto& topics = context.args.positionals;
  if (!topics.empty() && std::ranges::find(topics, partition.topic) == topics.end()) return false;
  if (context.args.has("broker")) {
    const auto id = static_cast<std::int32_t>(context.args.number("broker"));
    if (std::ranges::find(partition.replicas, id) == partition.replicas.end()) return false;
  }
  const bool leaderless = context.args.on("leaderless");
  const bool under = context.args.on("under-replicated");
  const bool min = context.args.on("at-min-isr");
  if (!leaderless && !under && !min) return true;
  // Those that cannot lose one more copy, or have lost too many already, without refusing writes.
  if (min && partition.in_sync.size() <= partition.min_isr) return true;
  return (leaderless && partition.leader < 0) || (under && under_replicated(partition));
}

std::string note_of(const PartitionInfo& partition,
                    const std::map<TopicPartition, std::string>& leaderless,
                    const std::map<TopicPartition, std::string>& damaged) {
  if (partition.leader < 0) {
    const auto found = leaderless.find({partition.topic, partition.partition});
    return found == leaderless.end() ? "no leader" : found->second;
  }
  const auto found = damaged.find({partition.topic, partition.partition});
  auto damage = found == damaged.end() ? std::string() : found->second;
  if (!under_replicated(partition)) return damage;
  return fmt::format("{}{}{} of {} copies in sync{}", damage, damage.empty() ? "" : "; ",
                     partition.in_sync.size(), partition.replicas.size(),
                     refuses_acks_all(partition)
                         ? fmt::format(", acks=all is refused below {}", partition.min_isr)
                         : "");
}

Exit list(Context& context) {
  const auto& topics = context.distinct_items();
  auto admin = connect_admin(context);
  const auto partitions = take(admin.list_partitions(), "the partitions were not listed");
  Report report(context);
  const PartitionCounts counts = count(partitions);
  report.head("partitions", std::uint64_t{counts.all});
  report.head("partitions_leaderless", std::uint64_t{counts.leaderless});
  report.head("partitions_under_replicated", std::uint64_t{counts.under_replicated});
  report.head("partitions_below_min_isr", std::uint64_t{counts.below_min_isr});
  std::set<std::string> known;
  for (const auto& partition : partitions) known.insert(partition.topic);
  for (const auto& topic : topics) {
    if (known.contains(topic)) continue;
    auto failure =
        make_failure(protocol::WireError::unknown_topic, fmt::format("{} was not listed", topic));
    failure.item = topic;
    report.failure(std::move(failure));
  }
  Table table({{"PARTITION"},
               {"LEADER", Table::Align::right},
               {"EPOCH", Table::Align::right},
               {"REPLICAS"},
               {"IN-SYNC"},
               {"NOTE"}});
  std::vector<PartitionInfo> shown;
  for (const auto& partition : partitions)
    if (wanted(context, partition)) shown.push_back(partition);
  const auto leaderless = leaderless_notes(admin, shown, kExplained);
  const auto damaged = damage_notes(admin, shown, kExplained);
  for (const auto& partition : shown) {
    const auto note = note_of(partition, leaderless, damaged);
    report.item(Value::object()
                    .set("topic", partition.topic)
                    .set("partition", partition.partition)
                    .set("leader", partition.leader)
                    .set("leader_epoch", partition.leader_epoch)
                    .set("replicas", ids_value(partition.replicas))
                    .set("in_sync", ids_value(partition.in_sync))
                    .set("min_isr", partition.min_isr)
                    .set("note", note));
    table.add({partition_name(partition.topic, partition.partition),
               partition.leader < 0 ? "none" : fmt::format("{}", partition.leader),
               fmt::format("{}", partition.leader_epoch), ids_text(partition.replicas),
               ids_text(partition.in_sync), note});
  }
  if (table.empty())
    context.notice(fmt::format("none of {}", counted(counts.all, "partition")));
  else
    report.text(table.text());
  return report.finish();
}

}  // namespace

Command partition_list_command() {
  return {.path = "partition list",
          .summary = "Lists partitions with leaders and replicas, also only those in trouble",
          .examples = {"mqctl partition list", "mqctl partition list orders --leaderless",
                       "mqctl partition list --broker 3 -o jsonl"},
          .positionals = {{.name = "TOPIC",
                           .help = "names; all without",
                           .least = 0,
                           .most = SIZE_MAX,
                           .complete = Complete::topics}},
          .flags = {{.name = "leaderless", .help = "only those that nobody leads"},
                    {.name = "under-replicated",
                     .help = "only those with fewer copies in sync than they should have"},
                    {.name = "at-min-isr",
                     .help = "only those that refuse writes with acks=all as soon as one more copy "
                             "is lost"},
                    {.name = "broker",
                     .kind = Kind::number,
                     .value = "ID",
                     .help = "only those with a replica there",
                     .most = INT32_MAX,
                     .complete = Complete::brokers}},
          .item_shape =
              R"({"topic":"string","partition":"int","leader":"int","leader_epoch":"int",)"
              R"("replicas":["int"],"in_sync":["int"],"min_isr":"int","note":"string"})",
          .watches = true,
          .run = list};
}

}  // namespace mq::mqctl
