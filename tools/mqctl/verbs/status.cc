#include <fmt/format.h>

#include "base/units.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/cli/text.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

using Brokers = std::map<std::int32_t, Result<BrokerDescription>>;

std::string address_of(const ClusterDescription& cluster, std::int32_t id) {
  for (const auto& broker : cluster.brokers)
    if (broker.id == id) return broker.address;
  return "";
}

std::int64_t broken_invariants(const BrokerDescription& broker) {
  std::int64_t sum = 0;
  for (const auto& [name, value] : broker.counters)
    if (name.starts_with("invariant_violations")) sum += value;
  return sum;
}

/// What is wrong, one line each; none is "OK".
std::vector<std::string> troubles_of(const ClusterDescription& cluster, const Brokers& brokers) {
  std::vector<std::string> lines;
  for (const auto& [id, broker] : brokers) {
    if (!broker) {
      lines.push_back(fmt::format("broker {} ({}) does not answer: {}", id, address_of(cluster, id),
                                  broker.error().message));
      continue;
    }
    if (broker->partitions_recovering > 0)
      lines.push_back(
          fmt::format("broker {}: recovering after an unclean stop, {} of {} partitions "
                      "left, {} read so far",
                      id, broker->partitions_recovering, broker->partitions,
                      base::format_bytes(broker->recovery_bytes_read)));
    else if (broker->partitions_not_serving > 0)
      lines.push_back(fmt::format("broker {}: {} of {} partitions are not served", id,
                                  broker->partitions_not_serving, broker->partitions));
    if (broker->partitions_damaged > 0)
      lines.push_back(fmt::format("broker {}: {} of {} partitions are damaged (named below)", id,
                                  broker->partitions_damaged, broker->partitions));
    for (const auto& disk : broker->disks)
      if (disk.state != "ok")
        lines.push_back(fmt::format("broker {}: disk {} is {}{}{}", id, disk.path, disk.state,
                                    disk.reason.empty() ? "" : ": ", disk.reason));
    if (const auto broken = broken_invariants(*broker); broken > 0)
      lines.push_back(fmt::format(
          "broker {}: {} of its own rules were found broken (mqctl status -v)", id, broken));
  }
  if (cluster.controller < 0) lines.emplace_back("there is no controller");
  return lines;
}

std::string percent(const DiskDescription& disk) {
  if (disk.bytes_total == 0) return "?";
  return fmt::format("{}%", (disk.bytes_total - disk.bytes_free) * 100 / disk.bytes_total);
}

std::string broker_text(const BrokerDescription& broker) {
  std::string text = fmt::format(
      "  broker {}  {}  up {}  pid {}  v{}  {} RSS  {} CPU  {}  {}\n", broker.id, broker.address,
      format_age(broker.uptime), broker.process_id, broker.version,
      base::format_bytes(broker.resident_bytes), format_time(broker.cpu_user + broker.cpu_system),
      counted(broker.topics, "topic"), counted(broker.partitions, "partition"));
  for (const auto& disk : broker.disks)
    text += fmt::format("    disk {}  {}  {} full, {} free  {} in {}\n", disk.path, disk.state,
                        percent(disk), base::format_bytes(disk.bytes_free),
                        base::format_bytes(disk.bytes_used), counted(disk.partitions, "partition"));
  for (const auto& warning : broker.warnings) text += fmt::format("    warning: {}\n", warning);
  return text;
}

std::string counters_text(const BrokerDescription& broker) {
  Table table({{"COUNTER"}, {"VALUE", Table::Align::right}});
  for (const auto& [name, value] : broker.counters) table.add({name, fmt::format("{}", value)});
  return fmt::format("\ncounters of broker {}\n{}", broker.id, table.text());
}

Value item_of(const BrokerDescription& broker) {
  Value disks = Value::array();
  for (const auto& disk : broker.disks)
    disks.add(Value::object()
                  .set("path", disk.path)
                  .set("state", disk.state)
                  .set("bytes_used", disk.bytes_used)
                  .set("bytes_free", disk.bytes_free)
                  .set("bytes_total", disk.bytes_total)
                  .set("partitions", disk.partitions));
  Value counters = Value::object();
  for (const auto& [name, value] : broker.counters) counters.set(name, value);
  Value warnings = Value::array();
  for (const auto& warning : broker.warnings) warnings.add(warning);
  return Value::object()
      .set("broker", broker.id)
      .set("address", broker.address)
      .set("version", broker.version)
      .set("metadata", broker.metadata)
      .set("uptime_ms", std::int64_t{broker.uptime.count()})
      .set("process_id", broker.process_id)
      .set("resident_bytes", broker.resident_bytes)
      .set("cpu_user_ms", std::int64_t{broker.cpu_user.count()})
      .set("cpu_system_ms", std::int64_t{broker.cpu_system.count()})
      .set("workers", broker.workers)
      .set("connections", broker.connections)
      .set("topics", broker.topics)
      .set("partitions", broker.partitions)
      .set("partitions_not_serving", broker.partitions_not_serving)
      .set("partitions_damaged", broker.partitions_damaged)
      .set("partitions_recovering", broker.partitions_recovering)
      .set("recovery_bytes_read", broker.recovery_bytes_read)
      .set("disks", std::move(disks))
      .set("warnings", std::move(warnings))
      .set("counters", std::move(counters));
}

void add_brokers(const Context& context, const ClusterDescription& cluster, const Brokers& brokers,
                 Report& report) {
  for (const auto& [id, broker] : brokers) {
    if (!broker) {
      report.failure(client_failure(
          broker.error(), fmt::format("broker {} ({}) was not asked", id, address_of(cluster, id)),
          fmt::format("{}", id)));
      continue;
    }
    report.item(item_of(*broker));
    report.text(broker_text(*broker));
  }
  if (!context.globals.verbose) return;
  for (const auto& [id, broker] : brokers)
    if (broker) report.text(counters_text(*broker));
}

Exit status(Context& context) {
  auto admin = connect_admin(context);
  const auto cluster = take(admin.describe_cluster(), "the cluster was not described");
  const auto brokers = admin.describe_brokers();
  const auto troubles = troubles_of(cluster, brokers);
  const std::string state = troubles.empty() ? "OK" : "DEGRADED";
  Report report(context);
  report.head("cluster", cluster.id);
  report.head("state", state);
  report.head("controller", cluster.controller);
  report.text(
      fmt::format("cluster {}   {}   {}   controller: {}\n", cluster.id, state,
                  counted(cluster.brokers.size(), "broker"),
                  cluster.controller < 0 ? "none" : fmt::format("broker {}", cluster.controller)));
  Value lines = Value::array();
  for (const auto& trouble : troubles) {
    report.text(fmt::format("  ! {}\n", trouble));
    lines.add(trouble);
  }
  report.head("troubles", std::move(lines));
  add_brokers(context, cluster, brokers, report);
  return report.finish();
}

}  // namespace

Command status_command() {
  return {.path = "status",
          .summary = "Shows on one screen whether anything is at risk (also: mqctl alone)",
          .details = "-v adds every counter of each broker.",
          .examples = {"mqctl status", "mqctl status -v -b hdd-01:9500"},
          .item_shape =
              R"({"broker":"int","address":"string","version":"string","metadata":"string",)"
              R"("uptime_ms":"int","process_id":"int","resident_bytes":"int","cpu_user_ms":"int",)"
              R"("cpu_system_ms":"int","workers":"int","connections":"int","topics":"int",)"
              R"("partitions":"int","partitions_not_serving":"int","partitions_damaged":"int",)"
              R"("partitions_recovering":"int","recovery_bytes_read":"int",)"
              R"("disks":[{"path":"string",)"
              R"("state":"string","bytes_used":"int","bytes_free":"int","bytes_total":"int",)"
              R"("partitions":"int"}],"warnings":["string"],"counters":{"NAME":"int"}})",
          .run = status};
}

}  // namespace mq::mqctl
