#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/broker_view.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

std::string used_text(const DiskDescription& disk) {
  if (disk.bytes_total == 0) return "?";
  return fmt::format("{} of {}", base::format_bytes(disk.bytes_used),
                     base::format_bytes(disk.bytes_total));
}

Value epoch_value(std::int64_t epoch) { return epoch < 0 ? Value() : Value(epoch); }

/// Since which epochs of the broker nothing can be missing under durability disk, and memory.
std::string intact_text(const DiskDescription& disk) {
  const auto text = [](std::int64_t epoch) {
    return epoch < 0 ? std::string("?") : fmt::format("{}", epoch);
  };
  return text(disk.intact_since_disk) + " / " + text(disk.intact_since_memory);
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
      .set("segments_damaged", disk.scrub_damaged_segments)
      .set("intact_since_disk", epoch_value(disk.intact_since_disk))
      .set("intact_since_memory", epoch_value(disk.intact_since_memory))
      .set("bytes_put_aside", disk.aside_bytes)
      .set("logs_put_aside", disk.aside_logs);
}

std::string note_of(const DiskDescription& disk) {
  std::string note = disk.reason;
  const auto add = [&](const std::string& more) { note += (note.empty() ? "" : "; ") + more; };
  if (disk.scrub_damaged_segments > 0)
    add("scrub found " + counted(disk.scrub_damaged_segments, "damaged segment"));
  if (disk.aside_logs > 0)
    add(fmt::format("{} in {} put aside in {}/unknown", base::format_bytes(disk.aside_bytes),
                    counted(disk.aside_logs, "log"), disk.path));
  return note;
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
               {"INTACT SINCE EPOCH"},
               {"NOTE"}});
  for (const auto id : wanted) {
    if (brokers.contains(id)) continue;
    report.failure(no_such_broker(id));
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
                 fmt::format("{}", disk.partitions), intact_text(disk), note_of(disk)});
    }
  }
  report.text(table.text());
  return report.finish();
}

}  // namespace

Command broker_disks_command() {
  return {.path = "broker disks",
          .summary = "Shows the disks of the brokers: state, space, partitions",
          .examples = {"mqctl broker disks", "mqctl broker disks -o json --fields path,state"},
          .positionals = {{.name = "BROKER",
                           .help = "ids; all without",
                           .least = 0,
                           .most = SIZE_MAX,
                           .complete = Complete::brokers}},
          .item_shape =
              R"({"broker":"int","path":"string","id":"uuid|null","state":"string",)"
              R"("reason":"string|null","partitions":"int","bytes_used":"int",)"
              R"("bytes_free":"int","bytes_total":"int","bytes_written_per_second":"int",)"
              R"("bytes_scrubbed":"int","segments_damaged":"int","intact_since_disk":"int|null",)"
              R"("intact_since_memory":"int|null","bytes_put_aside":"int","logs_put_aside":"int"})",
          .watches = true,
          .run = disks};
}

}  // namespace mq::mqctl
