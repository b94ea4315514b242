#include "mqctl/verbs/cluster_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/partition_view.h"

namespace mq::mqctl {
namespace {

/// Of partitions in the same trouble so many are named.
constexpr std::size_t kNamed = 5;

Check brokers_up(const ClusterFacts& facts) {
  Check check{"brokers", 3, {}};
  for (const auto& [id, broker] : facts.brokers) {
    if (broker) continue;
    const std::string name = fmt::format("broker {} ({})", id, address_of(facts.cluster, id));
    if (is_away(facts.cluster, id)) {
      check.troubles.push_back(fmt::format("{} is not in the cluster", name));
    } else {
      check.troubles.push_back(fmt::format("{} does not answer: {}", name, broker.error().message));
    }
  }
  return check;
}

Check controller(const ClusterFacts& facts) {
  Check check{"controller", 2, {}};
  if (facts.cluster.controller < 0) check.troubles.emplace_back("there is no controller");
  return check;
}

Check leaders(const ClusterFacts& facts) {
  Check check{"leaders", 2, {}};
  std::set<std::int32_t> replicas;
  const PartitionCounts counts = count(facts.partitions);
  if (counts.leaderless == 0) return check;
  for (const auto& partition : facts.partitions) {
    if (partition.leader < 0) replicas.insert(partition.replicas.begin(), partition.replicas.end());
  }
  check.troubles.push_back(fmt::format("{} of {} have no leader (they are on {} {})",
                                       counts.leaderless, counted(counts.all, "partition"),
                                       replicas.size() == 1 ? "broker" : "brokers",
                                       fmt::join(replicas, ", ")));
  for (const auto& [partition, why] : facts.leaderless)
    check.troubles.push_back(
        fmt::format("{}: {}", partition_name(partition.topic, partition.partition), why));
  if (!facts.leaderless.empty() && facts.leaderless.size() < counts.leaderless)
    check.troubles.push_back(fmt::format("and {} more: mqctl partition list --leaderless",
                                         counts.leaderless - facts.leaderless.size()));
  return check;
}

std::string missing_text(const PartitionInfo& partition) {
  std::vector<std::int32_t> missing;
  for (const auto broker : partition.replicas)
    if (std::ranges::count(partition.in_sync, broker) == 0) missing.push_back(broker);
  return fmt::format("{} ({} of min_isr {} in sync, without broker{} {})",
                     partition_name(partition.topic, partition.partition), partition.in_sync.size(),
                     partition.min_isr, missing.size() == 1 ? "" : "s", ids_text(missing));
}

Check writes(const ClusterFacts& facts) {
  Check check{"writes", 2, {}};
  std::vector<std::string> names;
  for (const auto& partition : facts.partitions) {
    if (refuses_acks_all(partition) && names.size() < kNamed)
      names.push_back(missing_text(partition));
  }
  const PartitionCounts counts = count(facts.partitions);
  if (names.empty()) return check;
  const auto more = counts.below_min_isr - names.size();
  check.troubles.push_back(
      fmt::format("acks=all is refused (NOT_ENOUGH_REPLICAS) by {} of {}: {}{}",
                  counts.below_min_isr, counted(counts.all, "partition"), fmt::join(names, ", "),
                  more == 0 ? "" : fmt::format(" and {} more", more)));
  return check;
}

Check serving(const ClusterFacts& facts) {
  Check check{"serving", 2, {}};
  for (const auto& [id, broker] : facts.brokers) {
    if (!broker) continue;
    if (broker->partitions_recovering > 0) {
      check.troubles.push_back(
          fmt::format("broker {}: recovering after an unclean stop, {} of {} partitions left, {} "
                      "read so far",
                      id, broker->partitions_recovering, broker->partitions,
                      base::format_bytes(broker->recovery_bytes_read)));
    } else if (broker->partitions_not_serving > 0) {
      check.troubles.push_back(fmt::format("broker {}: {} of {} partitions are not served", id,
                                           broker->partitions_not_serving, broker->partitions_led));
    }
  }
  return check;
}

Check replication(const ClusterFacts& facts) {
  Check check{"replication", 3, {}};
  const PartitionCounts counts = count(facts.partitions);
  if (counts.under_replicated > 0) {
    check.troubles.push_back(fmt::format("{} of {} have fewer copies in sync than they should",
                                         counts.under_replicated,
                                         counted(counts.all, "partition")));
  }
  return check;
}

Check metadata(const ClusterFacts& facts) {
  Check check{"metadata", 3, {}};
  for (const auto& [id, broker] : facts.brokers) {
    if (!broker) continue;
    if (!broker->metadata_trouble.empty()) {
      check.troubles.push_back(fmt::format("broker {}: {}; producing and consuming go on", id,
                                           broker->metadata_trouble));
    } else if (broker->lease_lost) {
      check.troubles.push_back(
          fmt::format("broker {}: the metadata store has not confirmed its session of late", id));
    }
  }
  return check;
}

Check disks(const ClusterFacts& facts) {
  Check check{"disks", 4, {}};
  for (const auto& [id, broker] : facts.brokers) {
    if (!broker) continue;
    for (const auto& disk : broker->disks) {
      if (disk.state == "ok") continue;
      check.troubles.push_back(fmt::format("broker {}: disk {} is {}{}{}", id, disk.path,
                                           disk.state, disk.reason.empty() ? "" : ": ",
                                           disk.reason));
    }
  }
  return check;
}

Check rules(const ClusterFacts& facts) {
  Check check{"rules", 4, {}};
  for (const auto& [id, broker] : facts.brokers) {
    if (!broker) continue;
    if (const auto broken = broken_invariants(*broker); broken > 0) {
      check.troubles.push_back(fmt::format(
          "broker {}: {} of its own rules were found broken (mqctl status -v)", id, broken));
    }
  }
  return check;
}

/// What brokers themselves give the alarm for. Several may say the same.
void add_alerts(const ClusterFacts& facts, std::vector<Check>& checks) {
  for (const auto& [id, broker] : facts.brokers) {
    if (!broker) continue;
    for (const auto& alert : broker->alerts) {
      const auto same = [&](const Check& check) {
        return check.name == alert.check && check.level == alert.level;
      };
      auto check = std::ranges::find_if(checks, same);
      if (check == checks.end()) check = checks.insert(check, Check{alert.check, alert.level, {}});
      if (std::ranges::count(check->troubles, alert.text) == 0)
        check->troubles.push_back(alert.text);
    }
  }
}

}  // namespace

bool under_replicated(const PartitionInfo& partition) {
  return partition.leader >= 0 && partition.in_sync.size() < partition.replicas.size();
}

bool refuses_acks_all(const PartitionInfo& partition) {
  return partition.leader >= 0 && partition.in_sync.size() < partition.min_isr;
}

PartitionCounts count(const std::vector<PartitionInfo>& partitions) {
  PartitionCounts counts;
  counts.all = partitions.size();
  for (const auto& partition : partitions) {
    if (partition.leader < 0) ++counts.leaderless;
    if (under_replicated(partition)) ++counts.under_replicated;
    if (refuses_acks_all(partition)) ++counts.below_min_isr;
  }
  return counts;
}

Result<ClusterFacts> look_at_cluster(Admin& admin) {
  ClusterFacts facts;
  auto cluster = admin.describe_cluster();
  if (!cluster) return cluster.error();
  facts.cluster = std::move(*cluster);
  facts.brokers = admin.describe_brokers();
  auto partitions = admin.list_partitions();
  if (!partitions) return partitions.error();
  facts.partitions = std::move(*partitions);
  facts.leaderless = leaderless_notes(admin, facts.partitions, kNamed);
  return facts;
}

std::vector<Check> checks_of(const ClusterFacts& facts) {
  std::vector<Check> checks{
      Check{"answer", 1, {}}, controller(facts),  leaders(facts),  serving(facts), writes(facts),
      brokers_up(facts),      replication(facts), metadata(facts), disks(facts),   rules(facts)};
  add_alerts(facts, checks);
  return checks;
}

}  // namespace mq::mqctl
