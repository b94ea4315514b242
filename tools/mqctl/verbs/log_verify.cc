#include <fmt/format.h>

#include "base/real/posix_file_system.h"
#include "base/units.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/log_files.h"
#include "mqctl/verbs/log_journal.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

std::string place(const storage::VerifyReport::Damage& damage) {
  std::string text = fmt::format("{} at byte {} of {}", storage::state_name(damage.state),
                                 damage.position, damage.file);
  if (damage.want != damage.got)
    text += fmt::format(" (want {:x}, got {:x})", damage.want, damage.got);
  return text;
}

std::string state_text(const storage::VerifyReport& checked) {
  if (!checked.damage) return "ok";
  if (checked.damage->torn_tail)
    return fmt::format("ok; unfinished tail at byte {} of {}, {} at the next start",
                       checked.damage->position, checked.damage->file,
                       checked.damage->from_journal ? "written again from the journal" : "cut");
  return "BAD " + place(*checked.damage);
}

Value damage_value(const storage::VerifyReport& checked) {
  if (!checked.damage) return {};
  const auto& damage = *checked.damage;
  return Value::object()
      .set("file", damage.file)
      .set("position", damage.position)
      .set("state", storage::state_name(damage.state))
      .set("want", damage.want)
      .set("got", damage.got)
      .set("last_good_offset", damage.last_good_offset.value())
      .set("torn_tail", damage.torn_tail);
}

Value item_of(const storage::PartitionDirectory& partition, const storage::VerifyReport& checked) {
  return Value::object()
      .set("path", partition.path)
      .set("topic", partition.topic_name.empty() ? Value() : Value(partition.topic_name))
      .set("good", checked.good)
      .set("segments", std::uint64_t{partition.segments.size()})
      .set("batches", checked.batches)
      .set("records", checked.records)
      .set("bytes", checked.bytes)
      .set("log_start_offset", checked.log_start_offset.value())
      .set("end_offset", checked.end_offset.value())
      .set("damage", damage_value(checked))
      .set("journal", Value());
}

Failure damage_failure(const storage::PartitionDirectory& partition,
                       const storage::VerifyReport& checked) {
  const auto& damage = *checked.damage;
  std::string why = place(damage);
  std::string next =
      fmt::format("mqctl log dump {} shows the batches before it; last good offset {}",
                  partition.path, damage.last_good_offset.value());
  if (damage.durable_to != model::Offset())
    why += fmt::format("; the log was durable up to offset {}", damage.durable_to.value());
  if (damage.sound_from != model::Offset()) {
    why += fmt::format(
        "; what follows is sound from offset {} on, but a start after a crash cuts it off",
        damage.sound_from.value());
    next = fmt::format("copy {} before a broker starts on it; ", partition.path) + next;
  }
  auto failure = make_failure(protocol::WireError::log_damaged,
                              fmt::format("{} is damaged", partition_name(partition)), why, next);
  failure.item = partition.path;
  return failure;
}

void verify_one(base::FileSystem& files, const storage::PartitionDirectory& partition,
                Report& report, Table& table) {
  const auto checked = storage::verify_partition(files, partition);
  if (!checked) {
    auto failure = make_failure(protocol::WireError::file_unreadable,
                                fmt::format("{} cannot be read", partition_name(partition)),
                                checked.error().message());
    failure.item = partition.path;
    report.failure(std::move(failure));
    return;
  }
  report.item(item_of(partition, *checked));
  table.add({partition_name(partition), fmt::format("{}", partition.segments.size()),
             fmt::format("{}", checked->log_start_offset.value()),
             fmt::format("{}", checked->end_offset.value()), grouped(checked->records),
             base::format_bytes(checked->bytes), state_text(*checked)});
  if (!checked->good) report.failure(damage_failure(partition, *checked));
}

/// What the logs have to hold is known by the journal. Without it they are judged by the checkpoint
/// alone, and that is said.
void take_from_journal_of(Context& context, base::FileSystem& files, const std::string& data,
                          std::vector<storage::PartitionDirectory>& partitions, Report& report) {
  const auto journal = storage::find_journal(files, data, journal_elsewhere(context));
  if (!journal) return;
  storage::take_from_journal(files, *journal, partitions);
  if (!find_journal_files(files, journal->directory).empty()) return;
  auto failure = make_failure(
      protocol::WireError::file_unreadable, fmt::format("the journal of {} is not there", data),
      fmt::format("there are no journal files in {}; its logs were checked by the checkpoint alone",
                  journal->directory),
      "--journal names its folder, if broker.toml puts it elsewhere");
  failure.item = journal->directory;
  report.failure(std::move(failure));
}

void verify_journal_of(Context& context, base::FileSystem& files, const std::string& path,
                       Report& report, std::string& lines) {
  const auto journal = verify_journal(files, path, journal_elsewhere(context));
  if (!journal) return;
  const bool good = journal->problem.empty();
  Value item = Value::object().set("path", journal->directory).set("topic", Value());
  item.set("good", good);
  for (const char* field :
       {"segments", "batches", "records", "bytes", "log_start_offset", "end_offset", "damage"})
    item.set(field, Value());
  item.set("journal", Value::object()
                          .set("files", std::uint64_t{journal->files})
                          .set("partitions", std::uint64_t{journal->partitions})
                          .set("problem", good ? Value() : Value(journal->problem)));
  report.item(std::move(item));
  lines +=
      fmt::format("journal {}: {} files, {} partitions, {}\n", journal->directory, journal->files,
                  journal->partitions, good ? "ok" : "BAD " + journal->problem);
  if (good) return;
  auto failure = make_failure(
      protocol::WireError::log_damaged, fmt::format("{} is damaged", journal->directory),
      journal->problem, fmt::format("mqctl log dump {} shows its groups", journal->directory));
  failure.item = journal->directory;
  report.failure(std::move(failure));
}

/// Damage decides the exit code, whatever else was found.
Exit verify(Context& context) {
  base::PosixFileSystem files;
  Report report(context);
  Table table({{"PARTITION"},
               {"SEGMENTS", Table::Align::right},
               {"FIRST", Table::Align::right},
               {"NEXT", Table::Align::right},
               {"RECORDS", Table::Align::right},
               {"SIZE", Table::Align::right},
               {"STATE"}});
  std::string journals;
  for (const auto& path : context.args.positionals) {
    if (find_journal_files(files, path).empty()) {
      auto partitions = find_partitions(files, path);
      // A single segment is no whole log.
      if (!partitions.empty() && !path.ends_with(".log"))
        take_from_journal_of(context, files, parent_of(partitions.front().path), partitions,
                             report);
      for (const auto& partition : partitions) verify_one(files, partition, report, table);
    }
    verify_journal_of(context, files, path, report, journals);
  }
  if (table.empty() && journals.empty())
    context.notice("no partitions there");
  else
    report.text((table.empty() ? std::string() : table.text()) + journals);
  const bool damaged = report.has_failure("LOG_DAMAGED");
  const Exit exit = report.finish();
  return damaged ? Exit::unhealthy : exit;
}

}  // namespace

Command log_verify_command() {
  return {.path = "log verify",
          .summary = "Checks every batch of logs on disk, and the journal; needs no broker",
          .details =
              "Reads only. Works beside a running broker. Exit code 10 when a log is "
              "damaged; an unfinished tail\nabove all that is durable, with nothing sound behind "
              "it, is what a crash leaves and is no damage.",
          .examples = {"mqctl log verify /var/lib/mq"},
          .positionals = {{.name = "PATH",
                           .help = "a data directory, a partition's directory, a .log file or a "
                                   "journal's directory",
                           .most = SIZE_MAX,
                           .complete = Complete::files}},
          .flags = {journal_flag()},
          .item_shape =
              R"({"path":"string","topic":"string|null","good":"bool","segments":"int|null",)"
              R"("batches":"int|null","records":"int|null","bytes":"int|null",)"
              R"("log_start_offset":"int|null","end_offset":"int|null",)"
              R"("damage":{"file":"string","position":"int","state":"string",)"
              R"("want":"int","got":"int","last_good_offset":"int","torn_tail":"bool"},)"
              R"("journal":{"files":"int","partitions":"int","problem":"string|null"}})",
          .connects = false,
          .run = verify};
}

}  // namespace mq::mqctl
