#include <fmt/format.h>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/choices.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

std::vector<NewTopic> wanted_topics(const Context& context) {
  std::vector<NewTopic> topics;
  for (const auto& name : context.distinct_items()) {
    NewTopic topic(name);
    if (context.args.has("partitions"))
      topic.partitions = static_cast<std::int32_t>(context.args.number("partitions"));
    if (context.args.has("replicas"))
      topic.replicas = static_cast<std::int32_t>(context.args.number("replicas"));
    topic.config = settings_of(context);
    topics.push_back(std::move(topic));
  }
  return topics;
}

/// What may be said of a topic whose creation ended with `error`.
const char* fate_of(const Error& error, bool dry_run) {
  if (dry_run) return "would not be created";
  return error.maybe_applied ? "may or may not have been created" : "was not created";
}

Exit create(Context& context) {
  const auto topics = wanted_topics(context);
  auto admin = connect_admin(context);
  const bool dry_run = context.globals.dry_run;
  const auto outcomes = admin.create_topics(topics, dry_run);
  Report report(context);
  for (const auto& topic : topics) {
    const auto& outcome = outcomes.at(topic.name);
    if (!outcome) {
      report.failure(client_failure(
          outcome.error(), fmt::format("{} {}", topic.name, fate_of(outcome.error(), dry_run)),
          topic.name));
      continue;
    }
    report.item(Value::object()
                    .set("name", topic.name)
                    .set("id", outcome->id.empty() ? Value() : Value(outcome->id))
                    .set("partitions", outcome->partitions)
                    .set("dry_run", dry_run));
    report.text(fmt::format("{} {}: {}\n", dry_run ? "would create" : "created", topic.name,
                            counted(static_cast<std::uint64_t>(outcome->partitions), "partition")));
  }
  return report.finish();
}

}  // namespace

Command topic_create_command() {
  return {.path = "topic create",
          .summary = "Creates topics",
          .details =
              "Settings for --config: durability (disk, memory), retention.age, retention.bytes,\n"
              "segment.bytes, segment.age, batch.bytes, min_isr, unclean_election. What is not set "
              "comes from the\n"
              "broker.",
          .examples = {"mqctl topic create orders --partitions 6",
                       "mqctl topic create events --config retention.age=3d --config "
                       "durability=memory"},
          .positionals = {{.name = "TOPIC", .help = "one or more names", .most = SIZE_MAX}},
          .flags = {{.name = "partitions",
                     .letter = 'p',
                     .kind = Kind::number,
                     .value = "N",
                     .help = "how many partitions; else the broker's default",
                     .least = 1,
                     .most = INT32_MAX},
                    {.name = "replicas",
                     .kind = Kind::number,
                     .value = "N",
                     .help = "copies of each partition; a standalone broker has 1",
                     .least = 1,
                     .most = INT32_MAX},
                    config_flag()},
          .item_shape = R"({"name":"string","id":"uuid|null","partitions":"int","dry_run":"bool"})",
          .changes = true,
          .dry_run = true,
          .run = create};
}

}  // namespace mq::mqctl
