#include "mqctl/data/record_json.h"

#include <gtest/gtest.h>

#include <random>

namespace mq::mqctl {
namespace {

JsonRecord round_trip(const RecordView& record) {
  const auto line = to_json(record_value(record));
  EXPECT_EQ(line.find('\n'), std::string::npos) << "one line each";
  auto parsed = parse_record_json(line);
  EXPECT_TRUE(parsed.record) << parsed.error << " in " << line;
  return parsed.record.value_or(JsonRecord{});
}

RecordView with_value(std::optional<Bytes> value) {
  RecordView record;
  record.topic = "t";
  record.partition = 0;
  record.offset = 7;
  record.timestamp = Timestamp(Duration(1'796'000'000'123));
  record.value = value;
  return record;
}

TEST(RecordJson, LineHasTheFrozenKeysInOrder) {
  auto record = with_value(as_bytes("v1"));
  record.key = as_bytes("k1");
  EXPECT_EQ(to_json(record_value(record)),
            R"({"topic":"t","partition":0,"offset":7,"ts":"2026-11-30T00:53:20.123Z",)"
            R"("key":"k1","value":"v1","headers":[]})");
}

TEST(RecordJson, NullEmptyTextAndBinaryStayFourThings) {
  EXPECT_EQ(round_trip(with_value(std::nullopt)).value, std::nullopt);
  EXPECT_EQ(round_trip(with_value(as_bytes(""))).value, "");
  EXPECT_EQ(round_trip(with_value(as_bytes("null"))).value, "null");
  EXPECT_EQ(round_trip(with_value(as_bytes("\xff\xfe"))).value, "\xff\xfe");
}

TEST(RecordJson, AnyBytesComeBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(random() % 50, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % (round % 2 == 0 ? 256 : 128));
    auto record = with_value(as_bytes(bytes));
    record.key = as_bytes(bytes);
    const std::vector<HeaderView> headers = {
        {"h", as_bytes(bytes)}, {"h", std::nullopt}, {"h", as_bytes("")}};
    record.headers = headers;
    const auto back = round_trip(record);
    EXPECT_EQ(back.value, bytes);
    EXPECT_EQ(back.key, bytes);
    ASSERT_EQ(back.headers.size(), 3U);
    EXPECT_EQ(back.headers[0].value, bytes);
    EXPECT_EQ(back.headers[1].value, std::nullopt);
    EXPECT_EQ(back.headers[2].value, "");
    EXPECT_EQ(back.unix_ms, 1'796'000'000'123);
  }
}

TEST(RecordJson, EachMistakeIsNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "not a JSON object"},
      {R"({"value":1})", R"(value must be null, a string or {"base64": "…"})"},
      {R"({"key":{"base64":"?"}})", R"(key must be null, a string or {"base64": "…"})"},
      {R"({"valeu":"x"})", R"(unknown member "valeu")"},
      {R"({"ts":"yesterday"})", "ts must be a time like 2026-11-29T14:20:07.113Z"},
      {R"({"headers":{}})", R"(headers must be an array of {"name", "value"})"},
      {R"({"headers":[{"value":"x"}]})", "a header needs a name"}};
  for (const auto& [line, wanted] : cases) EXPECT_EQ(parse_record_json(line).error, wanted) << line;
  EXPECT_FALSE(parse_record_json("{").error.empty());
}

}  // namespace
}  // namespace mq::mqctl
