#include <fmt/format.h>

#include "base/units.h"
#include "mq/producer.h"
#include "mqctl/bench/pacer.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/cli/text.h"
#include "mqctl/data/delivery_log.h"
#include "mqctl/data/record_source.h"
#include "mqctl/verbs/choices.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

using Clock = std::chrono::steady_clock;

std::string unescaped(const Context& context, const std::string& flag) {
  auto text = unescape(context.args.text(flag));
  if (!text || text->empty())
    throw Failed(
        usage_failure(fmt::format("--{}: \"{}\" is not allowed", flag, context.args.text(flag)),
                      "it must not be empty; a backslash needs n, t, r, 0, \\ or xHH behind it"));
  return std::move(*text);
}

Framing::Mode framing_mode(const Context& context) {
  if (!context.args.has("framing")) return Framing::Mode::delimiter;
  const auto& name = context.args.text("framing");
  return name == "line"        ? Framing::Mode::line
         : name == "paragraph" ? Framing::Mode::paragraph
                               : Framing::Mode::chunk;
}

/// Flags that say two things about one matter are refused, not ranked.
void refuse_together(const Context& context, std::initializer_list<const char*> flags) {
  const char* first = nullptr;
  for (const char* flag : flags) {
    if (!context.args.has(flag)) continue;
    if (first != nullptr)
      throw Failed(usage_failure(fmt::format("--{} and --{} do not go together", first, flag),
                                 "both say how the input is read"));
    first = flag;
  }
}

SourceOptions source_options(const Context& context) {
  refuse_together(context, {"json", "key-separator", "key-field"});
  refuse_together(context, {"json", "delimiter", "framing"});
  refuse_together(context, {"json", "tombstone"});
  SourceOptions options;
  options.framing.mode = framing_mode(context);
  if (context.args.has("delimiter")) options.framing.delimiter = unescaped(context, "delimiter");
  if (context.args.has("key-separator"))
    options.key_separator = unescaped(context, "key-separator");
  options.key_field = context.args.maybe_text("key-field");
  options.empty_is_tombstone = context.args.on("tombstone");
  options.json = context.args.on("json");
  for (const auto& header : context.args.list("header")) {
    const auto equals = header.find('=');
    options.headers.emplace_back(header.substr(0, equals), header.substr(equals + 1));
  }
  return options;
}

std::optional<RecordFormat> print_format(const Context& context) {
  if (!context.args.has("print")) return std::nullopt;
  if (context.machine_output() || context.args.text("acks") == "none")
    throw Failed(usage_failure("--print is not possible here",
                               context.machine_output()
                                   ? "with -o json stdout holds the summary"
                                   : "with --acks none no broker tells where a record went"));
  auto parsed = RecordFormat::parse(context.args.text("print"));
  if (parsed.format && parsed.format->uses_only("tpoT")) return std::move(parsed.format);
  throw Failed(
      usage_failure(fmt::format("--print: \"{}\" is not allowed", context.args.text("print")),
                    parsed.format ? "it takes %t, %p, %o and %T" : parsed.error));
}

/// One run of the command: reads, sends, waits, reports.
class Run {
 public:
  explicit Run(Context& context)
      : context_(context),
        log_(context.console.out, print_format(context)),
        source_(context.console, files(context), source_options(context)) {}

  Exit run() {
    auto producer = connected(context_, Producer::create(config()));
    const auto& name = context_.args.positionals[0];
    const auto topic =
        take(producer.topic(name), fmt::format("nothing was sent to {}", name), name);
    check_partition(topic);
    const auto start = Clock::now();
    send_all(producer, topic, start);
    wait_for_results(producer);
    (void)producer.close(Duration(interrupted_ ? 0 : 1000));
    return finish(Clock::now() - start);
  }

 private:
  static std::vector<std::string> files(const Context& context) {
    return {context.args.positionals.begin() + 1, context.args.positionals.end()};
  }

  ProducerConfig config() {
    ProducerConfig config;
    static_cast<ClientConfig&>(config) = client_config(context_);
    config.acks = acks_of(context_.args.text("acks"));
    config.compression = compression_of(context_.args.text("compression"));
    config.delivery_timeout = context_.globals.timeout;
    config.on_delivery = [this](const DeliveryRange& range) { log_.delivered(range); };
    return config;
  }

  void check_partition(const TopicHandle& topic) {
    if (!context_.args.has("partition")) return;
    const auto partition = context_.args.number("partition");
    if (static_cast<std::size_t>(partition) >= topic.partitions()) {
      auto failure = make_failure(protocol::WireError::unknown_partition,
                                  fmt::format("nothing was sent to {}", topic.name()),
                                  fmt::format("partition {}: it has partitions 0 to {}", partition,
                                              topic.partitions() - 1));
      failure.item = topic.name();
      throw Failed(std::move(failure));
    }
    partition_ = static_cast<std::int32_t>(partition);
  }

  void refuse(Failure failure) {
    ++refused_;
    if (refusals_.size() < DeliveryLog::kNamed) refusals_.push_back(std::move(failure));
  }

  void send_one(Producer& producer, const TopicHandle& topic, const SourceRecord& record) {
    const SendOptions options{
        .partition = partition_, .timestamp = record.timestamp, .headers = record.headers};
    log_.sending(source_.number());
    const auto sent = producer.send(topic, record.key, record.value, options, source_.number());
    if (sent) {
      bytes_ += record.bytes;
      return;
    }
    const auto name = source_.name_of(source_.number());
    refuse(client_failure(sent.error(), fmt::format("{} was not sent", name), name));
    if (!concerns_one_record(sent.error())) stopped_ = true;
  }

  void send_all(Producer& producer, const TopicHandle& topic, Clock::time_point start) {
    std::optional<Pacer> pacer;
    if (context_.args.has("rate")) pacer.emplace(context_.args.rate("rate"), start);
    SourceRecord record;
    while (!stopped_ && !(stopped_ = log_.broken())) {
      const auto got = source_.next(record);
      interrupted_ = got == RecordSource::Got::interrupted || context_.console.interrupted();
      if (got == RecordSource::Got::end) return;
      if (!interrupted_ && pacer)
        interrupted_ =
            !Pacer::sleep_until(pacer->due(source_.number() - 1), context_.console.interrupted);
      if (interrupted_) return;
      if (got == RecordSource::Got::refused)
        refuse(source_.refusal());
      else
        send_one(producer, topic, record);
    }
  }

  /// Each accepted record has a result within the delivery timeout, so this ends. After Ctrl-C it
  /// waits two seconds more.
  void wait_for_results(Producer& producer) {
    const auto start = Clock::now();
    bool told = false;
    while (!producer.flush(Duration(200))) {
      const auto waited = Clock::now() - start;
      interrupted_ = interrupted_ || context_.console.interrupted();
      if (interrupted_ && waited > std::chrono::seconds(2)) return;
      if (told || waited < std::chrono::seconds(3)) continue;
      told = true;
      context_.notice(
          fmt::format("waiting for {} to be acknowledged", counted(producer.pending(), "record")));
    }
  }

  void report_failures(Report& report, const DeliveryLog::Summary& summary) {
    std::uint64_t named = 0;
    for (auto& refusal : refusals_) {
      report.failure(std::move(refusal));
      ++named;
    }
    for (const auto& lost : summary.first_lost) {
      const auto name = source_.name_of(lost.number);
      report.failure(client_failure(
          lost.error,
          fmt::format("{} {} delivered", name,
                      lost.error.maybe_applied ? "may or may not have been" : "was not"),
          name));
      ++named;
    }
    const auto more = refused_ + summary.failed - named;
    if (more > 0) context_.notice(fmt::format("and {} more", counted(more, "failed record")));
    if (stopped_) context_.notice("the rest of the input was not read");
  }

  Exit finish(Clock::duration took) {
    const auto summary = log_.summary();
    const auto failed = refused_ + summary.failed;
    Report report(context_);
    report.item(
        Value::object()
            .set("topic", context_.args.positionals[0])
            .set("records", summary.delivered)
            .set("failed", failed)
            .set("bytes", bytes_)
            .set("partitions", std::uint64_t{summary.partitions})
            .set("duration_ms", std::chrono::duration<double, std::milli>(took).count())
            .set("ack_p99_ms", std::chrono::duration<double, std::milli>(summary.p99).count()));
    report_failures(report, summary);
    report.finish();
    context_.notice(fmt::format(
        "sent {}, {}, to {} in {}; {} failed{}", counted(summary.delivered, "record"),
        base::format_bytes(bytes_), counted(summary.partitions, "partition"), format_time(took),
        grouped(failed),
        summary.p99.count() == 0 ? "" : fmt::format("; p99 {}", format_time(summary.p99))));
    if (interrupted_) return Exit::interrupted;
    return failed == 0 && !stopped_ ? Exit::ok : Exit::failed;
  }

  Context& context_;
  DeliveryLog log_;
  RecordSource source_;
  std::optional<std::int32_t> partition_;
  std::uint64_t bytes_ = 0;
  std::uint64_t refused_ = 0;
  std::vector<Failure> refusals_;
  bool stopped_ = false;
  bool interrupted_ = false;
};

Exit produce(Context& context) {
  Run run(context);
  return run.run();
}

std::vector<Flag> produce_flags() {
  return {{.name = "key-separator",
           .letter = 'K',
           .kind = Kind::text,
           .value = "SEP",
           .help = "what stands before SEP is the key"},
          {.name = "delimiter",
           .letter = 'D',
           .kind = Kind::text,
           .value = "DELIM",
           .help = "ends a record, not part of it; \\n if not given, \\0 for find -print0"},
          {.name = "framing",
           .kind = Kind::choice,
           .value = "HOW",
           .help = "line, paragraph or chunk (64 KiB): cut without losing a byte, so that the "
                   "values joined are the file",
           .choices = {"line", "paragraph", "chunk"},
           .complete = Complete::choices},
          {.name = "key-field",
           .kind = Kind::text,
           .value = "NAME",
           .help = "the key is the value of the line \"NAME: value\" in the record"},
          {.name = "json", .letter = 'J', .help = "the input is lines of mqctl consume -J"},
          {.name = "header",
           .letter = 'H',
           .kind = Kind::setting,
           .value = "NAME=VALUE",
           .help = "add a header to every record",
           .repeats = true},
          {.name = "tombstone", .letter = 'Z', .help = "an empty value becomes null (a tombstone)"},
          {.name = "partition",
           .letter = 'p',
           .kind = Kind::number,
           .value = "N",
           .help = "send all to this partition; else by key",
           .most = INT32_MAX},
          compression_flag("lz4"),
          acks_flag("all"),
          {.name = "rate",
           .kind = Kind::rate,
           .value = "N",
           .help = "at most so many records a second"},
          {.name = "print",
           .kind = Kind::text,
           .value = "FORMAT",
           .help = "a line on stdout for each acknowledged record, such as '%t/%p@%o'"}};
}

}  // namespace

Command produce_command() {
  return {.path = "produce",
          .summary = "Sends records from stdin or files to a topic",
          .details =
              "Every line is one record, the last one also without a newline. One line on "
              "stderr says how it went;\nthe exit code is 1 if any record failed.",
          .examples = {"printf 'k1:v1\\nk2:v2\\n' | mqctl produce orders -K : --print '%p@%o'",
                       "mqctl produce packages /var/lib/dpkg/status --framing paragraph "
                       "--key-field Package",
                       "mqctl consume orders -o start -e -J | mqctl produce copy -J"},
          .positionals = {{.name = "TOPIC", .help = "where to", .complete = Complete::topics},
                          {.name = "FILE",
                           .help = "one or more files, - is stdin; stdin if none is given",
                           .least = 0,
                           .most = SIZE_MAX,
                           .complete = Complete::files}},
          .flags = produce_flags(),
          .item_shape = R"({"topic":"string","records":"int","failed":"int","bytes":"int",)"
                        R"("partitions":"int","duration_ms":"float","ack_p99_ms":"float"})",
          .changes = true,
          .run = produce};
}

}  // namespace mq::mqctl
