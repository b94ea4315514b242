#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

struct Loss {
  std::size_t partitions = 0;
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
};

Loss loss_of(const TopicDescription& topic) {
  Loss loss;
  loss.partitions = topic.partitions.size();
  for (const auto& part : topic.partitions) {
    loss.bytes += part.bytes;
    loss.records += static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, part.high_watermark - part.log_start_offset));
  }
  return loss;
}

std::string loss_text(const std::string& name, const Loss& loss) {
  return fmt::format("{}: {}, {}, {}", name, counted(loss.partitions, "partition"),
                     base::format_bytes(loss.bytes), counted(loss.records, "record"));
}

Value item_of(const std::string& name, const Loss& loss, bool dry_run) {
  return Value::object()
      .set("name", name)
      .set("partitions", std::uint64_t{loss.partitions})
      .set("records", loss.records)
      .set("bytes", loss.bytes)
      .set("dry_run", dry_run);
}

/// Says at once what a script without --yes will meet, before any broker is asked.
void refuse_without_terminal(const Context& context) {
  if (!context.globals.dry_run && !context.globals.yes && !context.console.in_is_terminal)
    context.confirm("", "");
}

void delete_one(Context& context, Admin& admin, const std::string& name, const Loss& loss,
                Report& report) {
  if (context.globals.dry_run) {
    report.item(item_of(name, loss, true));
    report.text(fmt::format("would delete {}\n", loss_text(name, loss)));
    return;
  }
  context.confirm(fmt::format("This deletes {}. It cannot be brought back.", loss_text(name, loss)),
                  name);
  const auto outcomes = admin.delete_topics({name});
  const auto& outcome = outcomes.at(name);
  if (!outcome) {
    report.failure(client_failure(
        outcome.error(),
        fmt::format("{} {} deleted", name,
                    outcome.error().maybe_applied ? "may or may not have been" : "was not"),
        name));
    return;
  }
  report.item(item_of(name, loss, false));
  report.text(fmt::format("deleted {}\n", loss_text(name, loss)));
}

Exit remove(Context& context) {
  const auto& names = context.distinct_items();
  refuse_without_terminal(context);
  auto admin = connect_admin(context);
  const auto found = admin.describe_topics(names);
  Report report(context);
  for (const auto& name : names) {
    const auto& topic = found.at(name);
    if (!topic) {
      auto failure = client_failure(topic.error(), fmt::format("{} was not deleted", name), name);
      failure.advice.maybe_applied = false;  // only the question what it holds was sent
      report.failure(std::move(failure));
      continue;
    }
    try {
      delete_one(context, admin, name, loss_of(*topic), report);
    } catch (const Failed& declined) {
      auto failure = declined.failure();
      failure.item = name;
      report.failure(std::move(failure));
    }
  }
  return report.finish();
}

}  // namespace

Command topic_delete_command() {
  return {.path = "topic delete",
          .summary = "Deletes topics with all their records",
          .details =
              "At a terminal it says what will be lost and wants the name typed; elsewhere "
              "it needs --yes.",
          .examples = {"mqctl topic delete orders", "mqctl topic delete orders --dry-run",
                       "mqctl topic delete orders --yes"},
          .positionals = {{.name = "TOPIC",
                           .help = "one or more names",
                           .most = SIZE_MAX,
                           .complete = Complete::topics}},
          .item_shape = R"({"name":"string","partitions":"int","records":"int","bytes":"int",)"
                        R"("dry_run":"bool"})",
          .changes = true,
          .dry_run = true,
          .run = remove};
}

}  // namespace mq::mqctl
