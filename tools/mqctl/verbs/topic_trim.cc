#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "mq/consumer.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/data/offsets.h"
#include "mqctl/verbs/choices.h"
#include "mqctl/verbs/reachable.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// What a trim would do to one partition.
struct Trim {
  std::int64_t first = 0;  ///< as it is now
  std::int64_t to = 0;     ///< first offset that stays
  [[nodiscard]] std::int64_t records() const { return std::max<std::int64_t>(0, to - first); }
};
struct Plan {
  std::map<TopicPartition, Trim> trims;
  std::map<TopicPartition, Error> unreached;
};

Place wanted_place(const Context& context) {
  const auto text = context.args.maybe_text("to").value_or("");
  if (text.empty())
    throw Failed(usage_failure("--to is missing", "it says what is the first place that stays",
                               "mqctl topic trim orders --to @-7d"));
  const auto parsed = parse_offsets(text, wall_clock_ms());
  if (parsed.span && !parsed.span->end) return parsed.span->start;
  throw Failed(usage_failure(fmt::format("--to {} is not allowed", text),
                             parsed.span ? "it is one place, not a range" : parsed.error,
                             "mqctl topic trim orders -p 0 --to @-7d"));
}

std::vector<TopicPartition> wanted_partitions(const Context& context, Consumer& consumer,
                                              const std::string& topic, const std::string& what) {
  const auto all = take(consumer.partitions(topic), what, topic);
  std::vector<TopicPartition> wanted;
  for (const auto number : partition_numbers(context)) {
    if (std::find(all.begin(), all.end(), number) == all.end()) {
      auto failure = make_failure(
          protocol::WireError::unknown_partition, what,
          fmt::format("partition {}: it has {}", number, counted(all.size(), "partition")));
      failure.item = topic;
      throw Failed(std::move(failure));
    }
    wanted.push_back({topic, number});
  }
  if (wanted.empty()) {
    for (const auto number : all) wanted.push_back({topic, number});
  }
  return wanted;
}

/// An offset means something in one partition only.
void check_place(const Place& place, const std::vector<TopicPartition>& partitions,
                 const std::string& text) {
  if (place.from != Place::From::zero || partitions.size() == 1) return;
  throw Failed(
      usage_failure(fmt::format("--to {} is an offset, and partitions have their own", text),
                    fmt::format("it would be taken in {} partitions", partitions.size()),
                    "name one with -p, or give a time (@-7d), end or -N"));
}

Plan make_plan(const Context& context, const std::string& topic, const std::string& what) {
  const Place place = wanted_place(context);
  ConsumerConfig config;
  static_cast<ClientConfig&>(config) = client_config(context);
  auto consumer = connected(context, Consumer::create(std::move(config)));
  auto partitions = wanted_partitions(context, consumer, topic, what);
  check_place(place, partitions, context.args.text("to"));
  auto reached = reach(context, consumer, partitions, what);
  partitions = reached.names();
  std::map<TopicPartition, TimedOffset> found;
  if (place.from == Place::From::time) {
    std::map<TopicPartition, Timestamp> times;
    for (const auto& partition : partitions)
      times.emplace(partition, Timestamp(Duration(place.by)));
    found = take(consumer.offsets_for_times(times), what, topic);
  }
  Plan plan;
  plan.unreached = std::move(reached.unreached);
  for (const auto& [partition, range] : reached.ranges) {
    const auto at = found.find(partition);
    const auto to = resolve(place, range, at == found.end() ? -1 : at->second.offset);
    if (to > range.end)
      throw Failed(
          make_failure(protocol::WireError::offset_out_of_range, what,
                       fmt::format("{} partition {} has offsets {} to {} (exclusive), not {}",
                                   topic, partition.partition, range.start, range.end, to)));
    plan.trims.emplace(partition, Trim{range.start, to});
  }
  return plan;
}

std::string loss_text(const std::string& topic, const Plan& plan) {
  std::int64_t records = 0;
  std::size_t partitions = 0;
  for (const auto& [partition, trim] : plan.trims) {
    records += trim.records();
    partitions += trim.records() > 0;
  }
  return fmt::format("{} of {} in {}", counted(static_cast<std::uint64_t>(records), "offset"),
                     topic, counted(partitions, "partition"));
}

Value item_of(const TopicPartition& partition, const Trim& trim, bool dry_run) {
  return Value::object()
      .set("topic", partition.topic)
      .set("partition", partition.partition)
      .set("log_start_offset", std::max(trim.first, trim.to))
      .set("was", trim.first)
      .set("removed", trim.records())
      .set("dry_run", dry_run);
}

void say_plan(const Plan& plan, Report& report) {
  Table table({{"PART", Table::Align::right},
               {"FIRST", Table::Align::right},
               {"TRIM TO", Table::Align::right},
               {"OFFSETS GONE", Table::Align::right}});
  for (const auto& [partition, trim] : plan.trims)
    table.add({fmt::format("{}", partition.partition), fmt::format("{}", trim.first),
               fmt::format("{}", std::max(trim.first, trim.to)),
               fmt::format("{}", trim.records())});
  report.text(table.text());
}

void carry_out(Context& context, const Plan& plan, Report& report) {
  auto admin = connect_admin(context);
  std::map<TopicPartition, std::int64_t> to;
  for (const auto& [partition, trim] : plan.trims) to.emplace(partition, trim.to);
  const auto outcomes = admin.trim(to);
  for (const auto& [partition, trim] : plan.trims) {
    const auto& outcome = outcomes.at(partition);
    const auto name = fmt::format("{}/{}", partition.topic, partition.partition);
    if (!outcome) {
      report.failure(client_failure(
          outcome.error(),
          fmt::format("{} {} trimmed", name,
                      outcome.error().maybe_applied ? "may or may not have been" : "was not"),
          name));
      continue;
    }
    report.item(item_of(partition, Trim{trim.first, *outcome}, false));
    report.text(fmt::format(
        "{} begins at {} now ({} gone)\n", name, *outcome,
        counted(static_cast<std::uint64_t>(std::max<std::int64_t>(0, *outcome - trim.first)),
                "offset")));
  }
}

void say_unreached(const Plan& plan, Report& report) {
  for (const auto& [partition, error] : plan.unreached) {
    const auto name = fmt::format("{}/{}", partition.topic, partition.partition);
    report.failure(client_failure(error, fmt::format("{} was not trimmed", name), name));
  }
}

Exit trim(Context& context) {
  const auto& topic = context.args.positionals[0];
  const auto what = fmt::format("{} was not trimmed", topic);
  static_cast<void>(wanted_place(context));
  if (!context.globals.dry_run && !context.globals.yes && !context.console.in_is_terminal)
    context.confirm("", "");  // says at once what a script without --yes will meet
  const Plan plan = make_plan(context, topic, what);
  Report report(context);
  if (context.globals.dry_run) {
    for (const auto& [partition, trim] : plan.trims) report.item(item_of(partition, trim, true));
    report.text(fmt::format("would remove {}\n", loss_text(topic, plan)));
    say_plan(plan, report);
    say_unreached(plan, report);
    return report.finish();
  }
  context.confirm(
      fmt::format("This removes {}. They cannot be brought back.", loss_text(topic, plan)), topic);
  carry_out(context, plan, report);
  say_unreached(plan, report);
  return report.finish();
}

}  // namespace

Command topic_trim_command() {
  return {
      .path = "topic trim",
      .summary = "Removes the oldest records of a topic's partitions",
      .details =
          "WHERE is the first place that stays: an offset (of one partition), end, -N (the newest "
          "N offsets stay) or\n@TIME (what the broker appended before it goes). At a terminal it "
          "says what will be lost and wants the name\ntyped; elsewhere it needs --yes.",
      .examples = {"mqctl topic trim orders --to @-7d --dry-run",
                   "mqctl topic trim orders -p 0 --to 1200 --yes",
                   "mqctl topic trim orders --to end"},
      .positionals = {{.name = "TOPIC", .help = "its name", .complete = Complete::topics}},
      .flags = {{.name = "partition",
                 .letter = 'p',
                 .kind = Kind::text,
                 .value = "N,…",
                 .help = "only these partitions"},
                {.name = "to",
                 .kind = Kind::text,
                 .value = "WHERE",
                 .help = "the first place that stays"}},
      .item_shape = R"({"topic":"string","partition":"int","log_start_offset":"int",)"
                    R"("was":"int","removed":"int","dry_run":"bool"})",
      .changes = true,
      .dry_run = true,
      .run = trim};
}

}  // namespace mq::mqctl
