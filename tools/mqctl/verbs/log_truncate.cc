#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/real/posix_file_system.h"
#include "base/units.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/log_files.h"
#include "mqctl/verbs/log_journal.h"
#include "mqctl/verbs/verbs.h"
#include "storage/journal_offline.h"
#include "storage/log_repair.h"
#include "storage/storage_format.h"

namespace mq::mqctl {
namespace {

using storage::PartitionDirectory;
using storage::TruncatePlan;

[[noreturn]] void refuse(const std::string& what, const PartitionDirectory& partition,
                         std::string why, std::string hint) {
  auto failure =
      make_failure(protocol::WireError::invalid_request, what, std::move(why), std::move(hint));
  failure.item = partition.path;
  throw Failed(std::move(failure));
}

[[noreturn]] void fail_io(const std::string& what, const PartitionDirectory& partition,
                          const base::Error& error) {
  auto failure = make_failure(protocol::WireError::file_unreadable, what, error.message());
  failure.item = partition.path;
  throw Failed(std::move(failure));
}

/// The journal of the disk, which remembers up to where the log was durable: a log that ends before
/// that is taken for damaged at the next start. So it has to hold the cut.
struct Journal {
  storage::JournalPlace place;
  storage::JournalReplay replay;
};

std::optional<Journal> read_journal(Context& context, base::FileSystem& files,
                                    const std::string& data, const std::string& what,
                                    const PartitionDirectory& partition) {
  const auto place = storage::find_journal(files, data, journal_elsewhere(context));
  if (!place) return std::nullopt;
  auto replay = storage::replay_journal(files, place->directory, place->owner);
  if (!replay) fail_io(what, partition, replay.error());
  if (replay->lost || replay->damaged)
    refuse(what, partition,
           fmt::format("the journal of {} cannot be told of the cut: {}", data, replay->problem),
           replay->found.empty() ? "--journal names its folder, if it is elsewhere"
                                 : "mqctl log verify " + data);
  return Journal{*place, *std::move(replay)};
}

base::Result<void> record(base::FileSystem& files, const std::optional<Journal>& journal,
                          const PartitionDirectory& partition, const TruncatePlan& plan) {
  if (!journal) return {};
  const auto known = journal->replay.logs.find(partition.id);
  if (known == journal->replay.logs.end()) return {};
  storage::JournalCut cut;
  cut.end = plan.point;
  cut.epoch = std::max(plan.point.leader_epoch, known->second.state.epoch_start.leader_epoch);
  std::random_device random;
  const auto nonce = std::uint64_t{random()} << 32 | random();
  return storage::record_cut(files, journal->place.directory, journal->place.owner, journal->replay,
                             partition.id, cut, nonce);
}

/// Beside the partitions that the metadata does not know, where no broker takes anything away.
std::string place_aside(base::FileSystem& files, const std::string& data,
                        const PartitionDirectory& partition, const TruncatePlan& plan) {
  const auto unknown = data + "/unknown";
  static_cast<void>(files.make_directory(unknown));
  static_cast<void>(files.sync_directory(data));
  auto name = fmt::format("{}/{}.cut-at-{}", unknown, partition.id.text(), plan.end);
  for (int n = 1; n < 1000; ++n) {
    auto path = n == 1 ? name : fmt::format("{}.{}", name, n);
    const auto taken = files.exists(path);
    if (taken && !*taken) return path;
  }
  return name;
}

std::string loss_text(const PartitionDirectory& partition, const TruncatePlan& plan) {
  return fmt::format("{} of {} ({}) behind offset {}", base::format_bytes(plan.bytes),
                     partition_name(partition), counted(plan.records, "readable record"),
                     model::advance(plan.end, -1).value());
}

Value item_of(const PartitionDirectory& partition, const TruncatePlan& plan,
              const std::string& aside, bool dry_run) {
  return Value::object()
      .set("path", partition.path)
      .set("topic", partition.topic_name.empty() ? Value() : Value(partition.topic_name))
      .set("end_offset", plan.end.value())
      .set("bytes", plan.bytes)
      .set("records", plan.records)
      .set("segments", std::uint64_t{plan.whole.size()})
      .set("aside", aside.empty() ? Value() : Value(aside))
      .set("dry_run", dry_run);
}

TruncatePlan make_plan(base::FileSystem& files, const PartitionDirectory& partition,
                       const std::string& what, model::Offset after) {
  auto plan = storage::plan_truncate(files, partition, after);
  if (!plan) fail_io(what, partition, plan.error());
  if (plan->nearest)
    refuse(
        what, partition,
        fmt::format("no good batch ends with offset {}; the nearest below that does ends with {}",
                    after, *plan->nearest),
        fmt::format("mqctl log truncate {} --after {} --dry-run", partition.path, *plan->nearest));
  if (partition.log_start_offset && plan->end < *partition.log_start_offset)
    refuse(what, partition, fmt::format("the log starts at {}", *partition.log_start_offset), "");
  return *std::move(plan);
}

Exit truncate(Context& context) {
  base::PosixFileSystem files;
  const auto& path = context.args.positionals[0];
  const auto partitions = find_partitions(files, path);
  const auto what = fmt::format("{} was not cut", path);
  if (partitions.size() != 1 || !path.ends_with(partitions[0].id.text()))
    throw Failed(usage_failure(what, "it is not one partition's directory",
                               "mqctl log segments DATA lists them"));
  const PartitionDirectory& partition = partitions[0];
  if (!context.args.has("after"))
    throw Failed(usage_failure("--after is missing", "it names the last offset that stays"));
  const bool dry_run = context.globals.dry_run;
  if (!dry_run && !context.globals.yes && !context.console.in_is_terminal) context.confirm("", "");
  const auto data = lock_data_of(files, partition, what);
  const auto plan = make_plan(files, partition, what, model::Offset(context.args.number("after")));
  Report report(context);
  if (dry_run || plan.bytes == 0) {
    report.item(item_of(partition, plan, "", dry_run));
    report.text(plan.bytes == 0 ? fmt::format("{} ends there already\n", partition_name(partition))
                                : fmt::format("would cut off {}\n", loss_text(partition, plan)));
    return report.finish();
  }
  const auto journal = read_journal(context, files, data.path, what, partition);
  context.confirm(
      fmt::format(
          "This cuts off {}. Offsets from {} on will be given out again; consumers that saw "
          "them are not told.\nThe bytes are kept in {}/unknown.",
          loss_text(partition, plan), plan.end.value(), data.path),
      partition.id.text());
  const auto aside = place_aside(files, data.path, partition, plan);
  const auto record_it = [&] { return record(files, journal, partition, plan); };
  const auto cut = storage::truncate_partition(files, data.path, partition, plan, aside, record_it);
  if (!cut) fail_io(fmt::format("{} may be cut in part", path), partition, cut.error());
  report.item(item_of(partition, plan, aside, false));
  report.text(fmt::format("cut off {}; kept in {}\n", loss_text(partition, plan), aside));
  return report.finish();
}

}  // namespace

Command log_truncate_command() {
  return {
      .path = "log truncate",
      .summary = "Cuts the end of a partition's log off; no broker may run there",
      .details =
          "For a log that is damaged and would otherwise stay offline. What goes is copied aside "
          "first, as segment files\nthat mqctl log dump reads. Says what is lost; at a terminal it "
          "wants the directory's name typed, elsewhere\nit needs --yes.",
      .examples = {"mqctl log truncate /var/lib/mq/4f1c2b0e9d3a4c5f8e7d6c5b4a392817-0 --after "
                   "983801114 --dry-run"},
      .positionals = {{.name = "PATH",
                       .help = "a partition's directory",
                       .complete = Complete::files}},
      .flags = {{.name = "after",
                 .kind = Kind::number,
                 .value = "OFFSET",
                 .help = "the last offset that stays",
                 .least = -1},
                journal_flag()},
      .item_shape = R"({"path":"string","topic":"string|null","end_offset":"int","bytes":"int",)"
                    R"("records":"int","segments":"int","aside":"string|null","dry_run":"bool"})",
      .connects = false,
      .changes = true,
      .dry_run = true,
      .run = truncate};
}

}  // namespace mq::mqctl
