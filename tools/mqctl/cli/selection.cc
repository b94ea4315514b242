#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "mqctl/cli/parser.h"

namespace mq::mqctl {
namespace {

bool is_flag_word(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

/// Whether this global flag takes its value from the next word.
bool takes_next_word(const std::string& word) {
  for (const auto& flag : global_flags()) {
    if (flag.kind == Kind::on_off) continue;
    if (word == "--" + flag.name) return true;
    if (flag.letter != 0 && word == std::string{'-', flag.letter}) return true;
  }
  return false;
}

std::vector<std::string> words_after(const std::string& group) {
  const std::string prefix = group.empty() ? "" : group + " ";
  std::vector<std::string> words;
  for (const auto& command : all_commands()) {
    if (command.hidden || !command.path.starts_with(prefix)) continue;
    const auto rest = command.path.substr(prefix.size());
    words.push_back(rest.substr(0, rest.find(' ')));
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

bool comes_later(const std::string& path) {
  const auto& later = commands_not_yet();
  return std::any_of(later.begin(), later.end(), [&](const std::string& name) {
    return name == path || name.starts_with(path + " ");
  });
}

/// `next` is the word behind it, which may be the verb of a noun that comes later.
[[noreturn]] void throw_unknown(const std::string& group, const std::string& word,
                                const std::string& next) {
  auto path = group.empty() ? word : group + " " + word;
  if (comes_later(path + " " + next)) path += " " + next;
  if (comes_later(path))
    throw Failed(make_failure(protocol::WireError::not_available,
                              fmt::format("mqctl {} is not in this release", path)));
  const auto known = words_after(group);
  const auto near = base::nearest(word, known);
  const auto program = group.empty() ? std::string("mqctl") : "mqctl " + group;
  throw Failed(usage_failure(fmt::format("\"{}\" is not a command of {}", word, program),
                             near ? fmt::format("did you mean \"{} {}\"?", program, *near)
                                  : fmt::format("known: {}", fmt::join(known, ", ")),
                             fmt::format("{} --help", program)));
}

}  // namespace

Selection select_command(std::span<const std::string> words) {
  Selection selected;
  std::size_t at = 0;
  bool any_word = false;
  for (; at < words.size(); ++at) {
    const auto& word = words[at];
    if (word == "-h" || word == "--help") {
      selected.help = true;
    } else if (word == "--version" && !any_word) {
      selected.command = find_command("version");
      break;
    } else if (is_flag_word(word)) {
      selected.rest.push_back(word);
      if (takes_next_word(word) && at + 1 < words.size()) selected.rest.push_back(words[++at]);
    } else if (word == "help" && !any_word) {
      selected.help = true;
    } else {
      any_word = true;
      const auto path = selected.group.empty() ? word : selected.group + " " + word;
      selected.command = find_command(path);
      if (selected.command != nullptr) break;
      if (!is_group(path))
        throw_unknown(selected.group, word, at + 1 < words.size() ? words[at + 1] : "");
      selected.group = path;
    }
  }
  if (selected.command != nullptr) {
    selected.rest.insert(selected.rest.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                         words.end());
    return selected;
  }
  if (selected.help) return selected;
  if (!selected.group.empty())
    throw Failed(
        usage_failure(fmt::format("mqctl {} needs a verb", selected.group),
                      fmt::format("known: {}", fmt::join(words_after(selected.group), ", ")),
                      fmt::format("mqctl {} --help", selected.group)));
  selected.command = find_command("status");
  return selected;
}

}  // namespace mq::mqctl
