#include "mqctl/cli/report.h"

#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

using protocol::WireError;

class ReportTest : public ::testing::Test {
 protected:
  Exit finish(Form form, const std::vector<std::string>& fields, int items,
              const std::vector<WireError>& failures) {
    Console console{out, err, in};
    Globals globals;
    globals.form = form;
    globals.fields = fields;
    Context context(console, *find_command("topic delete"), {}, globals);
    Report report(context);
    report.head("cluster", "c1");
    for (int i = 0; i < items; ++i) {
      report.item(Value::object().set("name", "t" + std::to_string(i)).set("bytes", 5));
      report.text("row\n");
    }
    for (const auto code : failures) report.failure(make_failure(code, "it failed", "why", "try"));
    const auto exit = report.finish();
    out.flush();
    err.flush();
    return exit;
  }
  testing::StringOutput out;
  testing::StringOutput err;
  testing::StringInput in;
};

TEST_F(ReportTest, JsonIsOneObject) {
  EXPECT_EQ(finish(Form::json, {"name"}, 1, {}), Exit::ok);
  EXPECT_EQ(out.text, R"({"schema":"mqctl.topic.delete/1","cluster":"c1","items":[{"name":"t0"}],)"
                      R"("errors":[]})"
                      "\n");
}

TEST_F(ReportTest, JsonlIsOneObjectPerItemAndError) {
  EXPECT_EQ(finish(Form::jsonl, {}, 1, {WireError::unknown_topic}), Exit::failed);
  EXPECT_EQ(
      out.text,
      R"({"schema":"mqctl.topic.delete/1","cluster":"c1","name":"t0","bytes":5})"
      "\n"
      R"({"schema":"mqctl.topic.delete/1","error":{"code":"UNKNOWN_TOPIC","item":null,)"
      R"("message":"it failed","why":"why","hint":"try","broker":null,"retriable":false,"applied":"no"}})"
      "\n");
}

TEST_F(ReportTest, TextHasDataOnStdoutAndErrorsOnStderr) {
  EXPECT_EQ(finish(Form::table, {}, 1, {WireError::unknown_topic}), Exit::failed);
  EXPECT_EQ(out.text, "row\n");
  EXPECT_EQ(err.text, "error: it failed [UNKNOWN_TOPIC]\n  why:  why\n  try:  try\n");
}

TEST_F(ReportTest, OneItemFailedGivesItsOwnCodeAndAnyOfManyGivesOne) {
  EXPECT_EQ(finish(Form::table, {}, 0, {WireError::unknown_topic}), Exit::not_found);
  EXPECT_EQ(finish(Form::table, {}, 0, {WireError::timed_out}), Exit::outcome_unknown);
  EXPECT_EQ(finish(Form::table, {}, 0, {WireError::unreachable, WireError::unreachable}),
            Exit::not_applied);
  EXPECT_EQ(finish(Form::table, {}, 0, {WireError::unreachable, WireError::timed_out}),
            Exit::failed)
      << "6 and 7 are never mixed";
  EXPECT_EQ(finish(Form::table, {}, 2, {WireError::unreachable}), Exit::failed);
}

TEST_F(ReportTest, AnUnknownFieldIsNamed) {
  EXPECT_THROW(finish(Form::json, {"nmae"}, 1, {}), Failed);
}

TEST(KeepFields, ReachesIntoArraysAndObjects) {
  auto value = parse_json(R"({"name":"t","parts":[{"id":0,"x":1},{"id":1,"x":2}],"z":0})").value;
  std::string unknown;
  Value kept = *value;
  ASSERT_TRUE(keep_fields(kept, {"parts.id", "name"}, unknown));
  EXPECT_EQ(to_json(kept), R"({"parts":[{"id":0},{"id":1}],"name":"t"})");
  kept = *value;
  EXPECT_FALSE(keep_fields(kept, {"parts.ix"}, unknown));
  EXPECT_EQ(unknown, "parts.ix");
}

TEST(Json, WholeNumbersOf64BitsStayExact) {
  const std::string text = R"([18446744073709551615,-9223372036854775808,null,true,"é\n"])";
  EXPECT_EQ(to_json(*parse_json(text).value), text);
}

TEST(Json, BytesThatAreNotUtf8DoNotBreakALine) {
  EXPECT_EQ(to_json(Value("a\xff")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace mq::mqctl
