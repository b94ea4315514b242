#include <fmt/format.h>

#include "mqctl/cli/report.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

Exit version(Context& context) {
  Report report(context);
  report.text(fmt::format("mqctl {}\n", MQ_VERSION));
  report.item(Value::object().set("program", "mqctl").set("version", MQ_VERSION));
  return report.finish();
}

}  // namespace

Command version_command() {
  return {.path = "version",
          .summary = "Prints the version of this program",
          .examples = {"mqctl version"},
          .flags = {},
          .item_shape = R"({"program":"string","version":"string"})",
          .connects = false,
          .run = version};
}

}  // namespace mq::mqctl
