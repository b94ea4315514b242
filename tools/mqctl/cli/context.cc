#include "mqctl/cli/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace mq::mqctl {

Exit Context::report(const Failure& failure) const {
  if (!machine_output()) {
    console.err.write(failure_text(failure, console.err_is_lively(globals.no_color)));
    console.err.flush();
    return exit_of(failure, command.changes);
  }
  Value object = Value::object();
  object.set("schema", command.schema());
  if (globals.form == Form::jsonl) {
    object.set("error", failure_value(failure, command.changes));
  } else {
    object.set("items", Value::array());
    object.set("errors", Value::array().add(failure_value(failure, command.changes)));
  }
  console.out.write(to_json(object) + "\n");
  console.out.flush();
  return exit_of(failure, command.changes);
}

const std::vector<std::string>& Context::distinct_items() const {
  const auto& items = args.positionals;
  for (auto at = items.begin(); at != items.end(); ++at)
    if (std::find(items.begin(), at, *at) != at)
      throw Failed(usage_failure(fmt::format("{} is named twice", *at),
                                 "each name has one outcome, so it may stand there once"));
  return items;
}

void Context::confirm(std::string_view loss, std::string_view answer) const {
  if (globals.yes) return;
  if (!console.in_is_terminal)
    throw Failed(make_failure(
        protocol::WireError::declined, fmt::format("{} was not confirmed", command.path),
        "there is no terminal to ask at, and --yes was not given", "add --yes when you are sure"));
  const auto typed = console.ask(fmt::format("{}\nType {} to go on: ", loss, answer));
  if (typed && base::trim(*typed) == answer) return;
  throw Failed(
      make_failure(protocol::WireError::declined, fmt::format("{} was not confirmed", command.path),
                   typed ? fmt::format("\"{}\" is not \"{}\"; nothing was done", *typed, answer)
                         : "no answer; nothing was done"));
}

}  // namespace mq::mqctl
