#include "mqctl/cli/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "mqctl/cli/context.h"
#include "mqctl/cli/help.h"
#include "mqctl/cli/parser.h"

namespace mq::mqctl {
namespace {

/// For a line that does not lead to a command.
const Command& no_command() {
  static const Command none = {.path = "error"};
  return none;
}

bool asks_for_help(const Command& command, const std::vector<std::string>& rest) {
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == "--") return false;
    if (rest[i] == "--help") return true;
    const Flag* help = find_flag(command, 'h');
    if (rest[i] == "-h" && help != nullptr && help->name == "help") return true;
  }
  return false;
}

Exit run_once(Context& context) {
  try {
    return context.command.run(context);
  } catch (const Failed& failed) {
    return context.report(failed.failure());
  }
}

/// Until Ctrl-C or the reader goes away. At a terminal each picture takes the place of the one
/// before; elsewhere they follow one another. A failure is shown like a picture: what is watched
/// may come back.
Exit watch(Context& context) {
  if (context.globals.form == Form::json)
    throw Failed(usage_failure("-w has no end that one JSON object could wait for", {},
                               "-o jsonl prints the objects of each look on lines of their own"));
  Console& console = context.console;
  const bool redraws = console.out_is_terminal && context.globals.form == Form::table;
  const auto interval = context.args.duration("interval");
  for (bool first = true; !console.interrupted() && !console.out.ended(); first = false) {
    if (redraws) {
      console.out.write("\x1b[H\x1b[2J");
    } else if (!first && context.globals.form == Form::table) {
      console.out.write("\n");
    }
    (void)run_once(context);
    console.out.flush();
    const auto until = std::chrono::steady_clock::now() + interval;
    while (!console.interrupted() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::min(interval, std::chrono::milliseconds(50)));
  }
  return Exit::interrupted;
}

Exit run_command(const Selection& selected, Console& console) {
  const Command& command = *selected.command;
  if (selected.help || asks_for_help(command, selected.rest)) {
    console.out.write(command_help(command));
    return Exit::ok;
  }
  auto arguments = parse_arguments(command, selected.rest);
  if (arguments.on("schema")) {
    if (command.item_shape.empty())
      throw Failed(usage_failure(fmt::format("mqctl {} has no JSON form", command.path)));
    console.out.write(schema_text(command));
    return Exit::ok;
  }
  auto globals = resolve_globals(command, arguments, console);
  Context context(console, command, std::move(arguments), std::move(globals));
  return command.watches && context.args.on("watch") ? watch(context) : run_once(context);
}

Exit select_and_run(std::span<const std::string> words, Console& console) {
  const Command* command = &no_command();
  try {
    const auto selected = select_command(words);
    if (selected.command == nullptr) {
      console.out.write(group_help(selected.group));
      return Exit::ok;
    }
    command = selected.command;
    return run_command(selected, console);
  } catch (const Failed& failed) {
    Globals globals;
    globals.form = guess_form(words, console);
    return Context(console, *command, {}, globals).report(failed.failure());
  }
}

}  // namespace

int run(std::span<const std::string> words, Console& console) {
  const Exit exit = select_and_run(words, console);
  console.out.flush();
  console.err.flush();
  if (console.out.error() == 0) return static_cast<int>(exit);
  console.err.write(failure_text(
      make_failure(
          protocol::WireError::output_failed, "the output is not complete",
          fmt::format("standard output: {}", std::generic_category().message(console.out.error()))),
      false));
  console.err.flush();
  return static_cast<int>(exit == Exit::ok ? Exit::failed : exit);
}

}  // namespace mq::mqctl
