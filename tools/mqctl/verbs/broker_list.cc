#include <fmt/format.h>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/cli/text.h"
#include "mqctl/verbs/broker_view.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// Of the alarms the one that the list says more about.
constexpr std::string_view kClockCheck = "clocks";

/// "up", "away" (not in the cluster) or "silent" (in the cluster, and does not answer).
std::string state_of(const ClusterDescription& cluster, std::int32_t id,
                     const Result<BrokerDescription>& broker) {
  if (broker) return "up";
  return is_away(cluster, id) ? "away" : "silent";
}

std::string note_of(const ClusterDescription& cluster, std::int32_t id,
                    const Result<BrokerDescription>& broker) {
  std::string note = cluster.controller == id ? "controller" : "";
  const auto add = [&](const std::string& more) { note += (note.empty() ? "" : "; ") + more; };
  if (!broker) {
    if (!is_away(cluster, id)) add(broker.error().message);
    return note;
  }
  if (!broker->metadata_trouble.empty()) add(broker->metadata_trouble);
  if (broker->partitions_not_serving > 0)
    add(fmt::format("{} not served", counted(broker->partitions_not_serving, "partition")));
  for (const auto& alert : broker->alerts)
    add(alert.check == kClockCheck ? "clock " + clock_text(*broker) : alert.check + " alarm");
  if (!broker->warnings.empty()) add(counted(broker->warnings.size(), "warning"));
  return note;
}

Value item_of(const ClusterDescription& cluster, std::int32_t id,
              const Result<BrokerDescription>& broker) {
  Value item = Value::object()
                   .set("broker", id)
                   .set("address", address_of(cluster, id))
                   .set("rack", rack_value(cluster, id))
                   .set("state", state_of(cluster, id, broker))
                   .set("controller", cluster.controller == id);
  if (broker) {
    return item.set("version", broker->version)
        .set("uptime_ms", std::int64_t{broker->uptime.count()})
        .set("partitions", broker->partitions)
        .set("partitions_led", broker->partitions_led);
  }
  return item.set("version", Value())
      .set("uptime_ms", Value())
      .set("partitions", Value())
      .set("partitions_led", Value());
}

Exit list(Context& context) {
  auto admin = connect_admin(context);
  const auto cluster = take(admin.describe_cluster(), "the brokers were not listed");
  const auto brokers = admin.describe_brokers();
  Report report(context);
  report.head("cluster", cluster.id);
  report.head("controller", cluster.controller);
  Table table({{"BROKER", Table::Align::right},
               {"ADDRESS"},
               {"RACK"},
               {"STATE"},
               {"UP", Table::Align::right},
               {"LEADS", Table::Align::right},
               {"PARTITIONS", Table::Align::right},
               {"NOTE"}});
  for (const auto& [id, broker] : brokers) {
    report.item(item_of(cluster, id, broker));
    table.add({fmt::format("{}", id), address_of(cluster, id), rack_of(cluster, id),
               state_of(cluster, id, broker), broker ? format_age(broker->uptime) : "",
               broker ? fmt::format("{}", broker->partitions_led) : "",
               broker ? fmt::format("{}", broker->partitions) : "", note_of(cluster, id, broker)});
  }
  report.text(table.text());
  return report.finish();
}

Exit describe(Context& context) {
  const auto wanted = wanted_brokers(context);
  auto admin = connect_admin(context);
  const auto cluster = take(admin.describe_cluster(), "the brokers were not described");
  const auto brokers = admin.describe_brokers();
  Report report(context);
  report.head("cluster", cluster.id);
  report.head("cluster_controller", cluster.controller);
  for (const auto id : wanted) {
    const auto found = brokers.find(id);
    if (found == brokers.end()) {
      report.failure(no_such_broker(id));
      continue;
    }
    if (!found->second) {
      report.failure(client_failure(found->second.error(),
                                    fmt::format("broker {} was not described", id),
                                    fmt::format("{}", id)));
      continue;
    }
    const auto& broker = *found->second;
    report.item(broker_value(broker));
    report.text(broker_text(broker));
    report.text(fmt::format(
        "    metadata: {}{}{}   registration {}{}   controller: {}{}\n", broker.metadata,
        broker.metadata_trouble.empty() ? "" : ", ", broker.metadata_trouble, broker.broker_epoch,
        broker.lease_lost ? ", its session not confirmed of late" : "",
        broker.controller < 0 ? "none" : fmt::format("broker {}", broker.controller),
        broker.controller == id ? " (this one)" : ""));
    report.text(fmt::format("    clock: {}\n", clock_text(broker)));
    for (const auto& alert : broker.alerts)
      report.text(fmt::format("    alarm: {}: {}\n", alert.check, alert.text));
    if (context.globals.verbose) report.text(counters_text(broker));
  }
  return report.finish();
}

}  // namespace

Command broker_list_command() {
  return {
      .path = "broker list",
      .summary = "Lists the brokers of the cluster, also those that are away",
      .examples = {"mqctl broker list", "mqctl broker list -o json --fields broker,state"},
      .item_shape =
          R"({"broker":"int","address":"string","rack":"string|null","state":"up|away|silent","controller":"bool",)"
          R"("version":"string|null","uptime_ms":"int|null","partitions":"int|null",)"
          R"("partitions_led":"int|null"})",
      .watches = true,
      .run = list};
}

Command broker_describe_command() {
  return {.path = "broker describe",
          .summary = "Shows a broker: its disks, partitions, registration, clock and warnings",
          .details = "-v adds every counter.",
          .examples = {"mqctl broker describe 1", "mqctl broker describe 1 2 -o json"},
          .positionals = {{.name = "BROKER",
                           .help = "one or more ids",
                           .most = SIZE_MAX,
                           .complete = Complete::brokers}},
          .item_shape = kBrokerShape,
          .watches = true,
          .run = describe};
}

}  // namespace mq::mqctl
