#include "mqctl/cli/completion.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "mqctl/cli/registry.h"

namespace mq::mqctl {
namespace {

/// The words before the one that is completed, taken apart.
struct Line {
  std::string group;
  const Command* command = nullptr;
  const Flag* wants_value = nullptr;  ///< the last word is this flag's value
  std::size_t positionals = 0;
  std::vector<std::string> brokers;
};

const Flag* flag_of(const std::vector<const Flag*>& flags, const std::string& word) {
  for (const Flag* flag : flags)
    if (word == "--" + flag->name || (flag->letter != 0 && word == std::string{'-', flag->letter}))
      return flag;
  return nullptr;
}

std::vector<const Flag*> flags_here(const Line& line) {
  if (line.command != nullptr) return flags_of(*line.command);
  std::vector<const Flag*> flags;
  for (const auto& flag : global_flags()) flags.push_back(&flag);
  return flags;
}

void note_brokers(Line& line, const std::string& text) {
  for (const auto part : base::split(text, ',')) line.brokers.emplace_back(base::trim(part));
}

void take_word(Line& line, const std::string& word) {
  if (line.command != nullptr) {
    ++line.positionals;
    return;
  }
  const auto path = line.group.empty() ? word : line.group + " " + word;
  line.command = find_command(path);
  if (line.command == nullptr) line.group = path;
}

Line read_line(const std::vector<std::string>& words) {
  Line line;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const auto& word = words[i];
    if (word.size() < 2 || word[0] != '-') {
      take_word(line, word);
      continue;
    }
    const Flag* flag = flag_of(flags_here(line), word);
    if (flag == nullptr || flag->kind == Kind::on_off) continue;
    if (i + 2 == words.size()) {
      line.wants_value = flag;
    } else if (flag->name == "brokers") {
      note_brokers(line, words[++i]);
    } else {
      ++i;
    }
  }
  return line;
}

std::vector<std::string> error_codes() {
  return {
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) #NAME,
#include "mq/errors.def"
  };
}

std::vector<std::string> next_words(const std::string& group) {
  const auto prefix = group.empty() ? "" : group + " ";
  std::set<std::string> words;
  for (const auto& command : all_commands()) {
    if (command.hidden || !command.path.starts_with(prefix)) continue;
    const auto rest = command.path.substr(prefix.size());
    words.insert(rest.substr(0, rest.find(' ')));
  }
  return {words.begin(), words.end()};
}

const Positional* positional_at(const Command& command, std::size_t index) {
  for (const auto& positional : command.positionals) {
    if (index < positional.most) return &positional;
    index -= positional.most;
  }
  return nullptr;
}

std::vector<std::string> values(Complete kind, const std::vector<std::string>& choices,
                                const Line& line, const ClusterNames& names) {
  switch (kind) {
    case Complete::choices:
      return choices;
    case Complete::topics:
      return names.topics(line.brokers);
    case Complete::brokers:
      return names.brokers(line.brokers);
    case Complete::error_codes:
      return error_codes();
    case Complete::commands:
      return next_words("");
    case Complete::nothing:
    case Complete::files:
      break;
  }
  return {};
}

std::vector<std::string> all_candidates(const Line& line, const std::string& last,
                                        const ClusterNames& names) {
  if (line.wants_value != nullptr)
    return values(line.wants_value->complete, line.wants_value->choices, line, names);
  if (last.starts_with("-")) {
    std::vector<std::string> flags;
    for (const Flag* flag : flags_here(line)) flags.push_back("--" + flag->name);
    return flags;
  }
  if (line.command == nullptr) return next_words(line.group);
  const auto* positional = positional_at(*line.command, line.positionals);
  if (line.command->path == "completion") return {"bash", "fish", "zsh"};
  return positional == nullptr ? std::vector<std::string>{}
                               : values(positional->complete, {}, line, names);
}

}  // namespace

std::vector<std::string> candidates(const std::vector<std::string>& words,
                                    const ClusterNames& names) {
  const std::string last = words.empty() ? "" : words.back();
  auto found = all_candidates(read_line(words), last, names);
  std::erase_if(found, [&](const std::string& name) { return !name.starts_with(last); });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace mq::mqctl
