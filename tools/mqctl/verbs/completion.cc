#include "mqctl/cli/completion.h"

#include <fmt/format.h>

#include "mqctl/cli/client.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

constexpr std::string_view kBash = R"(# mqctl completion for bash
_mqctl() {
  local IFS=$'\n'
  COMPREPLY=($(mqctl __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _mqctl mqctl
)";
constexpr std::string_view kZsh = R"(#compdef mqctl
_mqctl() {
  local -a found
  found=("${(@f)$(mqctl __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _mqctl mqctl
)";
constexpr std::string_view kFish = R"(# mqctl completion for fish
function __mqctl
  set -l words (commandline -opc) (commandline -ct)
  mqctl __complete -- $words[2..-1] 2>/dev/null
end
complete -c mqctl -a '(__mqctl)'
)";

Exit script(Context& context) {
  const auto& shell = context.args.positionals[0];
  if (shell != "bash" && shell != "zsh" && shell != "fish")
    throw Failed(usage_failure(fmt::format("there is no completion for \"{}\"", shell),
                               "known: bash, zsh, fish"));
  context.console.out.write(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
  return Exit::ok;
}

/// Names from the cluster, within 300 ms; none when it does not answer.
Result<Admin> connect_quickly(const Context& context, const std::vector<std::string>& brokers) {
  ClientConfig config = client_config(context);
  config.bootstrap = brokers.empty() ? context.globals.brokers : brokers;
  config.connect_timeout = config.request_timeout = Duration(300);
  return Admin::create(std::move(config));
}

std::vector<std::string> broker_ids(const Context& context,
                                    const std::vector<std::string>& brokers) {
  auto admin = connect_quickly(context, brokers);
  if (!admin) return {};
  const auto cluster = admin->describe_cluster();
  std::vector<std::string> ids;
  if (cluster)
    for (const auto& broker : cluster->brokers) ids.push_back(std::to_string(broker.id));
  return ids;
}

std::vector<std::string> topic_names(const Context& context,
                                     const std::vector<std::string>& brokers) {
  auto admin = connect_quickly(context, brokers);
  if (!admin) return {};
  const auto topics = admin->list_topics();
  std::vector<std::string> names;
  if (topics)
    for (const auto& topic : *topics) names.push_back(topic.name);
  return names;
}

Exit complete(Context& context) {
  const ClusterNames names = {
      .topics = [&](const auto& brokers) { return topic_names(context, brokers); },
      .brokers = [&](const auto& brokers) { return broker_ids(context, brokers); }};
  const auto found = candidates(context.args.positionals, names);
  for (const auto& candidate : found) context.console.out.write(candidate + "\n");
  return Exit::ok;
}

}  // namespace

Command completion_command() {
  return {.path = "completion",
          .summary = "Prints the completion script of a shell",
          .examples = {"mqctl completion bash > ~/.local/share/bash-completion/completions/mqctl"},
          .positionals = {{.name = "SHELL", .help = "bash, zsh or fish"}},
          .outputs = {"table"},
          .connects = false,
          .run = script};
}

Command complete_command() {
  return {.path = "__complete",
          .summary = "Prints what may follow the words given; for the completion scripts",
          .examples = {"mqctl __complete -- topic cre"},
          .positionals = {{.name = "WORD", .help = "words", .least = 0, .most = SIZE_MAX}},
          .outputs = {"table"},
          .hidden = true,
          .run = complete};
}

}  // namespace mq::mqctl
