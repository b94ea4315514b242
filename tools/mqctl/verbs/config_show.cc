#include <fmt/format.h>

#include <algorithm>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/broker_view.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

Exit show(Context& context) {
  const auto wanted = wanted_brokers(context);
  const bool all = !context.args.on("changed");
  auto admin = connect_admin(context);
  const auto configs = admin.describe_configs();
  Report report(context);
  for (const auto id : wanted)
    if (!configs.contains(id)) report.failure(no_such_broker(id));
  Table table({{"BROKER", Table::Align::right}, {"KEY"}, {"VALUE"}, {"ORIGIN"}});
  for (const auto& [id, settings] : configs) {
    if (!wanted.empty() && std::ranges::find(wanted, id) == wanted.end()) continue;
    if (!settings) {
      report.failure(client_failure(settings.error(), fmt::format("broker {} was not asked", id),
                                    fmt::format("{}", id)));
      continue;
    }
    for (const auto& setting : *settings) {
      if (!all && setting.origin == "built-in") continue;
      report.item(Value::object()
                      .set("broker", id)
                      .set("key", setting.name)
                      .set("value", setting.value)
                      .set("origin", setting.origin));
      table.add({fmt::format("{}", id), setting.name, setting.value, setting.origin});
    }
  }
  if (!table.empty()) report.text(table.text());
  return report.finish();
}

}  // namespace

Command config_show_command() {
  return {.path = "config show",
          .summary = "Shows the settings in force at the brokers, and where each comes from",
          .examples = {"mqctl config show", "mqctl config show 1 --changed -o json"},
          .positionals = {{.name = "BROKER",
                           .help = "ids; all without",
                           .least = 0,
                           .most = SIZE_MAX,
                           .complete = Complete::brokers}},
          .flags = {{.name = "changed", .help = "only what is not built in"}},
          .item_shape = R"({"broker":"int","key":"string","value":"string","origin":"string"})",
          .run = show};
}

}  // namespace mq::mqctl
