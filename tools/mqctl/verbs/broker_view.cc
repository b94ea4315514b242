#include "mqctl/verbs/broker_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/units.h"
#include "mqctl/cli/table.h"
#include "mqctl/cli/text.h"

namespace mq::mqctl {
namespace {

const BrokerInfo* find(const ClusterDescription& cluster, std::int32_t id) {
  const auto found = std::ranges::find(cluster.brokers, id, &BrokerInfo::id);
  return found == cluster.brokers.end() ? nullptr : &*found;
}

}  // namespace

const char* const kBrokerShape =
    R"({"broker":"int","address":"string","rack":"string|null","version":"string","metadata":"string",)"
    R"("uptime_ms":"int","process_id":"int","resident_bytes":"int","cpu_user_ms":"int",)"
    R"("cpu_system_ms":"int","workers":"int","connections":"int","topics":"int",)"
    R"("partitions":"int","partitions_led":"int","partitions_not_serving":"int",)"
    R"("partitions_damaged":"int","partitions_recovering":"int","recovery_bytes_read":"int",)"
    R"("controller":"int","broker_epoch":"int","metadata_trouble":"string|null",)"
    R"("lease_lost":"bool","clock_ahead_ms":"int|null","disks":[{"path":"string",)"
    R"("state":"string","bytes_used":"int","bytes_free":"int","bytes_total":"int",)"
    R"("partitions":"int"}],"alerts":[{"check":"string","level":"int","text":"string"}],)"
    R"("warnings":["string"],)"
    R"("counters":{"NAME":"int"}})";

std::string address_of(const ClusterDescription& cluster, std::int32_t id) {
  const BrokerInfo* broker = find(cluster, id);
  return broker == nullptr ? "" : broker->address;
}

std::string rack_of(const ClusterDescription& cluster, std::int32_t id) {
  const BrokerInfo* broker = find(cluster, id);
  return broker == nullptr ? "" : broker->rack;
}

Value rack_value(const ClusterDescription& cluster, std::int32_t id) {
  const auto rack = rack_of(cluster, id);
  return rack.empty() ? Value() : Value(rack);
}

bool is_away(const ClusterDescription& cluster, std::int32_t id) {
  const BrokerInfo* broker = find(cluster, id);
  return broker != nullptr && broker->away;
}

std::int64_t broken_invariants(const BrokerDescription& broker) {
  std::int64_t sum = 0;
  for (const auto& [name, value] : broker.counters)
    if (name.starts_with("invariant_violations")) sum += value;
  return sum;
}

std::string percent_full(const DiskDescription& disk) {
  if (disk.bytes_total == 0) return "?";
  return fmt::format("{}%", (disk.bytes_total - disk.bytes_free) * 100 / disk.bytes_total);
}

Value broker_value(const BrokerDescription& broker) {
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
  Value alerts = Value::array();
  for (const auto& alert : broker.alerts)
    alerts.add(Value::object()
                   .set("check", alert.check)
                   .set("level", alert.level)
                   .set("text", alert.text));
  Value warnings = Value::array();
  for (const auto& warning : broker.warnings) warnings.add(warning);
  return Value::object()
      .set("broker", broker.id)
      .set("address", broker.address)
      .set("rack", broker.rack.empty() ? Value() : Value(broker.rack))
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
      .set("partitions_led", broker.partitions_led)
      .set("partitions_not_serving", broker.partitions_not_serving)
      .set("partitions_damaged", broker.partitions_damaged)
      .set("partitions_recovering", broker.partitions_recovering)
      .set("recovery_bytes_read", broker.recovery_bytes_read)
      .set("controller", broker.controller)
      .set("broker_epoch", broker.broker_epoch)
      .set("metadata_trouble",
           broker.metadata_trouble.empty() ? Value() : Value(broker.metadata_trouble))
      .set("lease_lost", broker.lease_lost)
      .set("clock_ahead_ms",
           broker.clock_ahead ? Value(std::int64_t{broker.clock_ahead->count()}) : Value())
      .set("disks", std::move(disks))
      .set("alerts", std::move(alerts))
      .set("warnings", std::move(warnings))
      .set("counters", std::move(counters));
}

std::string broker_text(const BrokerDescription& broker) {
  std::string text = fmt::format(
      "  broker {}  {}{}  up {}  pid {}  v{}  {} RSS  {} CPU  {}  leads {} of {}\n", broker.id,
      broker.address, broker.rack.empty() ? "" : "  rack " + broker.rack, format_age(broker.uptime),
      broker.process_id, broker.version, base::format_bytes(broker.resident_bytes),
      format_time(broker.cpu_user + broker.cpu_system), counted(broker.connections, "connection"),
      broker.partitions_led, counted(broker.partitions, "partition"));
  for (const auto& disk : broker.disks)
    text += fmt::format("    disk {}  {}  {} full, {} free  {} in {}\n", disk.path, disk.state,
                        percent_full(disk), base::format_bytes(disk.bytes_free),
                        base::format_bytes(disk.bytes_used), counted(disk.partitions, "partition"));
  for (const auto& warning : broker.warnings) text += fmt::format("    warning: {}\n", warning);
  return text;
}

std::string clock_text(const BrokerDescription& broker) {
  if (!broker.clock_ahead) return "not compared with another broker's";
  const auto off = std::chrono::abs(*broker.clock_ahead);
  if (off < std::chrono::seconds(1)) return "within 1 s of the median of all";
  return fmt::format("{} {} the median of all", format_age(off),
                     *broker.clock_ahead > Duration(0) ? "ahead of" : "behind");
}

std::string counters_text(const BrokerDescription& broker) {
  Table table({{"COUNTER"}, {"VALUE", Table::Align::right}});
  for (const auto& [name, value] : broker.counters) table.add({name, fmt::format("{}", value)});
  return fmt::format("\ncounters of broker {}\n{}", broker.id, table.text());
}

std::vector<std::int32_t> wanted_brokers(const Context& context) {
  std::vector<std::int32_t> wanted;
  for (const auto& text : context.distinct_items()) {
    const auto number = base::parse_unsigned(text);
    if (!number || *number > INT32_MAX)
      throw Failed(usage_failure(fmt::format("\"{}\" is not a broker's id", text)));
    wanted.push_back(static_cast<std::int32_t>(*number));
  }
  return wanted;
}

Failure no_such_broker(std::int32_t id) {
  auto failure =
      make_failure(protocol::WireError::invalid_request, fmt::format("there is no broker {}", id),
                   "the cluster has none of this id", "mqctl broker list names them");
  failure.item = fmt::format("{}", id);
  return failure;
}

std::string ids_text(const std::vector<std::int32_t>& brokers) {
  return fmt::format("{}", fmt::join(brokers, ","));
}

Value ids_value(const std::vector<std::int32_t>& brokers) {
  Value array = Value::array();
  for (const auto id : brokers) array.add(id);
  return array;
}

}  // namespace mq::mqctl
