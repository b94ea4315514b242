#include "protocol/utf8.h"

#include <gtest/gtest.h>

namespace mq::protocol {
namespace {

TEST(Utf8, WellFormedTextIsValid) {
  for (const char* text :
       {"", "ascii", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xe6\x97\xa5z"})
    EXPECT_TRUE(valid_utf8(text)) << text;
}

TEST(Utf8, MalformedTextIsNot) {
  for (const char* text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2z", "\xe0\x80\x80",
                           "\xe0\x9f\xbf", "\xed\xa0\x80", "\xef\xbf", "\xf0\x80\x80\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_FALSE(valid_utf8(text)) << text;
}

TEST(Utf8, CutNeverSplitsACharacter) {
  const std::string text = "a\xc3\xa4\xe6\x97\xa5\xf0\x9f\x90\xa7z";
  for (std::size_t bytes = 0; bytes <= text.size() + 1; ++bytes) {
    const auto cut = cut_utf8(text, bytes);
    EXPECT_LE(cut.size(), bytes);
    EXPECT_TRUE(valid_utf8(cut)) << bytes;
    EXPECT_GE(cut.size() + 3, std::min(bytes, text.size()));
  }
}

TEST(Utf8, InvalidBytesBecomeQuestionMarks) {
  EXPECT_EQ(replace_invalid_utf8("a\xff\xc3\xa4\xc3"), "a?\xc3\xa4?");
  EXPECT_EQ(replace_invalid_utf8("plain"), "plain");
}

}  // namespace
}  // namespace mq::protocol
