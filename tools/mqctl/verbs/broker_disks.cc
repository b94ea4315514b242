#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/units.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

std::string used_text(const DiskDescription& disk) {
  if (disk.bytes_total == 0) return "?";
  return fmt::format("{} of {}", base::format_bytes(disk.bytes_used),
                     base::format_bytes(disk.bytes_total));
}

Value item_of(std::int32_t broker, const DiskDescription& disk) {
  return Value::object()
      .set("broker", broker)
      .set("path", disk.path)
      .set("id", disk.id.empty() ? Value() : Value(disk.id))
      .set("state", disk.state)
      .set("reason", disk.reason.empty() ? Value() : Value(disk.reason))
      .set("partitions", disk.partitions)
      .set("bytes_used", disk.bytes_used)
      .set("bytes_free", disk.bytes_free)
      .set("bytes_total", disk.bytes_total)
      .set("bytes_written_per_second", disk.write_rate)
      .set("bytes_scrubbed", disk.scrubbed_bytes)
      .set("segments_damaged", disk.scrub_damaged_segments);
}

std::string note_of(const DiskDescription& disk) {
  if (disk.scrub_damaged_segments == 0) return disk.reason;
  const auto damage = fmt::format("scrub found {} damaged segment(s)", disk.scrub_damaged_segments);
  return disk.reason.empty() ? damage : disk.reason + "; " + damage;
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

Exit disks(Context& context) {
  const auto wanted = wanted_brokers(context);
  auto admin = connect_admin(context);
  const auto brokers = admin.describe_brokers();
  Report report(context);
  Table table({{"BROKER", Table::Align::right},
               {"DISK"},
               {"STATE"},
               {"USED"},
               {"FREE", Table::Align::right},
               {"WRITE", Table::Align::right},
               {"PARTITIONS", Table::Align::right},
               {"NOTE"}});
  for (const auto id : wanted) {
    if (brokers.contains(id)) continue;
    auto failure = make_failure(protocol::WireError::invalid_request,
                                fmt::format("there is no broker {}", id));
    failure.item = fmt::format("{}", id);
    report.failure(std::move(failure));
  }
  for (const auto& [id, broker] : brokers) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), id) == wanted.end()) continue;
    if (!broker) {
      report.failure(client_failure(broker.error(), fmt::format("broker {} was not asked", id),
                                    fmt::format("{}", id)));
      continue;
    }
    for (const auto& disk : broker->disks) {
      report.item(item_of(id, disk));
      table.add({fmt::format("{}", id), disk.path, disk.state, used_text(disk),
                 base::format_bytes(disk.bytes_free), base::format_bytes(disk.write_rate) + "/s",
                 fmt::format("{}", disk.partitions), note_of(disk)});
    }
  }
  report.text(table.text());
  return report.finish();
}

}  // namespace

Command broker_disks_command() {
  return {
      .path = "broker disks",
      .summary = "Shows the disks of the brokers: state, space, partitions",
      .examples = {"mqctl broker disks", "mqctl broker disks -o json --fields path,state"},
      .positionals = {{.name = "BROKER", .help = "ids; all without", .least = 0, .most = SIZE_MAX}},
      .item_shape = R"({"broker":"int","path":"string","id":"uuid|null","state":"string",)"
                    R"("reason":"string|null","partitions":"int","bytes_used":"int",)"
                    R"("bytes_free":"int","bytes_total":"int","bytes_written_per_second":"int",)"
                    R"("bytes_scrubbed":"int","segments_damaged":"int"})",
      .run = disks};
}

}  // namespace mq::mqctl
