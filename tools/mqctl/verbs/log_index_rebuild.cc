#include <fmt/format.h>

#include "base/real/posix_file_system.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/log_files.h"
#include "mqctl/verbs/verbs.h"
#include "storage/log_repair.h"

namespace mq::mqctl {
namespace {

void rebuild_one(base::FileSystem& files, const storage::PartitionDirectory& partition,
                 Report& report) {
  const auto what = fmt::format("the indexes of {} were not made", partition_name(partition));
  const auto rebuilt = storage::rebuild_indexes(files, partition);
  if (!rebuilt) {
    auto failure =
        make_failure(protocol::WireError::file_unreadable, what, rebuilt.error().message());
    failure.item = partition.path;
    return report.failure(std::move(failure));
  }
  if (rebuilt->damage && !rebuilt->damage->torn_tail) {
    auto failure =
        make_failure(protocol::WireError::log_damaged, what,
                     fmt::format("{} at byte {} of {}", storage::state_name(rebuilt->damage->state),
                                 rebuilt->damage->position, rebuilt->damage->file),
                     fmt::format("mqctl log verify {}", partition.path));
    failure.item = partition.path;
    return report.failure(std::move(failure));
  }
  report.item(
      Value::object()
          .set("path", partition.path)
          .set("topic", partition.topic_name.empty() ? Value() : Value(partition.topic_name))
          .set("segments", rebuilt->segments)
          .set("entries", rebuilt->batches_noted));
  report.text(fmt::format("{}: indexes of {} made\n", partition_name(partition),
                          counted(rebuilt->segments, "segment")));
}

Exit rebuild(Context& context) {
  base::PosixFileSystem files;
  Report report(context);
  for (const auto& path : context.args.positionals) {
    std::map<std::string, LockedData> locked;
    for (const auto& partition : find_partitions(files, path)) {
      const auto data = partition.path.substr(0, partition.path.rfind('/'));
      if (!locked.contains(data))
        locked.emplace(data, lock_data_of(files, partition, "no index was made"));
      rebuild_one(files, partition, report);
    }
  }
  const bool damaged = report.has_failure("LOG_DAMAGED");
  const Exit exit = report.finish();
  return damaged ? Exit::unhealthy : exit;
}

}  // namespace

Command log_index_rebuild_command() {
  return {
      .path = "log index-rebuild",
      .summary = "Makes the indexes of logs on disk anew; no broker may run there",
      .details =
          "Indexes are caches, which a broker makes by itself when they are missing or "
          "damaged; this does it before\nsomeone waits for it. Nothing of the logs is "
          "changed.",
      .examples = {"mqctl log index-rebuild /var/lib/mq"},
      .positionals = {{.name = "PATH",
                       .help = "a data directory or a partition's directory in it",
                       .most = SIZE_MAX,
                       .complete = Complete::files}},
      .item_shape = R"({"path":"string","topic":"string|null","segments":"int","entries":"int"})",
      .connects = false,
      .changes = true,
      .run = rebuild};
}

}  // namespace mq::mqctl
