#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "mqctl/cli/arguments.h"
#include "mqctl/cli/console.h"
#include "mqctl/cli/failure.h"
#include "mqctl/cli/registry.h"

namespace mq::mqctl {

enum class Form { table, json, jsonl };

/// The flags that mean the same everywhere, after flag > environment > default.
struct Globals {
  std::vector<std::string> brokers;
  Form form = Form::table;
  std::vector<std::string> fields;
  std::chrono::milliseconds timeout{10'000};
  /// How long to look for a broker that answers: nobody wants to watch a wrong address for ten
  /// seconds, so without a wish it is shorter than `timeout`.
  std::chrono::milliseconds connect_timeout{3'000};
  bool yes = false;
  bool dry_run = false;
  bool quiet = false;
  bool verbose = false;
  bool no_color = false;
};

/// What a verb gets: its checked arguments and the world. Lives as long as the command.
class Context {
 public:
  Context(Console& console, const Command& command, Arguments arguments, Globals globals)
      : console(console),
        command(command),
        args(std::move(arguments)),
        globals(std::move(globals)) {}

  Console& console;
  const Command& command;
  const Arguments args;
  const Globals globals;

  /// For people, unless -q.
  void notice(std::string_view line) const {
    if (!globals.quiet) console.notice(line);
  }
  [[nodiscard]] bool machine_output() const { return globals.form != Form::table; }
  /// Prints one failure as the output form wants it and returns its exit code.
  Exit report(const Failure& failure) const;
  /// The positionals. Throws USAGE when one is there twice, since each has one outcome.
  [[nodiscard]] const std::vector<std::string>& distinct_items() const;
  /// Throws DECLINED unless the person at the terminal types `answer` or --yes was given. `loss`
  /// says what will be gone.
  void confirm(std::string_view loss, std::string_view answer) const;
};

}  // namespace mq::mqctl
