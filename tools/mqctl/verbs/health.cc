#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/cluster_health.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

using Clock = std::chrono::steady_clock;

/// The checks up to this level; one that says why when nobody answers.
std::vector<Check> look(const Context& context, int level) {
  std::vector<Check> checks;
  const auto unanswered = [&](const Error& error) {
    checks = {Check{"answer", 1, {to_string(error)}}};
    return checks;
  };
  auto admin = Admin::create(client_config(context));
  if (!admin) return unanswered(admin.error());
  if (level == 1) {
    const auto cluster = admin->describe_cluster();
    return cluster ? std::vector{Check{"answer", 1, {}}} : unanswered(cluster.error());
  }
  const auto facts = look_at_cluster(*admin);
  if (!facts) return unanswered(facts.error());
  checks = checks_of(*facts);
  std::erase_if(checks, [&](const Check& check) { return check.level > level; });
  return checks;
}

bool healthy(const std::vector<Check>& checks) {
  return std::ranges::all_of(checks, [](const Check& check) { return check.troubles.empty(); });
}

/// Again and again until all is well, or the time of --wait is over.
std::vector<Check> look_until_healthy(const Context& context, int level) {
  auto checks = look(context, level);
  if (!context.args.has("wait")) return checks;
  const auto start = Clock::now();
  const auto until = start + context.args.duration("wait");
  bool told = false;
  while (!healthy(checks) && Clock::now() < until && !context.console.interrupted()) {
    if (!told && Clock::now() - start > std::chrono::seconds(3)) {
      told = true;
      for (const auto& check : checks)
        if (!check.troubles.empty()) context.notice("waiting: " + check.troubles.front());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    checks = look(context, level);
  }
  return checks;
}

Exit health(Context& context) {
  const auto level = static_cast<int>(context.args.number("level"));
  const auto checks = look_until_healthy(context, level);
  const bool good = healthy(checks);
  Report report(context);
  report.head("state", good ? "healthy" : "unhealthy");
  report.head("level", level);
  for (const auto& check : checks) {
    Value troubles = Value::array();
    for (const auto& trouble : check.troubles) troubles.add(trouble);
    report.item(Value::object()
                    .set("check", check.name)
                    .set("level", check.level)
                    .set("ok", check.troubles.empty())
                    .set("troubles", std::move(troubles)));
    if (check.troubles.empty()) {
      report.text(fmt::format("ok    {}\n", check.name));
      continue;
    }
    for (const auto& trouble : check.troubles)
      report.text(fmt::format("FAIL  {}: {}\n", check.name, trouble));
  }
  const Exit printed = report.finish();
  if (printed != Exit::ok) return printed;
  return good ? Exit::ok : Exit::unhealthy;
}

}  // namespace

Command health_command() {
  return {.path = "health",
          .summary = "Says in its exit code whether the cluster is well: 0, or 10 when it is not",
          .details =
              "Levels: 1 a broker answers, 2 there is a controller, every partition is served and "
              "takes writes with\nacks=all, 3 all brokers are there and every copy is in sync, 4 "
              "nothing at all is wrong.",
          .examples = {"mqctl health", "mqctl health --level 2 --wait 30s", "mqctl health -w"},
          .flags = {{.name = "level",
                     .kind = Kind::number,
                     .value = "N",
                     .help = "how strict, 1 to 4",
                     .fallback = "3",
                     .least = 1,
                     .most = 4},
                    {.name = "wait",
                     .kind = Kind::duration,
                     .value = "TIME",
                     .help = "look again until all is well, for so long at most"}},
          .item_shape = R"({"check":"string","level":"int","ok":"bool","troubles":["string"]})",
          .watches = true,
          .run = health};
}

}  // namespace mq::mqctl
