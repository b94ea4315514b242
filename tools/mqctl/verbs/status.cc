#include <fmt/format.h>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/cluster_health.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

void add_brokers(const Context& context, const ClusterFacts& facts, Report& report) {
  for (const auto& [id, broker] : facts.brokers) {
    if (!broker) continue;  // among the troubles
    report.item(broker_value(*broker));
    report.text(broker_text(*broker));
  }
  if (!context.globals.verbose) return;
  for (const auto& [id, broker] : facts.brokers)
    if (broker) report.text(counters_text(*broker));
}

std::string brokers_up(const ClusterFacts& facts) {
  std::size_t up = 0;
  for (const auto& [id, broker] : facts.brokers) up += broker ? 1 : 0;
  const auto all = counted(facts.cluster.brokers.size(), "broker");
  return up == facts.cluster.brokers.size() ? all : fmt::format("{}, {} up", all, up);
}

std::string metadata_kind(const ClusterFacts& facts) {
  for (const auto& [id, broker] : facts.brokers)
    if (broker) return broker->metadata;
  return "unknown";
}

Exit status(Context& context) {
  auto admin = connect_admin(context);
  const auto facts = take(look_at_cluster(admin), "the cluster was not described");
  std::vector<std::string> troubles;
  for (const auto& check : checks_of(facts))
    troubles.insert(troubles.end(), check.troubles.begin(), check.troubles.end());
  const std::string state = troubles.empty() ? "OK" : "DEGRADED";
  const PartitionCounts counts = count(facts.partitions);
  Report report(context);
  report.head("cluster", facts.cluster.id);
  report.head("state", state);
  report.head("controller", facts.cluster.controller);
  report.head("brokers", std::uint64_t{facts.cluster.brokers.size()});
  report.head("partitions", std::uint64_t{counts.all});
  report.head("partitions_leaderless", std::uint64_t{counts.leaderless});
  report.head("partitions_under_replicated", std::uint64_t{counts.under_replicated});
  report.head("partitions_below_min_isr", std::uint64_t{counts.below_min_isr});
  report.text(fmt::format(
      "cluster {}   {}   {}   controller: {}   metadata: {}   {}\n", facts.cluster.id, state,
      brokers_up(facts),
      facts.cluster.controller < 0 ? "none" : fmt::format("broker {}", facts.cluster.controller),
      metadata_kind(facts), counted(counts.all, "partition")));
  Value lines = Value::array();
  for (const auto& trouble : troubles) {
    report.text(fmt::format("  ! {}\n", trouble));
    lines.add(trouble);
  }
  report.head("troubles", std::move(lines));
  add_brokers(context, facts, report);
  return report.finish();
}

}  // namespace

Command status_command() {
  return {.path = "status",
          .summary = "Shows on one screen whether anything is at risk (also: mqctl alone)",
          .details = "-v adds every counter of each broker.",
          .examples = {"mqctl status", "mqctl status -w", "mqctl status -v -b hdd-01:9500"},
          .item_shape = kBrokerShape,
          .watches = true,
          .run = status};
}

}  // namespace mq::mqctl
