#include <fmt/format.h>

#include "base/real/posix_file_system.h"
#include "config/broker_config.h"
#include "mqctl/cli/report.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

Value errors_value(const std::vector<config::ConfigError>& errors) {
  Value array = Value::array();
  for (const auto& error : errors)
    array.add(Value::object()
                  .set("source", error.source)
                  .set("line", error.line)
                  .set("column", error.column)
                  .set("key", error.key)
                  .set("message", error.message));
  return array;
}

Value settings_value(const std::vector<config::EffectiveSetting>& settings) {
  Value array = Value::array();
  for (const auto& setting : settings)
    array.add(Value::object()
                  .set("key", setting.key)
                  .set("value", setting.value)
                  .set("origin", setting.origin));
  return array;
}

void validate_one(Context& context, const std::string& file, Report& report) {
  base::PosixFileSystem files;
  // Only the file itself: what the environment of a person's shell says is not what a broker gets.
  const auto loaded =
      config::load_broker_config(files, {.file = file, .environment = {}, .flags = {}});
  Value warnings = Value::array();
  for (const auto& warning : loaded.warnings) {
    warnings.add(warning);
    report.text(fmt::format("warning: {}\n", warning));
  }
  report.item(Value::object()
                  .set("file", file)
                  .set("valid", loaded.ok())
                  .set("problems", errors_value(loaded.errors))
                  .set("warnings", std::move(warnings))
                  .set("settings", settings_value(loaded.settings)));
  if (loaded.ok()) {
    report.text(fmt::format("{} is valid\n", file));
    if (context.globals.verbose) report.text(config::render_effective_config(loaded.settings));
    return;
  }
  std::string lines;
  for (const auto& error : loaded.errors) lines += "\n        " + error.text();
  auto failure = make_failure(protocol::WireError::config_invalid,
                              fmt::format("{} is not valid", file), lines.substr(9));
  failure.item = file;
  report.failure(std::move(failure));
}

Exit validate(Context& context) {
  Report report(context);
  for (const auto& file : context.args.positionals) validate_one(context, file, report);
  const bool invalid = report.has_failure("CONFIG_INVALID");
  const Exit exit = report.finish();
  return invalid ? Exit::failed : exit;
}

}  // namespace

Command config_validate_command() {
  return {.path = "config validate",
          .summary = "Checks a broker's configuration file without starting anything",
          .details =
              "Names every mistake at once, with file, line and column. -v lists each value "
              "in force and its origin.",
          .examples = {"mqctl config validate /etc/mq/broker.toml"},
          .positionals = {{.name = "FILE",
                           .help = "one or more broker.toml",
                           .most = SIZE_MAX,
                           .complete = Complete::files}},
          .item_shape =
              R"({"file":"string","valid":"bool","problems":[{"source":"string","line":"int",)"
              R"("column":"int","key":"string","message":"string"}],"warnings":["string"],)"
              R"("settings":[{"key":"string","value":"string","origin":"string"}]})",
          .connects = false,
          .run = validate};
}

}  // namespace mq::mqctl
