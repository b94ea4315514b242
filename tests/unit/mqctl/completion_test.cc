#include "mqctl/cli/completion.h"

#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

using Words = std::vector<std::string>;
using MqctlCompletion = testing::MqctlTest;

Words complete(const Words& words) {
  const ClusterNames names = {
      .topics =
          [](const Words& brokers) {
            return brokers.empty() ? Words{"orders", "audit"} : Words{"on-" + brokers[0]};
          },
      .brokers =
          [](const Words&) {
            return Words{"2", "1"};
          }};
  return candidates(words, names);
}

TEST(Completion, VerbsThenNames) {
  EXPECT_EQ(complete({"to"}), Words{"topic"});
  EXPECT_EQ(complete({"topic", ""}),
            (Words{"add-partitions", "alter", "create", "delete", "describe", "list", "trim"}));
  EXPECT_EQ(complete({"topic", "describe", ""}), (Words{"audit", "orders"}));
  EXPECT_EQ(complete({"consume", "or"}), Words{"orders"});
  EXPECT_EQ(complete({"topic", "create", ""}), Words{}) << "a new name is free";
}

TEST(Completion, FlagsAndTheirValues) {
  EXPECT_EQ(complete({"topic", "create", "--part"}), Words{"--partitions"});
  EXPECT_EQ(complete({"produce", "t", "--acks", ""}), (Words{"all", "leader", "none"}));
  EXPECT_EQ(complete({"topic", "list", "-o", "js"}), (Words{"json", "jsonl"}));
  EXPECT_EQ(complete({"produce", "t", "-K", ""}), Words{}) << "any text";
  EXPECT_EQ(complete({"produce", "--acks", "all", ""}), (Words{"audit", "orders"}));
}

TEST(Completion, BrokersAreNamedByTheirIds) {
  EXPECT_EQ(complete({"broker", "describe", ""}), (Words{"1", "2"}));
  EXPECT_EQ(complete({"partition", "list", "--broker", ""}), (Words{"1", "2"}));
}

TEST(Completion, AsksTheBrokersOfTheLine) {
  EXPECT_EQ(complete({"-b", "h:1", "topic", "describe", ""}), Words{"on-h:1"});
}

TEST(Completion, FilesAreLeftToTheShell) {
  EXPECT_EQ(complete({"produce", "orders", ""}), Words{});
}

TEST(Completion, HiddenCommandsStayHidden) { EXPECT_EQ(complete({"__"}), Words{}); }

TEST_F(MqctlCompletion, ScriptsCallBack) {
  for (const auto* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(run({"completion", shell}), 0);
    EXPECT_NE(out.text.find("mqctl __complete -- "), std::string::npos) << shell;
  }
  EXPECT_EQ(run({"completion", "tcsh"}), 2);
}

TEST_F(MqctlCompletion, FlagsOfTheCompletedLineAreWordsHere) {
  EXPECT_EQ(run({"__complete", "--", "error", "explain", "UNREA"}), 0);
  EXPECT_EQ(out.text, "UNREACHABLE\n");
  EXPECT_EQ(run({"__complete", "--", "topic", "create", "--dry"}), 0);
  EXPECT_EQ(out.text, "--dry-run\n");
}

}  // namespace
}  // namespace mq::mqctl
