#include "mqctl/cli/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {

std::string Command::schema() const {
  std::string dotted = path;
  std::replace(dotted.begin(), dotted.end(), ' ', '.');
  return fmt::format("mqctl.{}/1", dotted);
}

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {status_command(),
                                                health_command(),
                                                broker_list_command(),
                                                broker_describe_command(),
                                                broker_disks_command(),
                                                broker_can_stop_command(),
                                                partition_list_command(),
                                                partition_describe_command(),
                                                partition_elect_leader_command(),
                                                partition_acknowledge_loss_command(),
                                                topic_list_command(),
                                                topic_describe_command(),
                                                topic_create_command(),
                                                topic_alter_command(),
                                                topic_add_partitions_command(),
                                                topic_delete_command(),
                                                topic_trim_command(),
                                                produce_command(),
                                                consume_command(),
                                                log_segments_command(),
                                                log_dump_command(),
                                                log_verify_command(),
                                                log_find_command(),
                                                log_index_rebuild_command(),
                                                log_truncate_command(),
                                                bench_produce_command(),
                                                bench_consume_command(),
                                                bench_e2e_command(),
                                                config_show_command(),
                                                config_validate_command(),
                                                error_list_command(),
                                                error_explain_command(),
                                                local_up_command(),
                                                local_down_command(),
                                                completion_command(),
                                                complete_command(),
                                                version_command()};
  return commands;
}

const std::vector<Flag>& global_flags() {
  static const std::vector<Flag> flags = {
      {.name = "brokers",
       .letter = 'b',
       .kind = Kind::text,
       .value = "HOST:PORT,…",
       .help = "where to start; MQCTL_BROKERS, else localhost:9500"},
      {.name = "output",
       .letter = 'o',
       .kind = Kind::text,
       .value = "FORM",
       .help = "table, json or jsonl; MQCTL_OUTPUT",
       .choices = {"table", "json", "jsonl"},
       .complete = Complete::choices},
      {.name = "fields",
       .kind = Kind::text,
       .value = "A,B.C",
       .help = "only these members of each item (json, jsonl)"},
      {.name = "schema", .help = "print the JSON shape and end; needs no broker"},
      {.name = "timeout",
       .kind = Kind::duration,
       .value = "TIME",
       .help = "how long a broker may take; MQCTL_TIMEOUT, else 3s to connect, then 10s"},
      {.name = "yes", .letter = 'y', .help = "do not ask"},
      {.name = "quiet", .letter = 'q', .help = "no notices and summaries on stderr"},
      {.name = "verbose", .letter = 'v', .help = "more detail"},
      {.name = "no-color", .help = "no colour; NO_COLOR"},
      {.name = "help", .letter = 'h', .help = "this text"}};
  return flags;
}

namespace {

const Flag& dry_run_flag() {
  static const Flag flag = {
      .name = "dry-run", .letter = 'n', .help = "say what would be done, and do nothing"};
  return flag;
}

const std::vector<Flag>& watch_flags() {
  static const std::vector<Flag> flags = {
      {.name = "watch", .letter = 'w', .help = "show it again every 2s, until Ctrl-C; --watch=5s"},
      {.name = "interval",
       .kind = Kind::duration,
       .value = "TIME",
       .help = "how often with --watch",
       .fallback = "2s"}};
  return flags;
}

}  // namespace

const std::vector<std::string>& commands_not_yet() {
  static const std::vector<std::string> names = {"doctor",
                                                 "top",
                                                 "topic undelete",
                                                 "topic offsets",
                                                 "topic locate",
                                                 "topic analyze",
                                                 "topic clone",
                                                 "group list",
                                                 "group describe",
                                                 "group lag",
                                                 "group reset",
                                                 "group seek",
                                                 "group peek",
                                                 "group skip",
                                                 "group delete",
                                                 "group kick",
                                                 "group export",
                                                 "group import",
                                                 "tail",
                                                 "copy",
                                                 "broker drain",
                                                 "broker resume",
                                                 "broker decommission",
                                                 "broker loggers",
                                                 "partition recover",
                                                 "reassign plan",
                                                 "reassign start",
                                                 "reassign status",
                                                 "reassign throttle",
                                                 "reassign pause",
                                                 "reassign resume",
                                                 "reassign cancel",
                                                 "reassign history",
                                                 "config set",
                                                 "config unset",
                                                 "config diff",
                                                 "config explain",
                                                 "acl list",
                                                 "acl grant",
                                                 "acl revoke",
                                                 "acl test",
                                                 "user list",
                                                 "user create",
                                                 "user rotate",
                                                 "user delete",
                                                 "quota list",
                                                 "quota set",
                                                 "quota unset",
                                                 "selftest disk",
                                                 "selftest network",
                                                 "bundle",
                                                 "profile list",
                                                 "profile use",
                                                 "profile add",
                                                 "profile edit",
                                                 "profile test"};
  return names;
}

const std::vector<std::string>& flags_not_yet() {
  static const std::vector<std::string> names = {"-P",       "--profile", "--until", "-X",
                                                 "-g",       "--group",   "--grep",  "--match",
                                                 "--skewed", "--scope"};
  return names;
}

const Command* find_command(std::string_view path) {
  const auto& commands = all_commands();
  const auto at = std::find_if(commands.begin(), commands.end(),
                               [&](const Command& command) { return command.path == path; });
  return at == commands.end() ? nullptr : &*at;
}

bool is_group(std::string_view path) {
  const auto prefix = std::string(path) + " ";
  const auto& commands = all_commands();
  return std::any_of(commands.begin(), commands.end(),
                     [&](const Command& command) { return command.path.starts_with(prefix); });
}

std::vector<const Flag*> flags_of(const Command& command) {
  std::vector<const Flag*> flags;
  for (const auto& flag : command.flags) flags.push_back(&flag);
  const auto add_global = [&](const Flag& global) {
    const bool replaced = std::any_of(command.flags.begin(), command.flags.end(),
                                      [&](const Flag& own) { return own.name == global.name; });
    if (!replaced) flags.push_back(&global);
  };
  if (command.dry_run) add_global(dry_run_flag());
  if (command.watches)
    for (const auto& flag : watch_flags()) add_global(flag);
  for (const auto& global : global_flags()) add_global(global);
  return flags;
}

const Flag* find_flag(const Command& command, std::string_view name) {
  for (const Flag* flag : flags_of(command))
    if (flag->name == name) return flag;
  return nullptr;
}

const Flag* find_flag(const Command& command, char letter) {
  for (const Flag* flag : flags_of(command))
    if (flag->letter == letter) return flag;
  return nullptr;
}

}  // namespace mq::mqctl
