#include "mqctl/data/offsets.h"

#include <gtest/gtest.h>

namespace mq::mqctl {
namespace {

std::int64_t start_of(std::string_view text, OffsetRange range) {
  const auto parsed = parse_offsets(text);
  EXPECT_TRUE(parsed.span) << parsed.error;
  return parsed.span ? resolve(parsed.span->start, range) : -1;
}

TEST(Offsets, EachFormMeansItsPlace) {
  const OffsetRange range{10, 50};
  EXPECT_EQ(start_of("start", range), 10);
  EXPECT_EQ(start_of("end", range), 50);
  EXPECT_EQ(start_of("17", range), 17);
  EXPECT_EQ(start_of("+5", range), 15);
  EXPECT_EQ(start_of("-5", range), 45);
}

TEST(Offsets, RelativePlacesStopAtTheEnds) {
  const OffsetRange range{10, 50};
  EXPECT_EQ(start_of("+500", range), 50);
  EXPECT_EQ(start_of("-500", range), 10);
  EXPECT_EQ(start_of("+9223372036854775807", range), 50);
  EXPECT_EQ(start_of("-9223372036854775807", range), 10);
}

TEST(Offsets, AWrittenNumberIsTakenAsItIs) { EXPECT_EQ(start_of("99", {10, 50}), 99); }

TEST(Offsets, SpanHasAnEnd) {
  const auto parsed = parse_offsets("-10:end");
  ASSERT_TRUE(parsed.span);
  EXPECT_EQ(resolve(parsed.span->start, {0, 30}), 20);
  EXPECT_EQ(resolve(*parsed.span->end, {0, 30}), 30);
  EXPECT_EQ(parse_offsets("5").span->end, std::nullopt);
}

TEST(Offsets, OtherTextIsRefusedWithTheWrongPart) {
  for (const auto* text : {"", ":", "5:", "x", "1:2:3", "--5", "+-5", "1.5", "9223372036854775808",
                           "beginning", " 5"}) {
    const auto parsed = parse_offsets(text);
    EXPECT_FALSE(parsed.span) << text;
    EXPECT_FALSE(parsed.error.empty()) << text;
    EXPECT_FALSE(parsed.not_available) << text;
  }
}

TEST(Offsets, TimesComeLaterAndSayso) {
  EXPECT_TRUE(parse_offsets("@-1h:end").not_available);
  EXPECT_TRUE(parse_offsets("@2026-11-29T14:20:07Z").not_available);
}

}  // namespace
}  // namespace mq::mqctl
