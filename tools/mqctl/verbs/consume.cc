#include <fmt/format.h>

#include "base/strings.h"
#include "mq/consumer.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/table.h"
#include "mqctl/data/read_plan.h"
#include "mqctl/data/record_format.h"
#include "mqctl/data/record_json.h"
#include "mqctl/verbs/choices.h"
#include "mqctl/verbs/reachable.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

using Clock = std::chrono::steady_clock;

OffsetSpan wanted_span(const Context& context) {
  const auto& text = context.args.text("offset");
  auto parsed = parse_offsets(text, wall_clock_ms());
  if (parsed.span) return *parsed.span;
  throw Failed(usage_failure(fmt::format("-o {} is not allowed", text), parsed.error,
                             "mqctl consume --help lists the forms of -o"));
}

/// Turns records into what goes to stdout.
class Printer {
 public:
  explicit Printer(const Context& context)
      : json_(context.args.on("json") || context.globals.form == Form::jsonl),
        schema_(context.globals.form == Form::jsonl ? context.command.schema() : "") {
    const bool raw = context.args.on("raw");
    if (raw + json_ + context.args.has("format") > 1)
      throw Failed(usage_failure("only one of --raw, --format and --json is possible"));
    const auto text = raw ? "%v" : context.args.maybe_text("format").value_or("%v\\n");
    auto parsed = RecordFormat::parse(text);
    if (!parsed.format)
      throw Failed(usage_failure(fmt::format("-f: \"{}\" is not allowed", text), parsed.error));
    format_ = std::move(*parsed.format);
  }

  void append(const RecordView& record, std::string& out) const {
    if (!json_) {
      format_.append(record, out);
      return;
    }
    Value line = Value::object();
    if (!schema_.empty()) line.set("schema", schema_);
    const auto value = record_value(record);
    for (const auto& [key, member] : *value.get_if<Value::Object>()) line.set(key, member);
    out += to_json(line);
    out += '\n';
  }

 private:
  bool json_;
  std::string schema_;
  RecordFormat format_;
};

class Run {
 public:
  explicit Run(Context& context)
      : context_(context),
        span_(wanted_span(context)),
        partitions_(partition_numbers(context)),
        printer_(context),
        limit_(context.args.has("count") ? context.args.number("count") : INT64_MAX) {
    for (const auto topic : base::split(context.args.positionals[0], ','))
      topics_.emplace_back(base::trim(topic));
  }

  Exit run() {
    ConsumerConfig config;
    static_cast<ClientConfig&>(config) = client_config(context_);
    if (context_.args.has("rack")) config.rack = context_.args.text("rack");
    auto consumer = connected(context_, Consumer::create(std::move(config)));
    plan(consumer);
    auto exit = read(consumer);
    context_.console.out.flush();
    for (const auto& [partition, error] : unreached_) {
      const auto name = fmt::format("{}/{}", partition.topic, partition.partition);
      const auto failure = client_failure(error, fmt::format("{} was not read", name), name);
      context_.report(failure);
      if (exit == Exit::ok) exit = exit_of(failure, false);
    }
    if (context_.globals.verbose)
      context_.notice(fmt::format("read {}", counted(taken_, "record")));
    return exit;
  }

 private:
  void add_partitions(Consumer& consumer, const std::string& topic,
                      std::vector<TopicPartition>& into) {
    const auto what = fmt::format("nothing was read from {}", topic);
    const auto all = take(consumer.partitions(topic), what, topic);
    for (const auto wanted : partitions_)
      if (std::find(all.begin(), all.end(), wanted) == all.end()) {
        auto failure = make_failure(
            protocol::WireError::unknown_partition, what,
            fmt::format("partition {}: it has {}", wanted, counted(all.size(), "partition")));
        failure.item = topic;
        throw Failed(std::move(failure));
      }
    for (const auto partition : partitions_.empty() ? all : partitions_)
      into.push_back({topic, partition});
  }

  static std::map<TopicPartition, TimedOffset> at_time(
      Consumer& consumer, const std::vector<TopicPartition>& partitions, const Place& place,
      const std::string& what) {
    if (place.from != Place::From::time) return {};
    std::map<TopicPartition, Timestamp> times;
    for (const auto& partition : partitions)
      times.emplace(partition, Timestamp(Duration(place.by)));
    return take(consumer.offsets_for_times(times), what);
  }

  void plan(Consumer& consumer) {
    std::vector<TopicPartition> partitions;
    for (const auto& topic : topics_) add_partitions(consumer, topic, partitions);
    const auto what = fmt::format("nothing was read from {}", context_.args.positionals[0]);
    const bool ends = context_.args.on("exit") || span_.end;
    if (ends) {
      auto reached = reach(context_, consumer, partitions, what);
      partitions = reached.names();
      unreached_ = std::move(reached.unreached);
    }
    waits_ = !ends;
    // Where the newest end is needs a leader that is sure to be one.
    if (ends || span_.start.from != Place::From::start)
      plan_with_ranges(consumer, partitions, what);
    else
      plan_ = ReadPlan::from_start(partitions);
    // Whoever waits for more also waits for partitions that come.
    const bool follows = !ends && partitions_.empty();
    if (auto assigned =
            consumer.assign(plan_->starts(), follows ? topics_ : std::vector<std::string>());
        !assigned)
      throw_client(assigned.error(), what);
  }

  void plan_with_ranges(Consumer& consumer, const std::vector<TopicPartition>& partitions,
                        const std::string& what) {
    const auto ranges = take(consumer.offsets(partitions), what);
    ReadPlan::AtTimes times;
    times.start = at_time(consumer, partitions, span_.start, what);
    if (span_.end) times.end = at_time(consumer, partitions, *span_.end, what);
    std::string error;
    plan_ = ReadPlan::make(ranges, span_, context_.args.on("exit"), error, times);
    if (!plan_) throw Failed(make_failure(protocol::WireError::offset_out_of_range, what, error));
  }

  void print(const Batch& batch) {
    std::string text;
    for (const auto& record : batch) {
      if (taken_ == static_cast<std::uint64_t>(limit_)) break;
      if (!plan_->take(record)) continue;
      printer_.append(record, text);
      ++taken_;
    }
    context_.console.out.write(text);
    context_.console.out.flush();
  }

  [[nodiscard]] bool finished() const {
    return plan_->done() || taken_ == static_cast<std::uint64_t>(limit_) ||
           context_.console.out.ended();
  }

  /// Once, when nothing came for three seconds.
  void tell_waiting(Clock::duration quiet) {
    if (told_ || quiet < std::chrono::seconds(3)) return;
    told_ = true;
    const auto& name = context_.args.positionals[0];
    context_.notice(taken_ > 0 || !plan_->nothing_there() || span_.start.from == Place::From::end
                        ? fmt::format("{}: no more records now; waiting (Ctrl-C to stop)", name)
                        : fmt::format("{} is empty; waiting (Ctrl-C to stop)", name));
  }

  /// A broker that is away is waited for: by whoever waits for records anyway for ever, once one
  /// has answered.
  void check(const Error& error, Clock::duration quiet) {
    const bool for_ever = waits_ && answered_;
    if (error.retriable && !error.fatal && (for_ever || quiet < context_.globals.timeout)) {
      if (!told_away_) context_.notice(fmt::format("{}; trying again", error.message));
      told_away_ = true;
      return;
    }
    throw_client(error, fmt::format("reading stopped after {}", counted(taken_, "record")));
  }

  Exit read(Consumer& consumer) {
    auto last = Clock::now();
    auto last_answer = last;
    while (!finished()) {
      if (context_.console.interrupted()) return Exit::interrupted;
      const auto batch = consumer.poll(Duration(250));
      const auto now = Clock::now();
      if (!batch) {
        check(batch.error(), now - last_answer);
        continue;
      }
      last_answer = now;
      answered_ = true;
      if (std::exchange(told_away_, false)) context_.notice("reading goes on");
      print(*batch);
      if (batch->empty()) {
        plan_->advance(consumer.positions());
        tell_waiting(now - last);
      } else {
        last = now;
      }
    }
    return Exit::ok;
  }

  Context& context_;
  OffsetSpan span_;
  std::vector<std::int32_t> partitions_;
  std::vector<std::string> topics_;
  Printer printer_;
  std::int64_t limit_;
  std::optional<ReadPlan> plan_;
  std::map<TopicPartition, Error> unreached_;
  std::uint64_t taken_ = 0;
  bool told_ = false;
  bool told_away_ = false;
  bool waits_ = false;     ///< for records that come: there is no end
  bool answered_ = false;  ///< once, by any broker
};

Exit consume(Context& context) {
  Run run(context);
  return run.run();
}

}  // namespace

Command consume_command() {
  return {
      .path = "consume",
      .summary = "Prints the records of topics",
      .details =
          "-o takes start, end, an offset N, +N (from the start), -N (the last N of each\n"
          "partition), @TIME (what the broker appended then or later; TIME as in @-1h, @now,\n"
          "@2026-11-29T14:20:07Z or @ and milliseconds since 1970), or START:END, where END is\n"
          "not shown. -o json and -o jsonl are the output form, as everywhere.\n"
          "-f tokens: %t topic, %p partition, %o offset, %T time, %k key, %v value, %h headers;\n"
          "%k{hex}, %k{base64}, %k{json} (null and \"\" differ), %T{ms}; \\n \\t \\0 \\xHH.\n"
          "A time that has no four-digit year is shown as 253402300800000ms.\n"
          "Keeps no offsets anywhere.",
      .examples = {"mqctl consume orders -e", "mqctl consume orders -o -10 -J",
                   "mqctl consume orders -o @-5m:now -J",
                   "mqctl consume orders -o 100:200 -p 0 -f '%o %k %v\\n'",
                   "mqctl consume packages -e --raw > copy"},
      .positionals = {{.name = "TOPIC",
                       .help = "one topic, or several with commas between",
                       .complete = Complete::topics}},
      .flags = {{.name = "offset",
                 .letter = 'o',
                 .kind = Kind::text,
                 .value = "WHERE",
                 .help = "where to start, and where to end: start, end, N, +N, -N, @TIME",
                 .fallback = "start"},
                {.name = "partition",
                 .letter = 'p',
                 .kind = Kind::text,
                 .value = "N,…",
                 .help = "only these partitions"},
                {.name = "count",
                 .letter = 'n',
                 .kind = Kind::number,
                 .value = "N",
                 .help = "end after so many records",
                 .least = 1},
                {.name = "exit", .letter = 'e', .help = "end at the end that the topic has now"},
                {.name = "format",
                 .letter = 'f',
                 .kind = Kind::text,
                 .value = "FORMAT",
                 .help = "how a record is printed; %v\\n if not given"},
                {.name = "json",
                 .letter = 'J',
                 .help = "JSON Lines; bytes that are not UTF-8 are {\"base64\": …}"},
                {.name = "rack",
                 .kind = Kind::text,
                 .value = "NAME",
                 .help = "read from replicas in that rack, where there are any"},
                {.name = "raw", .help = "values alone with nothing between them, as -f %v"}},
      .outputs = {"table", "jsonl"},
      .item_shape = R"({"topic":"string","partition":"int","offset":"int","ts":"time",)"
                    R"("key":"string|null|{base64}","value":"string|null|{base64}",)"
                    R"("headers":[{"name":"string","value":"string|null|{base64}"}]})",
      .run = consume};
}

}  // namespace mq::mqctl
