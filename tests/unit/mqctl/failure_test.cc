#include "mqctl/cli/failure.h"

#include <gtest/gtest.h>

#include "mq/result.h"

namespace mq::mqctl {
namespace {

using protocol::WireError;

Failure from(WireError code) { return make_failure(code, "x"); }

TEST(ExitCode, ChangeWhoseOutcomeIsUnknownIs7NeverSix) {
  EXPECT_EQ(exit_of(from(WireError::connection_lost), true), Exit::outcome_unknown);
  EXPECT_EQ(exit_of(from(WireError::timed_out), true), Exit::outcome_unknown);
  EXPECT_EQ(exit_of(from(WireError::metadata_outcome_unknown), true), Exit::outcome_unknown);
}

TEST(ExitCode, ReadHasNoOutcomeToDoubt) {
  EXPECT_EQ(exit_of(from(WireError::connection_lost), false), Exit::not_applied);
  EXPECT_EQ(exit_of(from(WireError::internal), false), Exit::failed);
}

TEST(ExitCode, NotAppliedAndRetriableIs6) {
  EXPECT_EQ(exit_of(from(WireError::unreachable), true), Exit::not_applied);
  EXPECT_EQ(exit_of(from(WireError::not_controller), true), Exit::not_applied);
  EXPECT_EQ(exit_of(from(WireError::storage_full), true), Exit::not_applied);
}

/// The rule that scripts rely on: 6 only when nothing was applied, 7 only when that is unknown.
TEST(ExitCode, SixAndSevenFollowTheFlagsOfEveryCode) {
  for (const std::int32_t number : {
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) number,
#include "mq/errors.def"
       }) {
    const auto info = protocol::find_error(number).value();
    const auto exit = exit_of(from(info.code), true);
    if (exit == Exit::not_applied) {
      EXPECT_FALSE(info.flags.maybe_applied) << info.name;
    }
    if (exit == Exit::outcome_unknown) {
      EXPECT_TRUE(info.flags.maybe_applied) << info.name;
    }
    if (info.flags.maybe_applied) {
      EXPECT_EQ(exit, Exit::outcome_unknown) << info.name;
    }
  }
}

TEST(ExitCode, TheFlagsSentByABrokerWinOverTheTable) {
  Error error;
  error.code = Errc::not_controller;
  error.maybe_applied = true;
  error.retriable = true;
  EXPECT_EQ(exit_of(client_failure(error, "x"), true), Exit::outcome_unknown);
}

TEST(ExitCode, NamedOutcomes) {
  EXPECT_EQ(exit_of(from(WireError::usage), true), Exit::usage);
  EXPECT_EQ(exit_of(from(WireError::not_available), true), Exit::usage);
  EXPECT_EQ(exit_of(from(WireError::unknown_topic), true), Exit::not_found);
  EXPECT_EQ(exit_of(from(WireError::topic_exists), true), Exit::already_exists);
  EXPECT_EQ(exit_of(from(WireError::declined), true), Exit::refused);
  EXPECT_EQ(exit_of(from(WireError::log_damaged), false), Exit::unhealthy);
  EXPECT_EQ(exit_of(from(WireError::interrupted), true), Exit::interrupted);
}

TEST(FailureText, ThreeLines) {
  EXPECT_EQ(failure_text(make_failure(WireError::unknown_topic, "orders was not deleted",
                                      "broker 1 (h:9500): no such topic", "mqctl topic list"),
                         false),
            "error: orders was not deleted [UNKNOWN_TOPIC]\n"
            "  why:  broker 1 (h:9500): no such topic\n"
            "  try:  mqctl topic list\n");
}

TEST(FailureText, ACodeOfANewerBrokerIsShownByNumber) {
  Error error;
  error.code = static_cast<Errc>(777);
  error.message = "something new";
  error.where = "broker 2 (h:1)";
  const auto failure = client_failure(error, "it did not happen");
  EXPECT_EQ(failure.code, "ERROR_777");
  EXPECT_EQ(failure.why, "broker 2 (h:1): something new");
  EXPECT_EQ(failure.broker, 2);
}

TEST(FailureValue, IsOneObjectWithTheFrozenKeys) {
  auto failure = make_failure(WireError::timed_out, "orders was not deleted", "no answer", "look");
  failure.item = "orders";
  EXPECT_EQ(
      to_json(failure_value(failure, true)),
      R"({"code":"TIMED_OUT","item":"orders","message":"orders was not deleted",)"
      R"("why":"no answer","hint":"look","broker":null,"retriable":true,"applied":"unknown"})");
  EXPECT_EQ(to_json(*failure_value(failure, false).find("applied")), "\"no\"");
}

}  // namespace
}  // namespace mq::mqctl
