#include "config/config_document.h"

#include <gtest/gtest.h>

namespace mq::config {
namespace {

TEST(ConfigDocument, TablesAreFlattenedWithPlaces) {
  const auto document = parse_document("[a.b]\nc.d = 1\ne = \"x\"\n[[l]]\nm = 2\n[[l]]\nm = 3\n");
  ASSERT_TRUE(document.errors.empty());
  ASSERT_EQ(document.entries.size(), 4u);
  EXPECT_EQ(document.entries[0].key, "a.b.c.d");
  EXPECT_EQ(document.entries[0].value.text, "1");
  EXPECT_EQ(document.entries[0].value_place, (Place{2, 7}));
  EXPECT_EQ(document.entries[1].key, "a.b.e");
  EXPECT_EQ(document.entries[1].value.type, ConfigValue::Type::string);
  EXPECT_EQ(document.entries[2].key, "l.m");
  EXPECT_EQ(document.entries[2].element, 0);
  EXPECT_EQ(document.entries[3].element, 1);
}

TEST(ConfigDocument, EveryBadLineIsReportedAndTheRestIsRead) {
  const auto document = parse_document("a = \nb = 1\nb = 2\nc = 3\nd = \"open\ne = 5\n");
  ASSERT_EQ(document.errors.size(), 3u);
  EXPECT_EQ(document.errors[0].place.line, 1u);
  EXPECT_EQ(document.errors[1].place.line, 3u);
  EXPECT_EQ(document.errors[1].message, "\"b\" is set twice");
  EXPECT_EQ(document.errors[2].place.line, 5u);
  ASSERT_EQ(document.entries.size(), 3u);
  EXPECT_EQ(document.entries[2].key, "e");
}

TEST(ConfigDocument, SomethingOpenToTheEndDoesNotMakeManyErrors) {
  const auto document = parse_document("a = \"\"\"open\nb = 1\nc = 2\nd = 3\n");
  EXPECT_GE(document.errors.size(), 1u);
  EXPECT_LE(document.errors.size(), 2u);
}

TEST(ConfigDocument, GarbageNeverCrashes) {
  std::string text = "[a]\nb = \"c\"\n[[d]]\ne = 1979-05-27\nf = [1, 2]\n";
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char byte : {'\0', '"', '[', '=', '\n', '\xff', '\\'}) {
      auto changed = text;
      changed[at] = byte;
      const auto document = parse_document(changed);
      EXPECT_LE(document.errors.size(), 20u);
    }
  }
}

}  // namespace
}  // namespace mq::config
