#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mq::mqctl {

class Context;
enum class Exit : int;

/// What a flag's value must look like; checked before the command runs.
enum class Kind { on_off, text, number, rate, bytes, duration, choice, setting };
/// Where completion finds candidates.
enum class Complete { nothing, files, topics, brokers, commands, choices, error_codes };

struct Flag {
  std::string name;  ///< long form, without dashes
  char letter = 0;
  Kind kind = Kind::on_off;
  std::string value;  ///< how help calls the value
  std::string help;
  std::vector<std::string> choices;
  std::string fallback;  ///< the value when it is not given; shown by help
  bool repeats = false;
  std::int64_t least = 0;  ///< of a number
  std::int64_t most = INT64_MAX;
  bool required = false;
  Complete complete = Complete::nothing;
};

struct Positional {
  std::string name;
  std::string help;
  std::size_t least = 1;
  std::size_t most = 1;
  Complete complete = Complete::nothing;
};

/// One verb. This table is the only place that knows it: the parser, help, completion, --schema and
/// the documentation test read it.
struct Command {
  std::string path;  ///< "topic create"
  std::string summary;
  std::string details;  ///< more for its --help; may be empty
  std::vector<std::string> examples;
  std::vector<Positional> positionals;
  std::vector<Flag> flags;
  std::vector<std::string> outputs = {"table", "json", "jsonl"};
  std::string item_shape;  ///< JSON of one item, with the type in place of each value
  bool connects = true;
  bool changes = false;  ///< something outside this process
  bool dry_run = false;  ///< takes -n/--dry-run
  bool watches = false;  ///< takes -w/--watch: shown again and again
  bool hidden = false;
  Exit (*run)(Context&) = nullptr;

  /// "mqctl.topic.create/1", or for a `failed` command line "mqctl.error/1".
  [[nodiscard]] std::string schema() const;
};

/// Something of the command tree that a later release brings; refused by name until then.
struct NotYet {
  std::string name;  ///< "group lag", "--profile", "-o tsv"
};

const std::vector<Command>& all_commands();
/// The flags that every command takes, with the same letter and meaning.
const std::vector<Flag>& global_flags();
const std::vector<std::string>& commands_not_yet();
/// Flags (with dashes) that come later, of every command.
const std::vector<std::string>& flags_not_yet();

const Command* find_command(std::string_view path);
/// Commands whose path starts with this noun exist.
bool is_group(std::string_view path);
/// Also looks among the global flags.
const Flag* find_flag(const Command& command, std::string_view name);
const Flag* find_flag(const Command& command, char letter);
/// All flags that the command takes: its own, then the global ones it does not replace.
std::vector<const Flag*> flags_of(const Command& command);

}  // namespace mq::mqctl
