#include "mqctl/cli/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/network.h"
#include "base/strings.h"
#include "base/units.h"

namespace mq::mqctl {
namespace {

const std::vector<std::string> kForms = {"table", "json", "jsonl"};
const std::vector<std::string> kFormsNotYet = {"wide", "tsv"};

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string help_hint(const Command& command) {
  return fmt::format("mqctl {} --help", command.path);
}

/// "-p/--partition", as error lines name a flag.
std::string shown(const Flag& flag) {
  return flag.letter == 0 ? "--" + flag.name : fmt::format("-{}/--{}", flag.letter, flag.name);
}

[[noreturn]] void throw_usage(const Command& command, std::string what, std::string why = {}) {
  if (why.empty()) why = fmt::format("{}", command.summary);
  throw Failed(usage_failure(std::move(what), std::move(why), help_hint(command)));
}

/// Nothing, or what the value should have been.
std::optional<std::string> wrong_number(const Flag& flag, const std::string& text) {
  const auto number = base::parse_signed(text);
  if (number && *number >= flag.least && *number <= flag.most) return std::nullopt;
  if (flag.most == INT64_MAX) return fmt::format("a whole number from {}", flag.least);
  return fmt::format("a whole number from {} to {}", flag.least, flag.most);
}

bool is_rate(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value) && value > 0 && text[0] != '-';
}

std::optional<std::string> wrong_value(const Flag& flag, const std::string& text) {
  switch (flag.kind) {
    case Kind::on_off:
    case Kind::text:
      return std::nullopt;
    case Kind::number:
      return wrong_number(flag, text);
    case Kind::rate:
      if (is_rate(text)) return std::nullopt;
      return "a number above 0, per second";
    case Kind::bytes:
      if (base::parse_bytes(text)) return std::nullopt;
      return "a size with its unit, such as 512KiB, 64MiB or 10GB";
    case Kind::duration:
      if (base::parse_duration(text)) return std::nullopt;
      return "a time with its unit, such as 500ms, 10s or 5m";
    case Kind::choice:
      if (contains(flag.choices, text)) return std::nullopt;
      return fmt::format("one of {}", fmt::join(flag.choices, ", "));
    case Kind::setting:
      if (text.find('=') != std::string::npos && text[0] != '=') return std::nullopt;
      return "of the form name=value";
  }
  return std::nullopt;
}

void check_values(const Command& command, const Flag& flag, const std::vector<std::string>& given) {
  if (given.size() > 1 && !flag.repeats && flag.kind != Kind::on_off)
    throw_usage(command, fmt::format("{} is given {} times", shown(flag), given.size()),
                "it may be given once");
  for (const auto& text : given) {
    if (flag.name == "output" && contains(kFormsNotYet, text))
      throw Failed(make_failure(protocol::WireError::not_available,
                                fmt::format("-o {} is not in this release", text), {},
                                fmt::format("-o {}", fmt::join(command.outputs, ", -o "))));
    if (const auto expected = wrong_value(flag, text))
      throw_usage(command, fmt::format("{}: \"{}\" is not allowed", shown(flag), text),
                  fmt::format("it must be {}", *expected));
  }
}

/// consume has an -o of its own (the offset); -o json still means the output form there.
void move_output_form(const Command& command, Arguments& arguments) {
  const Flag* own = find_flag(command, 'o');
  if (own == nullptr || own->name == "output") return;
  auto& given = arguments.values[own->name];
  const auto form = std::stable_partition(given.begin(), given.end(), [](const auto& text) {
    return !contains(kForms, text) && !contains(kFormsNotYet, text);
  });
  auto& output = arguments.values["output"];
  output.insert(output.end(), form, given.end());
  given.erase(form, given.end());
}

[[noreturn]] void throw_unknown_flag(const Command& command, const std::string& word) {
  const auto name = word.substr(0, word.find('='));
  if (contains(flags_not_yet(), name))
    throw Failed(make_failure(protocol::WireError::not_available,
                              fmt::format("{} is not in this release", name), {},
                              help_hint(command)));
  if (name == "-w" || name == "--watch")
    throw_usage(command, fmt::format("mqctl {} cannot be watched", command.path),
                "only commands that look, and change nothing, are shown again and again");
  std::vector<std::string> known;
  for (const Flag* flag : flags_of(command)) known.push_back("--" + flag->name);
  const auto near = base::nearest(name, known);
  throw_usage(command, fmt::format("mqctl {} has no flag {}", command.path, name),
              near ? fmt::format("did you mean {}?", *near) : "");
}

void take_positionals(const Command& command, const std::vector<std::string>& words,
                      Arguments& arguments) {
  bool flags_over = false;
  for (const auto& word : words) {
    if (!flags_over && word == "--") {
      flags_over = true;
    } else if (!flags_over && word.size() > 1 && word[0] == '-') {
      throw_unknown_flag(command, word);
    } else {
      arguments.positionals.push_back(word);
    }
  }
  std::size_t least = 0;
  std::size_t most = 0;
  for (const auto& positional : command.positionals) {
    if (arguments.positionals.size() < least + positional.least)
      throw_usage(command, fmt::format("mqctl {} needs {}", command.path, positional.name),
                  positional.help);
    least += positional.least;
    most = positional.most == SIZE_MAX ? SIZE_MAX : most + positional.most;
  }
  if (arguments.positionals.size() > most)
    throw_usage(command, fmt::format("\"{}\" is one argument too many for mqctl {}",
                                     arguments.positionals[most], command.path));
}

void add_to_parser(CLI::App& app, const Flag& flag, bool with_letter,
                   std::vector<std::string>& into) {
  const auto names =
      with_letter ? fmt::format("-{},--{}", flag.letter, flag.name) : "--" + flag.name;
  if (flag.kind == Kind::on_off) {
    app.add_flag_callback(names, [&into] { into.assign(1, "yes"); });
    return;
  }
  const auto keep = [&into](const CLI::results_t& results) {
    into = results;
    return true;
  };
  app.add_option(names, keep)->take_all();
}

/// "--watch=5s" is "--watch --interval 5s": a flag has no value here.
std::vector<std::string> with_interval(const std::vector<std::string>& rest) {
  constexpr std::string_view kWatch = "--watch=";
  std::vector<std::string> words;
  for (const auto& word : rest) {
    if (word.starts_with(kWatch)) {
      words.insert(words.end(), {"--watch", "--interval", word.substr(kWatch.size())});
    } else {
      words.push_back(word);
    }
  }
  return words;
}

}  // namespace

Arguments parse_arguments(const Command& command, const std::vector<std::string>& rest) {
  Arguments arguments;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const auto flags = flags_of(command);
  for (const Flag* flag : flags) {
    const bool with_letter = flag->letter != 0 && find_flag(command, flag->letter) == flag;
    add_to_parser(app, *flag, with_letter, arguments.values[flag->name]);
  }
  const auto words = command.watches ? with_interval(rest) : rest;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& wrong) {
    throw_usage(command, wrong.what());
  }
  take_positionals(command, app.remaining(), arguments);
  move_output_form(command, arguments);
  for (const Flag* flag : flags) {
    auto& given = arguments.values[flag->name];
    check_values(command, *flag, given);
    if (given.empty() && !flag->fallback.empty()) given.push_back(flag->fallback);
    if (given.empty() && flag->required && !arguments.on("schema"))
      throw_usage(command, fmt::format("mqctl {} needs --{}", command.path, flag->name),
                  flag->help);
  }

  return arguments;
}

namespace {

std::string from_environment(const Console& console, const Arguments& arguments,
                             std::string_view flag, const std::string& variable,
                             std::string fallback) {
  if (arguments.has(flag)) return arguments.text(flag);
  if (auto value = console.variable(variable)) return *value;
  return fallback;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (const auto part : base::split(text, ',')) parts.emplace_back(base::trim(part));
  return parts;
}

/// A comma at the end is no further address; a wrong address is refused before anything connects.
std::vector<std::string> broker_list(const Command& command, const std::string& text) {
  auto brokers = split_list(text);
  if (brokers.size() > 1 && brokers.back().empty()) brokers.pop_back();
  for (const auto& broker : brokers)
    if (const auto parsed = base::parse_endpoint(broker, 9500); !parsed.endpoint)
      throw Failed(usage_failure(fmt::format("-b/--brokers: \"{}\" is not allowed", broker),
                                 parsed.error, help_hint(command)));
  return brokers;
}

Form form_of(const Command& command, const std::string& name) {
  if (contains(kFormsNotYet, name))
    throw Failed(make_failure(protocol::WireError::not_available,
                              fmt::format("-o {} is not in this release", name)));
  if (!contains(command.outputs, name))
    throw_usage(command, fmt::format("mqctl {} has no output form \"{}\"", command.path, name),
                fmt::format("it has {}", fmt::join(command.outputs, ", ")));
  return name == "json" ? Form::json : name == "jsonl" ? Form::jsonl : Form::table;
}

/// The variable is meant for all commands, so one without this form uses the nearest that it has.
Form form_from_environment(const Command& command, const Console& console) {
  const auto name = console.variable("MQCTL_OUTPUT").value_or(command.outputs[0]);
  if (!contains(kForms, name)) return form_of(command, name);
  if (contains(command.outputs, name)) return form_of(command, name);
  return form_of(
      command, name == "json" && contains(command.outputs, "jsonl") ? "jsonl" : command.outputs[0]);
}

void resolve_timeout(const Command& command, const Arguments& arguments, const Console& console,
                     Globals& globals) {
  const auto text = from_environment(console, arguments, "timeout", "MQCTL_TIMEOUT", "");
  if (text.empty()) return;
  const auto timeout = base::parse_duration(text);
  if (!timeout)
    throw_usage(command, fmt::format("MQCTL_TIMEOUT: \"{}\" is not allowed", text),
                "it must be a time with its unit, such as 10s");
  globals.timeout = globals.connect_timeout = *timeout;
}

/// Before anything is done: a benchmark of an hour would say it at its end. What stands below the
/// first name is seen when it is there.
void check_fields(const Command& command, const std::vector<std::string>& fields) {
  const auto shape = parse_json(command.item_shape);
  if (!shape.value) return;
  for (const auto& field : fields) {
    const auto name = field.substr(0, field.find('.'));
    if (shape.value->find(name) != nullptr) continue;
    throw Failed(usage_failure(fmt::format("--fields: there is no field \"{}\"", name), {},
                               fmt::format("mqctl {} --schema lists the fields", command.path)));
  }
}

}  // namespace

Globals resolve_globals(const Command& command, const Arguments& arguments,
                        const Console& console) {
  Globals globals;
  globals.brokers = broker_list(
      command, from_environment(console, arguments, "brokers", "MQCTL_BROKERS", "localhost:9500"));
  globals.form = arguments.has("output") ? form_of(command, arguments.text("output"))
                                         : form_from_environment(command, console);
  resolve_timeout(command, arguments, console, globals);
  if (arguments.has("fields")) globals.fields = split_list(arguments.text("fields"));
  if (!globals.fields.empty() && globals.form == Form::table)
    throw_usage(command, "--fields works with -o json and -o jsonl", "a table has fixed columns");
  check_fields(command, globals.fields);
  globals.yes = arguments.on("yes");
  globals.dry_run = command.dry_run && arguments.on("dry-run");
  globals.quiet = arguments.on("quiet");
  globals.verbose = arguments.on("verbose");
  globals.no_color = arguments.on("no-color");
  return globals;
}

Form guess_form(std::span<const std::string> words, const Console& console) {
  std::string form = console.variable("MQCTL_OUTPUT").value_or("table");
  const bool consume = std::find(words.begin(), words.end(), "consume") != words.end();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (word == "--") break;
    if ((word == "-o" || word == "--output") && i + 1 < words.size()) {
      if (contains(kForms, words[i + 1])) form = words[i + 1];
    } else if (word.starts_with("--output=")) {
      form = word.substr(9);
    } else if (word.starts_with("-o") && contains(kForms, word.substr(2))) {
      form = word.substr(2);
    } else if (consume && (word == "-J" || word == "--json")) {
      form = "jsonl";
    }
  }
  return form == "json" ? Form::json : form == "jsonl" ? Form::jsonl : Form::table;
}

}  // namespace mq::mqctl
