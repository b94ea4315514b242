#include "mqctl/cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "mqctl/cli/value.h"

namespace mq::mqctl {
namespace {

std::string usage_line(const Command& command) {
  std::string line = fmt::format("  mqctl {}", command.path);
  for (const auto& positional : command.positionals) {
    const auto name = positional.most == 1 ? positional.name : positional.name + "…";
    line += positional.least == 0 ? fmt::format(" [{}]", name) : " " + name;
  }
  return line + " [flags]\n";
}

std::string flag_line(const Flag& flag, bool letter_taken) {
  const auto letter =
      flag.letter == 0 || letter_taken ? std::string("    ") : fmt::format("-{}, ", flag.letter);
  const auto name = fmt::format("{}--{} {}", letter, flag.name, flag.value);
  std::string help = flag.help;
  if (!flag.fallback.empty()) help += fmt::format(" (default {})", flag.fallback);
  if (flag.repeats) help += "; may be given again";
  return fmt::format("  {:<32} {}\n", name, help);
}

std::string flag_lines(const Command& command) {
  std::string own;
  std::string global;
  std::string letters;
  for (const Flag* flag : flags_of(command)) {
    const bool is_own = std::any_of(command.flags.begin(), command.flags.end(),
                                    [&](const Flag& other) { return other.name == flag->name; }) ||
                        flag->name == "dry-run";
    const bool taken = flag->letter != 0 && letters.find(flag->letter) != std::string::npos;
    if (flag->letter != 0) letters += flag->letter;
    (is_own ? own : global) += flag_line(*flag, taken);
  }
  return (own.empty() ? "" : "\nFlags:\n" + own) + "\nGlobal flags:\n" + global;
}

}  // namespace

std::string group_help(const std::string& group) {
  std::string text = group.empty()
                         ? "mqctl: looks after an mq cluster and moves records in and out\n\n"
                         : fmt::format("mqctl {}\n\n", group);
  const auto prefix = group.empty() ? "" : group + " ";
  for (const auto& command : all_commands())
    if (!command.hidden && command.path.starts_with(prefix))
      text += fmt::format("  {:<18} {}\n", command.path, command.summary);
  text += "\nmqctl COMMAND --help explains one, with an example. mqctl alone is mqctl status.\n";
  return text;
}

std::string command_help(const Command& command) {
  std::string text = fmt::format("{}\n\n{}", command.summary, usage_line(command));
  if (!command.details.empty()) text += "\n" + command.details + "\n";
  if (!command.positionals.empty()) {
    text += "\n";
    for (const auto& positional : command.positionals)
      text += fmt::format("  {:<32} {}\n", positional.name, positional.help);
  }
  text += flag_lines(command);
  text += command.examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const auto& example : command.examples) text += "  " + example + "\n";
  return text;
}

std::string schema_text(const Command& command) {
  Value object = Value::object();
  object.set("schema", command.schema());
  const auto item = parse_json(command.item_shape);
  object.set("items", Value::array().add(item.value.value_or(Value::object())));
  const auto failure = parse_json(
      R"({"code":"string","item":"string|null","message":"string","why":"string","hint":"string",)"
      R"("broker":"int|null","retriable":"bool","applied":"no|unknown"})");
  object.set("errors", Value::array().add(failure.value.value()));
  return to_json(object) + "\n";
}

}  // namespace mq::mqctl
