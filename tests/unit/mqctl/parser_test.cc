#include "mqctl/cli/parser.h"

#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

using Words = std::vector<std::string>;
using testing::MqctlTest;
using MqctlUsage = MqctlTest;

std::string selected(const Words& words) { return select_command(words).command->path; }

Failure refused(const Words& words) {
  try {
    const auto selection = select_command(words);
    (void)parse_arguments(*selection.command, selection.rest);
  } catch (const Failed& failed) {
    return failed.failure();
  }
  return {};
}

Arguments parsed(const Words& words) {
  const auto selection = select_command(words);
  return parse_arguments(*selection.command, selection.rest);
}

TEST(SelectCommand, GlobalFlagsMayStandAnywhere) {
  EXPECT_EQ(selected({}), "status");
  EXPECT_EQ(selected({"-v"}), "status");
  EXPECT_EQ(selected({"--version"}), "version");
  EXPECT_EQ(selected({"-b", "h:1", "topic", "-o", "json", "list"}), "topic list");
  EXPECT_EQ(parsed({"-b", "h:1", "topic", "list", "-q"}).text("brokers"), "h:1");
  EXPECT_EQ(parsed({"topic", "list", "--brokers=h:2"}).text("brokers"), "h:2");
}

TEST(SelectCommand, UnknownVerbNamesTheNearest) {
  const auto failure = refused({"topic", "lsit"});
  EXPECT_EQ(failure.code, "USAGE");
  EXPECT_EQ(failure.what, "\"lsit\" is not a command of mqctl topic");
  EXPECT_EQ(failure.why, "did you mean \"mqctl topic list\"?");
  EXPECT_EQ(refused({"prodcue"}).why, "did you mean \"mqctl produce\"?");
}

TEST(SelectCommand, VerbOfALaterReleaseIsRefusedByName) {
  EXPECT_EQ(refused({"group", "lag", "billing"}).code, "NOT_AVAILABLE");
  EXPECT_EQ(refused({"topic", "undelete", "x"}).what,
            "mqctl topic undelete is not in this release");
  EXPECT_EQ(refused({"tail", "x"}).code, "NOT_AVAILABLE");
}

TEST(ParseArguments, FlagsInAnyFormAndOrder) {
  const auto arguments = parsed({"topic", "create", "-p3", "a", "--config=x=1", "-c", "y=2", "b"});
  EXPECT_EQ(arguments.number("partitions"), 3);
  EXPECT_EQ(arguments.list("config"), (Words{"x=1", "y=2"}));
  EXPECT_EQ(arguments.positionals, (Words{"a", "b"}));
}

TEST(ParseArguments, WatchMayNameItsInterval) {
  EXPECT_EQ(parsed({"status", "-w"}).duration("interval"), std::chrono::seconds(2));
  const auto every = parsed({"topic", "list", "--watch=500ms"});
  EXPECT_TRUE(every.on("watch"));
  EXPECT_EQ(every.duration("interval"), std::chrono::milliseconds(500));
  EXPECT_EQ(refused({"status", "--watch=5"}).code, "USAGE");
  EXPECT_EQ(refused({"topic", "create", "x", "-w"}).what, "mqctl topic create cannot be watched");
}

TEST(ParseArguments, AFlagThatIsNeededIsAskedFor) {
  EXPECT_EQ(refused({"topic", "add-partitions", "x"}).what,
            "mqctl topic add-partitions needs --total");
  EXPECT_EQ(parsed({"topic", "add-partitions", "x", "--schema"}).on("schema"), true);
}

TEST(ParseArguments, ValuesMayLookLikeFlags) {
  EXPECT_EQ(parsed({"consume", "t", "-o", "-5"}).text("offset"), "-5");
  EXPECT_EQ(parsed({"produce", "t", "-K", "--"}).text("key-separator"), "--");
  EXPECT_EQ(parsed({"produce", "t", "--", "-file"}).positionals, (Words{"t", "-file"}));
  EXPECT_EQ(parsed({"produce", "t", "-"}).positionals, (Words{"t", "-"}));
  EXPECT_EQ(parsed({"-b", "[::1]", "status"}).text("brokers"), "[::1]");
  EXPECT_EQ(parsed({"produce", "t", "-D", ""}).list("delimiter"), Words{""});
}

TEST(ParseArguments, ConsumeTellsOffsetsFromOutputForms) {
  const auto arguments = parsed({"consume", "t", "-o", "end", "-o", "jsonl"});
  EXPECT_EQ(arguments.text("offset"), "end");
  EXPECT_EQ(arguments.text("output"), "jsonl");
  EXPECT_EQ(parsed({"consume", "t"}).text("offset"), "start");
}

TEST(ParseArguments, EachMistakeIsNamed) {
  EXPECT_EQ(refused({"topic", "create"}).what, "mqctl topic create needs TOPIC");
  EXPECT_EQ(refused({"topic", "list", "x"}).what,
            "\"x\" is one argument too many for mqctl topic list");
  EXPECT_EQ(refused({"topic", "create", "t", "-p", "0"}).what,
            "-p/--partitions: \"0\" is not allowed");
  EXPECT_EQ(refused({"topic", "create", "t", "-p", "0"}).why,
            "it must be a whole number from 1 to 2147483647");
  EXPECT_EQ(refused({"topic", "create", "t", "-p", "99999999999999999999"}).code, "USAGE");
  EXPECT_EQ(refused({"topic", "create", "t", "-p", "1", "-p", "2"}).what,
            "-p/--partitions is given 2 times");
  EXPECT_EQ(refused({"topic", "create", "t", "--config", "novalue"}).why,
            "it must be of the form name=value");
  EXPECT_EQ(refused({"topic", "create", "t", "--partition", "1"}).why,
            "did you mean --partitions?");
  EXPECT_EQ(refused({"status", "--timeout", "10"}).why,
            "it must be a time with its unit, such as 500ms, 10s or 5m");
  EXPECT_EQ(refused({"produce", "t", "--acks", "most"}).why, "it must be one of none, leader, all");
  EXPECT_EQ(refused({"produce", "t", "--rate", "-1"}).why,
            "it must be a number above 0, per second");
  EXPECT_EQ(refused({"produce", "t", "-K"}).code, "USAGE");
}

TEST(ParseArguments, FlagsAndFormsOfALaterReleaseAreRefusedByName) {
  EXPECT_EQ(refused({"status", "-X"}).what, "-X is not in this release");
  EXPECT_EQ(refused({"status", "--until=healthy"}).what, "--until is not in this release");
  EXPECT_EQ(refused({"consume", "t", "-g", "billing"}).code, "NOT_AVAILABLE");
  EXPECT_EQ(refused({"topic", "list", "-o", "tsv"}).what, "-o tsv is not in this release");
  EXPECT_EQ(refused({"topic", "list", "-o", "wide"}).code, "NOT_AVAILABLE");
}

TEST_F(MqctlUsage, ErrorIsThreeLinesOnStderrAndNothingOnStdout) {
  EXPECT_EQ(run({"topic", "lsit"}), 2);
  EXPECT_EQ(out.text, "");
  EXPECT_EQ(err.text,
            "error: \"lsit\" is not a command of mqctl topic [USAGE]\n"
            "  why:  did you mean \"mqctl topic list\"?\n"
            "  try:  mqctl topic --help\n");
}

TEST_F(MqctlUsage, WithJsonItIsOneObjectOnStdout) {
  EXPECT_EQ(run({"topic", "lsit", "-o", "json"}), 2);
  EXPECT_EQ(err.text, "");
  EXPECT_EQ(out.text,
            R"({"schema":"mqctl.error/1","items":[],"errors":[{"code":"USAGE","item":null,)"
            R"("message":"\"lsit\" is not a command of mqctl topic",)"
            R"("why":"did you mean \"mqctl topic list\"?","hint":"mqctl topic --help",)"
            R"("broker":null,"retriable":false,"applied":"no"}]})"
            "\n");
  EXPECT_EQ(run({"topic", "create", "-ojson"}), 2);
  EXPECT_NE(out.text.find(R"("schema":"mqctl.topic.create/1")"), std::string::npos) << out.text;
}

TEST_F(MqctlUsage, WithJsonlItIsOneLine) {
  environment["MQCTL_OUTPUT"] = "jsonl";
  EXPECT_EQ(run({"topic", "describe"}), 2);
  EXPECT_EQ(out.text.find(R"({"schema":"mqctl.topic.describe/1","error":{"code":"USAGE",)"), 0U)
      << out.text;
}

TEST_F(MqctlUsage, NounWithoutVerbListsTheVerbs) {
  EXPECT_EQ(run({"topic"}), 2);
  EXPECT_NE(err.text.find("known: add-partitions, alter, create, delete, describe, list"),
            std::string::npos)
      << err.text;
}

TEST_F(MqctlUsage, DeleteWithoutTerminalAndYesIsRefusedBeforeAnyBrokerIsAsked) {
  environment["MQCTL_BROKERS"] = "127.0.0.1:1";
  EXPECT_EQ(run({"topic", "delete", "orders"}), 8);
  EXPECT_EQ(err.text,
            "error: topic delete was not confirmed [DECLINED]\n"
            "  why:  there is no terminal to ask at, and --yes was not given\n"
            "  try:  add --yes when you are sure\n");
}

TEST_F(MqctlUsage, FlagsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(run({"produce", "t", "-J", "-K", ":"}), 2);
  EXPECT_EQ(run({"produce", "t", "-D", ",", "--framing", "line"}), 2);
  EXPECT_EQ(run({"produce", "t", "--print", "%o", "-o", "json"}), 2);
  EXPECT_EQ(run({"produce", "t", "--print", "%v"}), 2);
  EXPECT_EQ(run({"consume", "t", "-J", "--raw"}), 2);
  EXPECT_EQ(run({"consume", "t", "-o", "@yesterday"}), 2);
  EXPECT_EQ(run({"consume", "t", "-o", "json"}), 2) << "a stream is jsonl";
  EXPECT_EQ(run({"topic", "list", "--fields", "name"}), 2);
  // Before anything is done, and so also without a broker.
  EXPECT_EQ(run({"bench", "produce", "-o", "json", "--fields", "records,pigs"}), 2);
  EXPECT_NE(out.text.find("pigs"), std::string::npos) << out.text;
  EXPECT_EQ(run({"local", "up", "-n", "3"}), 2);
  EXPECT_EQ(run({"topic", "create", "x", "y", "x"}), 2) << "named twice";
}

TEST(ResolveGlobals, FlagThenEnvironmentThenDefault) {
  testing::StringOutput out;
  testing::StringOutput err;
  testing::StringInput in;
  Console console{out, err, in};
  std::map<std::string, std::string> environment;
  console.env = [&](const std::string& name) -> std::optional<std::string> {
    const auto at = environment.find(name);
    return at == environment.end() ? std::nullopt : std::optional(at->second);
  };
  const auto& command = *find_command("topic list");
  const auto resolve = [&](const Words& rest) {
    return resolve_globals(command, parse_arguments(command, rest), console);
  };
  EXPECT_EQ(resolve({}).brokers, Words{"localhost:9500"});
  environment["MQCTL_BROKERS"] = "a:1, b:2";
  EXPECT_EQ(resolve({}).brokers, (Words{"a:1", "b:2"}));
  EXPECT_EQ(resolve({"-b", "c:3"}).brokers, Words{"c:3"});
  environment["MQCTL_TIMEOUT"] = "2s";
  EXPECT_EQ(resolve({}).timeout, std::chrono::seconds(2));
  environment["MQCTL_TIMEOUT"] = "soon";
  EXPECT_THROW((void)resolve({}), Failed);
  EXPECT_EQ(resolve({"--timeout", "3s", "-o", "json"}).form, Form::json);
}

}  // namespace
}  // namespace mq::mqctl
