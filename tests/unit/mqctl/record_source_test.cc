#include "mqctl/data/record_source.h"

#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

class RecordSourceTest : public ::testing::Test {
 protected:
  /// "key=value" of each record, null as <null>; refusals as "!why".
  std::vector<std::string> read(const std::string& text, SourceOptions options) {
    testing::StringOutput out;
    testing::StringInput in(text);
    Console console{out, out, in};
    RecordSource source(console, {}, std::move(options));
    std::vector<std::string> found;
    SourceRecord record;
    while (true) {
      const auto got = source.next(record);
      if (got == RecordSource::Got::end) return found;
      if (got == RecordSource::Got::refused)
        found.push_back("!" + source.refusal().what + ": " + source.refusal().why);
      else
        found.push_back(shown(record.key) + "=" + shown(record.value));
    }
  }
  static std::string shown(const std::optional<Bytes>& bytes) {
    return bytes ? std::string(as_text(*bytes)) : "<null>";
  }
};

using Found = std::vector<std::string>;

TEST_F(RecordSourceTest, LinesAreValuesWithoutKey) {
  EXPECT_EQ(read("a\nb", {}), (Found{"<null>=a", "<null>=b"}));
}

TEST_F(RecordSourceTest, KeyStandsBeforeTheFirstSeparator) {
  SourceOptions options;
  options.key_separator = ":";
  EXPECT_EQ(read("k:v:w\n:v\nk:\n", options), (Found{"k=v:w", "=v", "k="}));
}

TEST_F(RecordSourceTest, RecordWithoutSeparatorIsRefusedAndTheNextOneIsTaken) {
  SourceOptions options;
  options.key_separator = ":";
  EXPECT_EQ(read("a:1\noops\nb:2\n", options),
            (Found{"a=1", "!record 2 was not sent: it has no key separator \":\"", "b=2"}));
}

TEST_F(RecordSourceTest, EmptyIsATombstoneOnlyWhenAskedFor) {
  SourceOptions options;
  options.key_separator = ":";
  EXPECT_EQ(read("k:\n", options), Found{"k="});
  options.empty_is_tombstone = true;
  EXPECT_EQ(read("k:\nk:v\n", options), (Found{"k=<null>", "k=v"}));
}

TEST_F(RecordSourceTest, ParagraphsTakeTheirKeyFromAField) {
  SourceOptions options;
  options.framing.mode = Framing::Mode::paragraph;
  options.key_field = "Package";
  EXPECT_EQ(read("Package: bash\nX: 1\n\nX: 2\n", options),
            (Found{"bash=Package: bash\nX: 1\n\n", "<null>=X: 2\n"}));
}

TEST_F(RecordSourceTest, JsonLinesGiveWhatTheySay) {
  SourceOptions options;
  options.json = true;
  EXPECT_EQ(read(R"({"topic":"x","key":null,"value":{"base64":"AAE="}})"
                 "\n{}\nnonsense\n",
                 options)
                .at(0),
            std::string("<null>=\0\1", 9));
  const auto found = read("{\"key\":\"k\",\"value\":\"\"}\n{}\n{\"v\":1}\n", options);
  EXPECT_EQ(found, (Found{"k=", "<null>=<null>", "!record 3 was not sent: unknown member \"v\""}));
}

TEST_F(RecordSourceTest, AFileThatIsNotThereIsRefusedBeforeAnythingIsRead) {
  testing::StringOutput out;
  testing::StringInput in;
  Console console{out, out, in};
  try {
    RecordSource source(console, {"-", "/nonexistent/file"}, {});
    FAIL();
  } catch (const Failed& failed) {
    EXPECT_EQ(failed.failure().code, "FILE_UNREADABLE");
    EXPECT_EQ(failed.failure().why, "No such file or directory");
  }
}

}  // namespace
}  // namespace mq::mqctl
