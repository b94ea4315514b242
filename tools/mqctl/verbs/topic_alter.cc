#include <fmt/format.h>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/choices.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

TopicChange wanted_change(const Context& context) {
  TopicChange change;
  change.set = settings_of(context);
  change.unset = context.args.list("unset");
  if (change.set.empty() && change.unset.empty())
    throw Failed(usage_failure("nothing to alter",
                               "--config NAME=VALUE sets, --unset NAME goes back to the default"));
  for (const auto& name : change.unset)
    if (change.set.contains(name))
      throw Failed(usage_failure(fmt::format("{} is both set and unset", name)));
  return change;
}

std::string change_text(const TopicChange& change) {
  std::string text;
  for (const auto& [name, value] : change.set) text += fmt::format("  {}={}", name, value);
  for (const auto& name : change.unset) text += fmt::format("  {} (default)", name);
  return text;
}

Value change_value(const std::string& topic, const TopicChange& change) {
  Value set = Value::object();
  for (const auto& [name, value] : change.set) set.set(name, value);
  Value unset = Value::array();
  for (const auto& name : change.unset) unset.add(name);
  return Value::object()
      .set("name", topic)
      .set("set", std::move(set))
      .set("unset", std::move(unset));
}

Failure not_done(const std::string& topic, const Error& error, std::string_view perhaps,
                 std::string_view certainly) {
  return client_failure(
      error, fmt::format("{} {}", topic, error.maybe_applied ? perhaps : certainly), topic);
}

Exit alter(Context& context) {
  const auto change = wanted_change(context);
  const auto& names = context.distinct_items();
  std::map<std::string, TopicChange> changes;
  for (const auto& name : names) changes.emplace(name, change);
  auto admin = connect_admin(context);
  const auto outcomes = admin.alter_topics(changes);
  Report report(context);
  for (const auto& name : names) {
    const auto& outcome = outcomes.at(name);
    if (!outcome) {
      report.failure(
          not_done(name, outcome.error(), "may or may not have been altered", "was not altered"));
      continue;
    }
    report.item(change_value(name, change));
    report.text(fmt::format("altered {}:{}\n", name, change_text(change)));
  }
  return report.finish();
}

Exit add_partitions(Context& context) {
  const auto& names = context.distinct_items();
  std::map<std::string, std::int32_t> totals;
  for (const auto& name : names)
    totals.emplace(name, static_cast<std::int32_t>(context.args.number("total")));
  auto admin = connect_admin(context);
  const auto outcomes = admin.add_partitions(totals);
  Report report(context);
  for (const auto& name : names) {
    const auto& outcome = outcomes.at(name);
    if (!outcome) {
      report.failure(not_done(name, outcome.error(), "may or may not have got its partitions",
                              "got no partitions"));
      continue;
    }
    report.item(Value::object().set("name", name).set("partitions", *outcome));
    report.text(fmt::format("{} has {} now\n", name,
                            counted(static_cast<std::uint64_t>(*outcome), "partition")));
  }
  context.notice("records with a key may go to another partition than those before them");
  return report.finish();
}

}  // namespace

Command topic_alter_command() {
  return {.path = "topic alter",
          .summary = "Changes settings of topics that exist",
          .details =
              "Settings: durability (disk, memory), retention.age, retention.bytes, "
              "segment.bytes,\nsegment.age, batch.bytes, min_isr, unclean_election. What is not "
              "named stays.",
          .examples = {"mqctl topic alter orders --config retention.age=7d",
                       "mqctl topic alter orders events --unset segment.bytes"},
          .positionals = {{.name = "TOPIC",
                           .help = "one or more names",
                           .most = SIZE_MAX,
                           .complete = Complete::topics}},
          .flags = {config_flag(),
                    {.name = "unset",
                     .letter = 'u',
                     .kind = Kind::text,
                     .value = "NAME",
                     .help = "a setting that goes back to the broker's default",
                     .repeats = true}},
          .item_shape = R"({"name":"string","set":{"NAME":"string"},"unset":["string"]})",
          .changes = true,
          .run = alter};
}

Command topic_add_partitions_command() {
  return {.path = "topic add-partitions",
          .summary = "Gives topics more partitions",
          .details =
              "A topic never gets fewer. --total names how many there are to be, so that a "
              "repeat adds nothing.",
          .examples = {"mqctl topic add-partitions orders --total 12"},
          .positionals = {{.name = "TOPIC",
                           .help = "one or more names",
                           .most = SIZE_MAX,
                           .complete = Complete::topics}},
          .flags = {{.name = "total",
                     .kind = Kind::number,
                     .value = "N",
                     .help = "how many partitions there are to be",
                     .least = 1,
                     .most = INT32_MAX,
                     .required = true}},
          .item_shape = R"({"name":"string","partitions":"int"})",
          .changes = true,
          .run = add_partitions};
}

}  // namespace mq::mqctl
