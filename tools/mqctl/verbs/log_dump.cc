#include <fmt/format.h>

#include "base/buffer.h"
#include "base/real/posix_file_system.h"
#include "model/record_reader.h"
#include "mqctl/cli/context.h"
#include "mqctl/cli/text.h"
#include "mqctl/data/record_json.h"
#include "mqctl/verbs/log_files.h"
#include "mqctl/verbs/log_journal.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// Prints batches, one line each, and their records below when asked for.
class Dump {
 public:
  explicit Dump(Context& context)
      : context_(context),
        jsonl_(context.globals.form == Form::jsonl),
        records_(context.args.on("records")) {}

  void partition(base::FileSystem& files, const storage::PartitionDirectory& partition) {
    partition_ = &partition;
    if (!jsonl_) context_.console.out.write(fmt::format("{}\n", partition_name(partition)));
    std::optional<model::Offset> from;
    if (context_.args.has("from")) from = model::Offset(context_.args.number("from"));
    const auto walked = storage::for_each_batch(
        files, partition, from, [this](const storage::InspectedBatch& batch) {
          print(batch);
          return !context_.console.interrupted() && !context_.console.out.ended();
        });
    if (!walked)
      throw Failed(make_failure(protocol::WireError::file_unreadable,
                                fmt::format("{} cannot be read", partition.path),
                                walked.error().message()));
  }

  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  using State = storage::InspectedBatch::State;

  void print(const storage::InspectedBatch& batch) {
    if (batch.state != State::good && batch.state != State::unsupported) {
      bad(batch);
      return;
    }
    if (jsonl_)
      context_.console.out.write(to_json(batch_value(batch)) + "\n");
    else
      context_.console.out.write(batch_line(batch));
    if (records_ && batch.state == State::good) print_records(batch.view);
  }

  /// Who sent it, if it says so.
  static std::string producer_text(const model::RecordBatchView& view) {
    if (!view.producer().known()) return {};
    return fmt::format("  producer {} epoch {} sequences {}..{}", view.producer_id(),
                       view.producer_epoch(), view.base_sequence(), view.last_sequence());
  }

  static std::string batch_line(const storage::InspectedBatch& batch) {
    const auto& view = batch.view;
    return fmt::format(
        "{} byte {}  offsets {}..{}  records {}  bytes {}  codec {}  epoch {}{}  appended {}{}\n",
        batch.segment->path.substr(batch.segment->path.rfind('/') + 1), batch.position,
        view.base_offset(), view.last_offset(), view.record_count(), view.batch_bytes(),
        model::codec_name(view.codec()), view.leader_epoch(), producer_text(view),
        format_timestamp(view.append_time_ms()),
        batch.state == State::unsupported ? "  (written by a newer release)" : "");
  }

  Value batch_value(const storage::InspectedBatch& batch) const {
    const auto& view = batch.view;
    return Value::object()
        .set("schema", context_.command.schema())
        .set("file", batch.segment->path)
        .set("position", batch.position)
        .set("state", storage::state_name(batch.state))
        .set("base_offset", view.base_offset().value())
        .set("last_offset", view.last_offset().value())
        .set("records", view.record_count())
        .set("bytes", view.batch_bytes())
        .set("raw_bytes", view.raw_bytes())
        .set("codec", model::codec_name(view.codec()))
        .set("leader_epoch", view.leader_epoch().value())
        .set("append_time", format_timestamp(view.append_time_ms()))
        .set("base_timestamp", format_timestamp(view.base_timestamp_ms()))
        .set("max_timestamp", format_timestamp(view.max_timestamp_ms()))
        .set("producer_id", view.producer_id())
        .set("producer_epoch", view.producer_epoch())
        .set("base_sequence", view.base_sequence())
        .set("body_crc", fmt::format("{:08x}", view.body_crc()));
  }

  void print_records(const model::RecordBatchView& view) {
    const auto raw = model::decompress(view, pool_);
    if (!raw) {
      context_.notice(fmt::format("  records at offset {} do not unpack: {}", view.base_offset(),
                                  raw.error().message()));
      damaged_ = true;
      return;
    }
    model::RecordReader reader(view, raw->bytes);
    model::RecordView record;
    while (reader.next(record) == model::RecordStep::record) print_record(record);
    damaged_ = damaged_ || reader.corrupt();
  }

  void print_record(const model::RecordView& record) {
    if (!jsonl_) context_.console.out.write("  ");
    context_.console.out.write(to_json(stored_record_value(*partition_, record)) + "\n");
  }

  void bad(const storage::InspectedBatch& batch) {
    // What a crash leaves at the end is shown, but it is no damage by itself.
    damaged_ = damaged_ || (batch.state != State::torn && batch.state != State::zeros);
    if (jsonl_) {
      context_.console.out.write(to_json(Value::object()
                                             .set("schema", context_.command.schema())
                                             .set("file", batch.segment->path)
                                             .set("position", batch.position)
                                             .set("state", storage::state_name(batch.state))
                                             .set("want", batch.want)
                                             .set("got", batch.got)) +
                                 "\n");
      return;
    }
    context_.console.out.write(fmt::format(
        "{} byte {}  {}\n", batch.segment->path.substr(batch.segment->path.rfind('/') + 1),
        batch.position, storage::state_name(batch.state)));
  }

  Context& context_;
  bool jsonl_;
  bool records_;
  const storage::PartitionDirectory* partition_ = nullptr;
  base::BufferPool pool_;
  bool damaged_ = false;
};

Exit dump(Context& context) {
  base::PosixFileSystem files;
  Dump dump(context);
  bool damaged = false;
  for (const auto& path : context.args.positionals) {
    const auto journal = find_journal_files(files, path);
    for (const auto& file : journal) damaged = !dump_journal(context, files, file) || damaged;
    if (!journal.empty()) continue;
    for (const auto& partition : find_partitions(files, path)) dump.partition(files, partition);
  }
  return damaged || dump.damaged() ? Exit::unhealthy : Exit::ok;
}

}  // namespace

Command log_dump_command() {
  return {.path = "log dump",
          .summary = "Shows the batches (and records) of logs on disk, or the groups of a journal",
          .details =
              "Needs no broker. Reads only: a log up to the first batch that does not hold, a "
              "journal file up to its\nlast whole group, and says why it ends there. Exit code "
              "10 when there is damage.",
          .examples = {"mqctl log dump /var/lib/mq/4f1c2b0e9d3a4c5f8e7d6c5b4a392817-0 --records",
                       "mqctl log dump /var/lib/mq/journal"},
          .positionals = {{.name = "PATH",
                           .help = "a data directory, a partition's directory, a .log file, a "
                                   "journal's directory or file",
                           .most = SIZE_MAX,
                           .complete = Complete::files}},
          .flags = {{.name = "records", .help = "the records too, as JSON"},
                    {.name = "from",
                     .kind = Kind::number,
                     .value = "OFFSET",
                     .help = "start with the batch that holds it"}},
          .outputs = {"table", "jsonl"},
          .item_shape = R"({"file":"string","position":"int","state":"string","base_offset":"int",)"
                        R"("last_offset":"int","records":"int","bytes":"int","raw_bytes":"int",)"
                        R"("codec":"string","leader_epoch":"int","append_time":"time",)"
                        R"("base_timestamp":"time","max_timestamp":"time","producer_id":"int",)"
                        R"("producer_epoch":"int","base_sequence":"int","body_crc":"hex",)"
                        R"("group":"int","generation":"int","entries":[{"kind":"string",)"
                        R"("partition":"string|null","text":"string"}]})",
          .connects = false,
          .run = dump};
}

}  // namespace mq::mqctl
