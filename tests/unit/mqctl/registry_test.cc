#include "mqctl/cli/registry.h"

#include <set>

#include "mqctl/cli/failure.h"
#include "mqctl/cli/help.h"
#include "mqctl/cli/parser.h"
#include "mqctl/cli/value.h"
#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

using MqctlHelp = testing::MqctlTest;

/// The words of an example, as a shell would give them; only the part from "mqctl" to a pipe or a
/// redirection.
std::vector<std::string> words_of(std::string example) {
  example = example.substr(example.rfind("mqctl ") + 6);
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool any = false;
  for (const char c : example + " ") {
    if (c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (word == ">" || word == "|") return words;
      if (any || !word.empty()) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  return words;
}

TEST(Registry, EveryCommandIsCompleteAndItsExamplesParse) {
  std::set<std::string> paths;
  for (const auto& command : all_commands()) {
    EXPECT_TRUE(paths.insert(command.path).second) << command.path << " twice";
    EXPECT_NE(command.run, nullptr) << command.path;
    EXPECT_FALSE(command.summary.empty()) << command.path;
    ASSERT_FALSE(command.examples.empty()) << command.path;
    for (const auto& example : command.examples) {
      const auto words = words_of(example);
      const auto selection = select_command(words);
      ASSERT_NE(selection.command, nullptr) << example;
      try {
        (void)parse_arguments(*selection.command, selection.rest);
      } catch (const Failed& failed) {
        ADD_FAILURE() << example << ": " << failed.what();
      }
    }
  }
}

TEST(Registry, NoCommandHasTwoFlagsOfOneNameOrLetter) {
  for (const auto& command : all_commands()) {
    std::set<std::string> names;
    std::set<char> letters;
    for (const Flag* flag : flags_of(command))
      EXPECT_TRUE(names.insert(flag->name).second) << command.path << " --" << flag->name;
    for (const auto& flag : command.flags)
      if (flag.letter != 0) {
        EXPECT_TRUE(letters.insert(flag.letter).second) << command.path << " -" << flag.letter;
      }
  }
}

TEST(Registry, LettersOfGlobalFlagsMeanTheSameEverywhere) {
  // consume has -o and -n of its own, local up -n: as people know them from other tools.
  const std::set<std::pair<std::string, char>> known = {{"consume", 'o'}, {"local up", 'n'}};
  for (const auto& command : all_commands())
    for (const auto& flag : command.flags)
      for (const auto& global : global_flags())
        if (flag.letter != 0 && flag.letter == global.letter) {
          EXPECT_TRUE(known.contains({command.path, flag.letter}))
              << command.path << " -" << flag.letter;
        }
}

TEST(Registry, WhatComesLaterIsNotThereYet) {
  for (const auto& name : commands_not_yet()) EXPECT_EQ(find_command(name), nullptr) << name;
  for (const auto& name : flags_not_yet())
    for (const auto& flag : global_flags())
      EXPECT_TRUE(name != "--" + flag.name && name != (std::string{'-', flag.letter})) << name;
}

TEST(Registry, FallbacksPassTheirOwnCheck) {
  for (const auto& command : all_commands())
    for (const Flag* flag : flags_of(command)) {
      if (flag->fallback.empty()) continue;
      std::vector<std::string> rest = {"--" + flag->name, flag->fallback};
      for (const auto& positional : command.positionals)
        if (positional.least > 0) rest.emplace_back("x");
      EXPECT_NO_THROW((void)parse_arguments(command, rest)) << command.path << " --" << flag->name;
    }
}

TEST(Registry, EveryShapeIsJson) {
  for (const auto& command : all_commands()) {
    if (command.item_shape.empty()) continue;
    const auto shape = parse_json(schema_text(command));
    ASSERT_TRUE(shape.value) << command.path << ": " << shape.error;
    EXPECT_EQ(*shape.value->find("schema")->get_if<std::string>(), command.schema());
    EXPECT_FALSE(
        shape.value->find("items")->get_if<Value::Array>()->at(0).get_if<Value::Object>()->empty())
        << command.path;
  }
}

TEST_F(MqctlHelp, ListsEveryCommand) {
  EXPECT_EQ(run({"--help"}), 0);
  for (const auto& command : all_commands()) {
    const bool shown = out.text.find("  " + command.path + " ") != std::string::npos;
    EXPECT_EQ(shown, !command.hidden) << command.path;
  }
  EXPECT_EQ(run({"help"}), 0);
  EXPECT_EQ(run({"topic", "--help"}), 0);
  EXPECT_EQ(out.text.find("produce "), std::string::npos);
}

TEST_F(MqctlHelp, OfACommandShowsItsFlagsAndExample) {
  EXPECT_EQ(run({"topic", "create", "--help"}), 0);
  const auto first = out.text;
  EXPECT_NE(first.find("-p, --partitions N"), std::string::npos) << first;
  EXPECT_NE(first.find("-n, --dry-run"), std::string::npos);
  EXPECT_NE(first.find("mqctl topic create orders --partitions 6"), std::string::npos);
  EXPECT_EQ(run({"help", "topic", "create"}), 0);
  EXPECT_EQ(out.text, first);
  EXPECT_EQ(err.text, "");
}

TEST_F(MqctlHelp, ALetterThatTheCommandTookIsNotShownTwice) {
  EXPECT_EQ(run({"consume", "--help"}), 0);
  EXPECT_NE(out.text.find("  -o, --offset WHERE"), std::string::npos) << out.text;
  EXPECT_NE(out.text.find("      --output FORM"), std::string::npos) << out.text;
}

TEST_F(MqctlHelp, SchemaNeedsNoBroker) {
  environment["MQCTL_BROKERS"] = "127.0.0.1:1";
  EXPECT_EQ(run({"topic", "list", "--schema"}), 0);
  EXPECT_EQ(
      out.text,
      R"({"schema":"mqctl.topic.list/1","items":[{"name":"string","id":"uuid",)"
      R"("partitions":"int","replicas":"int","records":"int","bytes":"int",)"
      R"("partitions_not_serving":"int","partitions_damaged":"int"}],"errors":[{"code":"string","item":"string|null",)"
      R"("message":"string","why":"string","hint":"string","broker":"int|null","retriable":"bool",)"
      R"("applied":"no|unknown"}]})"
      "\n");
}

TEST_F(MqctlHelp, ErrorExplainTellsWhatToDo) {
  EXPECT_EQ(run({"error", "explain", "unreachable"}), 0);
  EXPECT_EQ(out.text,
            "UNREACHABLE (1000): no broker could be reached\n"
            "  try:  check the address and that the broker runs: mqctl status\n"
            "  Nothing was applied; the same call may succeed later.\n"
            "  mqctl ends with exit code 6 on it.\n");
  const auto by_name = out.text;
  EXPECT_EQ(run({"error", "explain", "1000"}), 0);
  EXPECT_EQ(out.text, by_name);
  EXPECT_EQ(run({"error", "explain", "UNREACHABEL"}), 2);
  EXPECT_NE(err.text.find("did you mean UNREACHABLE?"), std::string::npos) << err.text;
}

TEST_F(MqctlHelp, ErrorListHasEveryCodeOnce) {
  EXPECT_EQ(run({"error", "list", "-o", "jsonl", "--fields", "code,number"}), 0);
  std::size_t lines = 0;
  for (const char c : out.text) lines += c == '\n';
  std::size_t codes = 0;
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) ++codes;
#include "mq/errors.def"
  EXPECT_EQ(lines, codes);
  EXPECT_EQ(out.text.substr(0, out.text.find('\n')),
            R"({"schema":"mqctl.error.list/1","code":"OK","number":0})");
}

}  // namespace
}  // namespace mq::mqctl
