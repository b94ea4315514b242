#include "mqctl/data/record_format.h"

#include <gtest/gtest.h>

namespace mq::mqctl {
namespace {

std::string format(std::string_view text, const RecordView& record) {
  const auto parsed = RecordFormat::parse(text);
  EXPECT_TRUE(parsed.format) << parsed.error;
  std::string out;
  if (parsed.format) parsed.format->append(record, out);
  return out;
}

RecordView sample() {
  RecordView record;
  record.topic = "orders";
  record.partition = 3;
  record.offset = 42;
  record.timestamp = Timestamp(Duration(1'796'000'000'123));
  record.key = as_bytes("k");
  record.value = as_bytes("v1");
  return record;
}

TEST(RecordFormat, TokensAndLiterals) {
  EXPECT_EQ(format("%t/%p@%o %k=%v\\n", sample()), "orders/3@42 k=v1\n");
  EXPECT_EQ(format("100%%", sample()), "100%");
  EXPECT_EQ(format("%T", sample()), "2026-11-30T00:53:20.123Z");
  EXPECT_EQ(format("%T{ms}", sample()), "1796000000123");
}

TEST(RecordFormat, FormsOfBytes) {
  auto record = sample();
  record.value = as_bytes(std::string_view("\0\xff", 2));
  EXPECT_EQ(format("%v{hex}", record), "00ff");
  EXPECT_EQ(format("%v{base64}", record), "AP8=");
  EXPECT_EQ(format("%v{json}", record), R"({"base64":"AP8="})");
  EXPECT_EQ(format("%v", record), std::string("\0\xff", 2));
}

TEST(RecordFormat, JsonTellsNullEmptyAndTheWordNullApart) {
  auto record = sample();
  record.value.reset();
  EXPECT_EQ(format("%v{json}", record), "null");
  EXPECT_EQ(format("[%v]", record), "[]");
  record.value = as_bytes("");
  EXPECT_EQ(format("%v{json}", record), "\"\"");
  record.value = as_bytes("null");
  EXPECT_EQ(format("%v{json}", record), "\"null\"");
}

TEST(RecordFormat, Headers) {
  auto record = sample();
  const std::vector<HeaderView> headers = {{"a", as_bytes("1")}, {"a", std::nullopt}};
  record.headers = headers;
  EXPECT_EQ(format("%h", record), "a=1,a=");
  EXPECT_EQ(format("%h{json}", record), R"([{"name":"a","value":"1"},{"name":"a","value":null}])");
}

TEST(RecordFormat, MistakesAreNamed) {
  for (const auto* text :
       {"%", "abc%", "%x", "%k{", "%k{xml}", "%t{hex}", "%o{json}", "\\q", "x\\", "\\x1", "%v{}"}) {
    const auto parsed = RecordFormat::parse(text);
    EXPECT_FALSE(parsed.format) << text;
    EXPECT_FALSE(parsed.error.empty()) << text;
  }
}

TEST(RecordFormat, KnowsWhichTokensItUses) {
  EXPECT_TRUE(RecordFormat::parse("%p@%o").format->uses_only("tpo"));
  EXPECT_FALSE(RecordFormat::parse("%p@%v").format->uses_only("tpo"));
}

}  // namespace
}  // namespace mq::mqctl
