#include "mqctl/cli/text.h"

#include <gtest/gtest.h>

#include <random>

#include "mqctl/cli/table.h"

namespace mq::mqctl {
namespace {

TEST(Text, TimesRoundTrip) {
  EXPECT_EQ(format_timestamp(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:01Z"), 1000);
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const auto ms = static_cast<std::int64_t>(random() % 250'000'000'000'000ULL);
    EXPECT_EQ(parse_timestamp(format_timestamp(ms)), ms);
  }
  EXPECT_EQ(parse_timestamp(format_timestamp(-1)), -1);
}

TEST(Text, TimesThatHaveNoFourDigitYearAreMilliseconds) {
  EXPECT_EQ(format_timestamp(253'402'300'799'999), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(format_timestamp(253'402'300'800'000), "253402300800000ms");
  EXPECT_EQ(format_timestamp(-62'167'219'200'000), "0000-01-01T00:00:00.000Z");
  EXPECT_EQ(format_timestamp(-62'167'219'200'001), "-62167219200001ms");
  for (const std::int64_t ms : {INT64_MIN, INT64_MAX, std::int64_t{253'402'300'800'000}})
    EXPECT_EQ(parse_timestamp(format_timestamp(ms)), ms);
  EXPECT_EQ(parse_timestamp("12ms"), 12);
}

TEST(Text, WrongTimesAreRefused) {
  for (const auto* text :
       {"", "2026-02-31T00:00:00Z", "2026-11-29 14:20:07Z", "2026-11-29T24:00:00Z",
        "2026-11-29T14:20:07", "2026-11-29T14:20:07+01:00", "2026-13-01T00:00:00Z", "ms", "1 ms",
        "1.5ms", "9223372036854775808ms"})
    EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
}

TEST(Text, AgesShowTheTwoLargestParts) {
  using std::chrono::milliseconds;
  EXPECT_EQ(format_age(milliseconds(900)), "0s");
  EXPECT_EQ(format_age(milliseconds(12'345)), "12s");
  EXPECT_EQ(format_age(milliseconds(252'000)), "4m12s");
  EXPECT_EQ(format_age(milliseconds(3'600'000)), "1h0m");
  EXPECT_EQ(format_age(milliseconds(273'600'000)), "3d4h");
}

TEST(Text, Escapes) {
  EXPECT_EQ(unescape("a\\n\\t\\x41\\\\"), "a\n\tA\\");
  EXPECT_EQ(unescape("\\0"), std::string(1, '\0'));
  for (const auto* text : {"\\", "\\q", "\\x4", "\\xg0"}) EXPECT_EQ(unescape(text), std::nullopt);
}

TEST(Text, Utf8IsToldFromOtherBytes) {
  for (const auto* good : {"", "plain", "é", "€", "😀", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(good)) << good;
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
  for (const auto* bad : {"\x80", "\xff", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xe2\x82", "a\xc3"})
    EXPECT_FALSE(is_utf8(bad));
}

TEST(Text, Base64KnownVectorsAndAnyBytes) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  std::mt19937 random(6);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
  for (const auto* bad : {"a", "ab=c", "====", "ab=", "a===", "ab!d"})
    EXPECT_EQ(from_base64(bad), std::nullopt) << bad;
}

TEST(Table, NumbersAreRightAlignedAndNothingTrails) {
  Table table({{"TOPIC"}, {"N", Table::Align::right}, {"NOTE"}});
  table.add({"orders", "12", ""});
  table.add({"é", "", "late"});
  EXPECT_EQ(table.text(),
            "TOPIC    N  NOTE\n"
            "orders  12\n"
            "é        -  late\n");
}

TEST(Table, NumbersForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'234'567), "1,234,567");
  EXPECT_EQ(counted(1, "record"), "1 record");
  EXPECT_EQ(counted(1'000, "record"), "1,000 records");
}

}  // namespace
}  // namespace mq::mqctl
