#include <fmt/format.h>

#include "base/buffer.h"
#include "base/real/posix_file_system.h"
#include "model/record_reader.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/text.h"
#include "mqctl/data/offsets.h"
#include "mqctl/data/record_json.h"
#include "mqctl/verbs/log_files.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// What is looked for: exactly one of them.
struct Wanted {
  std::optional<model::Offset> offset;
  std::optional<std::int64_t> time_ms;
  std::optional<std::string> key;
};

Wanted wanted_of(const Context& context) {
  if (context.args.has("offset") + context.args.has("time") + context.args.has("key") != 1)
    throw Failed(usage_failure("say what to find: one of --offset, --time and --key"));
  Wanted wanted;
  if (context.args.has("offset")) wanted.offset = model::Offset(context.args.number("offset"));
  wanted.key = context.args.maybe_text("key");
  if (const auto text = context.args.maybe_text("time")) {
    wanted.time_ms =
        parse_time(std::string_view(*text).substr(text->starts_with('@')), wall_clock_ms());
    if (!wanted.time_ms)
      throw Failed(
          usage_failure(fmt::format("--time {} is not allowed", *text),
                        "it takes 2026-11-29T14:20:07Z, milliseconds since 1970, -1h or now"));
  }
  return wanted;
}

class Find {
 public:
  explicit Find(Context& context)
      : context_(context),
        report_(context),
        wanted_(wanted_of(context)),
        left_(context.args.has("count") ? context.args.number("count") : INT64_MAX) {}

  void partition(base::FileSystem& files, const storage::PartitionDirectory& partition) {
    partition_ = &partition;
    const auto walked = storage::for_each_batch(
        files, partition, wanted_.offset,
        [this](const storage::InspectedBatch& batch) { return look(batch); });
    if (!walked)
      throw Failed(make_failure(protocol::WireError::file_unreadable,
                                fmt::format("{} cannot be read", partition.path),
                                walked.error().message()));
  }

  Exit finish() {
    if (found_ == 0 && !damaged_) {
      auto failure =
          make_failure(protocol::WireError::offset_out_of_range, "nothing was found",
                       "no batch on the disk has it", "mqctl log segments lists what is there");
      failure.item = context_.args.positionals[0];
      report_.failure(std::move(failure));
    }
    const Exit exit = report_.finish();
    return damaged_ ? Exit::unhealthy : found_ == 0 ? Exit::not_found : exit;
  }

 private:
  /// False when the rest of the partition is of no interest.
  bool look(const storage::InspectedBatch& batch) {
    if (context_.console.interrupted() || left_ == 0) return false;
    if (batch.state == storage::BatchState::unsupported) return true;
    if (batch.state != storage::BatchState::good) return note_damage(batch);
    if (wanted_.time_ms && batch.view.append_time_ms() < *wanted_.time_ms) return true;
    if (wanted_.key) {
      look_for_key(batch);
      return true;
    }
    add(batch, wanted_.offset ? record_at(batch.view, *wanted_.offset) : std::nullopt);
    return false;
  }

  bool note_damage(const storage::InspectedBatch& batch) {
    if (batch.state == storage::BatchState::torn || batch.state == storage::BatchState::zeros)
      return false;
    damaged_ = true;
    auto failure = make_failure(protocol::WireError::log_damaged,
                                fmt::format("{} is damaged", partition_name(*partition_)),
                                fmt::format("{} at byte {} of {}", storage::state_name(batch.state),
                                            batch.position, batch.segment->path),
                                fmt::format("mqctl log verify {}", partition_->path));
    failure.item = partition_->path;
    report_.failure(std::move(failure));
    return false;
  }

  template <class Visit>
  void each_record(const model::RecordBatchView& view, Visit visit) {
    const auto raw = model::decompress(view, pool_);
    if (!raw) return;
    model::RecordReader reader(view, raw->bytes);
    model::RecordView record;
    while (reader.next(record) == model::RecordStep::record) visit(record);
  }

  std::optional<Value> record_at(const model::RecordBatchView& view, model::Offset offset) {
    std::optional<Value> found;
    each_record(view, [&](const model::RecordView& record) {
      if (record.offset == offset) found = stored_record_value(*partition_, record);
    });
    return found;
  }

  void look_for_key(const storage::InspectedBatch& batch) {
    each_record(batch.view, [&](const model::RecordView& record) {
      if (left_ > 0 && record.key && base::as_text(*record.key) == *wanted_.key)
        add(batch, stored_record_value(*partition_, record));
    });
  }

  void add(const storage::InspectedBatch& batch, std::optional<Value> record) {
    ++found_;
    --left_;
    const auto& view = batch.view;
    const auto file = batch.segment->path.substr(batch.segment->path.rfind('/') + 1);
    report_.text(fmt::format("{}  {} byte {}  offsets {}..{}  appended {}\n",
                             partition_name(*partition_), file, batch.position,
                             view.base_offset().value(), view.last_offset().value(),
                             format_timestamp(view.append_time_ms())));
    if (record) report_.text(fmt::format("  {}\n", to_json(*record)));
    report_.item(Value::object()
                     .set("path", batch.segment->path)
                     .set("position", batch.position)
                     .set("base_offset", view.base_offset().value())
                     .set("last_offset", view.last_offset().value())
                     .set("append_time", format_timestamp(view.append_time_ms()))
                     .set("record", record ? std::move(*record) : Value()));
  }

  Context& context_;
  Report report_;
  Wanted wanted_;
  std::int64_t left_;
  const storage::PartitionDirectory* partition_ = nullptr;
  base::BufferPool pool_;
  std::size_t found_ = 0;
  bool damaged_ = false;
};

Exit find(Context& context) {
  base::PosixFileSystem files;
  Find find(context);
  for (const auto& path : context.args.positionals)
    for (const auto& partition : find_partitions(files, path)) find.partition(files, partition);
  return find.finish();
}

}  // namespace

Command log_find_command() {
  return {.path = "log find",
          .summary = "Finds an offset, a time or a key in logs on disk; needs no broker",
          .details =
              "--offset: the batch that holds it, and its record. --time: the first batch that "
              "the broker appended then or\nlater. --key: every record that has it. Exit code 3 "
              "when nothing was found.",
          .examples = {"mqctl log find /var/lib/mq --key customer-7",
                       "mqctl log find /var/lib/mq/4f1c2b0e9d3a4c5f8e7d6c5b4a392817-0 --time -1h"},
          .positionals = {{.name = "PATH",
                           .help = "a data directory, a partition's directory or a .log file",
                           .most = SIZE_MAX,
                           .complete = Complete::files}},
          .flags =
              {{.name = "offset", .kind = Kind::number, .value = "N", .help = "this offset"},
               {.name = "time",
                .kind = Kind::text,
                .value = "TIME",
                .help = "the first batch appended then or later"},
               {.name = "key", .kind = Kind::text, .value = "KEY", .help = "records with this key"},
               {.name = "count",
                .kind = Kind::number,
                .value = "N",
                .help = "end after so many",
                .least = 1}},
          .item_shape = R"({"path":"string","position":"int","base_offset":"int",)"
                        R"("last_offset":"int","append_time":"time","record":"object|null"})",
          .connects = false,
          .run = find};
}

}  // namespace mq::mqctl
