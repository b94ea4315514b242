#include <fmt/format.h>

#include "base/real/posix_file_system.h"
#include "base/units.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/cli/text.h"
#include "mqctl/verbs/log_files.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// What was found in one segment file.
struct Seen {
  std::uint64_t batches = 0;
  std::uint64_t records = 0;
  model::Offset end;  ///< behind the last good batch; -1: none
  std::int64_t first_time_ms = -1;
  std::int64_t last_time_ms = -1;
  std::string state = "ok";
  std::uint64_t position = 0;  ///< of what is not ok
};

class Segments {
 public:
  explicit Segments(Context& context) : report_(context) {}

  void partition(base::FileSystem& files, const storage::PartitionDirectory& partition) {
    std::map<const storage::SegmentFile*, Seen> seen;
    bool stopped = false;
    const auto visit = [&](const storage::InspectedBatch& batch) {
      note(batch, seen[batch.segment]);
      stopped = batch.state != storage::BatchState::good;
      return true;
    };
    const auto walked = storage::for_each_batch(files, partition, std::nullopt, visit);
    if (!walked) {
      auto failure = make_failure(protocol::WireError::file_unreadable,
                                  fmt::format("{} cannot be read", partition_name(partition)),
                                  walked.error().message());
      failure.item = partition.path;
      return report_.failure(std::move(failure));
    }
    bool behind = false;
    for (const auto& segment : partition.segments) {
      Seen& found = seen[&segment];
      if (behind) found.state = "not looked at";
      add(partition, segment, found);
      behind = behind || (stopped && found.state != "ok");
    }
  }

  Exit finish(const Context& context) {
    if (table_.empty()) {
      context.notice("no segments there");
    } else {
      report_.text(table_.text());
    }
    const Exit exit = report_.finish();
    return damaged_ && exit == Exit::ok ? Exit::unhealthy : exit;
  }

 private:
  void note(const storage::InspectedBatch& batch, Seen& seen) {
    if (batch.state != storage::BatchState::good) {
      const bool tail =
          batch.state == storage::BatchState::torn || batch.state == storage::BatchState::zeros;
      damaged_ = damaged_ || !tail;
      seen.state = storage::state_name(batch.state);
      seen.position = batch.position;
      return;
    }
    ++seen.batches;
    seen.records += batch.view.record_count();
    seen.end = batch.view.end_offset();
    if (seen.first_time_ms < 0) seen.first_time_ms = batch.view.append_time_ms();
    seen.last_time_ms = batch.view.append_time_ms();
  }

  void add(const storage::PartitionDirectory& partition, const storage::SegmentFile& segment,
           const Seen& seen) {
    const auto file = segment.path.substr(segment.path.rfind('/') + 1);
    const auto time = [](std::int64_t ms) {
      return ms < 0 ? Value() : Value(format_timestamp(ms));
    };
    report_.item(
        Value::object()
            .set("path", segment.path)
            .set("topic", partition.topic_name.empty() ? Value() : Value(partition.topic_name))
            .set("base_offset", segment.base_offset.value())
            .set("end_offset",
                 seen.end < segment.base_offset ? segment.base_offset.value() : seen.end.value())
            .set("batches", seen.batches)
            .set("records", seen.records)
            .set("bytes", segment.bytes)
            .set("first_append_time", time(seen.first_time_ms))
            .set("last_append_time", time(seen.last_time_ms))
            .set("state", seen.state)
            .set("position", seen.position));
    table_.add({partition_name(partition), file, grouped(seen.records),
                base::format_bytes(segment.bytes),
                seen.first_time_ms < 0 ? "-" : format_timestamp(seen.first_time_ms),
                seen.last_time_ms < 0 ? "-" : format_timestamp(seen.last_time_ms),
                seen.state == "ok" || seen.state == "not looked at"
                    ? seen.state
                    : fmt::format("{} at byte {}", seen.state, seen.position)});
  }

  Report report_;
  Table table_{{{"PARTITION"},
                {"SEGMENT"},
                {"RECORDS", Table::Align::right},
                {"SIZE", Table::Align::right},
                {"FIRST APPENDED"},
                {"LAST APPENDED"},
                {"STATE"}}};
  bool damaged_ = false;
};

Exit segments(Context& context) {
  base::PosixFileSystem files;
  Segments segments(context);
  for (const auto& path : context.args.positionals)
    for (const auto& partition : find_partitions(files, path)) segments.partition(files, partition);
  return segments.finish(context);
}

}  // namespace

Command log_segments_command() {
  return {.path = "log segments",
          .summary = "Lists the segment files of logs on disk; needs no broker",
          .details =
              "Reads only, every batch with its checksums. Exit code 10 when one does not "
              "hold; an unfinished tail is\nwhat a crash leaves and is no damage.",
          .examples = {"mqctl log segments /var/lib/mq"},
          .positionals = {{.name = "PATH",
                           .help = "a data directory, a partition's directory or a .log file",
                           .most = SIZE_MAX,
                           .complete = Complete::files}},
          .item_shape =
              R"({"path":"string","topic":"string|null","base_offset":"int","end_offset":"int",)"
              R"("batches":"int","records":"int","bytes":"int","first_append_time":"time|null",)"
              R"("last_append_time":"time|null","state":"string","position":"int"})",
          .connects = false,
          .run = segments};
}

}  // namespace mq::mqctl
