#include "mqctl/data/offsets.h"

#include <gtest/gtest.h>

namespace mq::mqctl {
namespace {

std::int64_t start_of(std::string_view text, OffsetRange range) {
  const auto parsed = parse_offsets(text, 0);
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
  const auto parsed = parse_offsets("-10:end", 0);
  ASSERT_TRUE(parsed.span);
  EXPECT_EQ(resolve(parsed.span->start, {0, 30}), 20);
  EXPECT_EQ(resolve(*parsed.span->end, {0, 30}), 30);
  EXPECT_EQ(parse_offsets("5", 0).span->end, std::nullopt);
}

TEST(Offsets, OtherTextIsRefusedWithTheWrongPart) {
  for (const auto* text : {"", ":", "5:", "x", "1:2:3", "--5", "+-5", "1.5", "9223372036854775808",
                           "beginning", " 5"}) {
    const auto parsed = parse_offsets(text, 0);
    EXPECT_FALSE(parsed.span) << text;
    EXPECT_FALSE(parsed.error.empty()) << text;
  }
}

constexpr std::int64_t kNow = 1'796'000'000'000;

TEST(Offsets, TimesAreAbsoluteOrCountBackFromNow) {
  const auto time_of = [](std::string_view text) {
    const auto parsed = parse_offsets(text, kNow);
    EXPECT_TRUE(parsed.span) << text << ": " << parsed.error;
    if (!parsed.span) return std::int64_t{-1};
    EXPECT_EQ(parsed.span->start.from, Place::From::time);
    return parsed.span->start.by;
  };
  EXPECT_EQ(time_of("@1700000000000"), 1'700'000'000'000);
  EXPECT_EQ(time_of("@2023-11-14T22:13:20Z"), 1'700'000'000'000);
  EXPECT_EQ(time_of("@2023-11-14T22:13:20.250Z"), 1'700'000'000'250);
  EXPECT_EQ(time_of("@-1h"), kNow - 3'600'000);
  EXPECT_EQ(time_of("@-250ms"), kNow - 250);
  EXPECT_EQ(time_of("@now"), kNow);
  EXPECT_EQ(time_of("@-100000w"), 0);
  EXPECT_EQ(resolve({Place::From::time, 5}, {10, 50}, 17), 17);
}

TEST(Offsets, SpansMayBeginAndEndWithTimes) {
  const auto span = [](std::string_view text) { return parse_offsets(text, kNow).span; };
  const Place first{Place::From::time, 1'700'000'000'000};
  const Place later{Place::From::time, 1'700'000'060'000};
  EXPECT_EQ(span("@2023-11-14T22:13:20Z:@2023-11-14T22:14:20Z"), (OffsetSpan{first, later}));
  EXPECT_EQ(span("@2023-11-14T22:13:20Z:17"), (OffsetSpan{first, Place{Place::From::zero, 17}}));
  EXPECT_EQ(span("start:@1700000000000"), (OffsetSpan{Place{Place::From::start, 0}, first}));
  EXPECT_EQ(span("@-5m:now"),
            (OffsetSpan{Place{Place::From::time, kNow - 300'000}, Place{Place::From::time, kNow}}));
  EXPECT_EQ(span("@-1h:end")->end, (Place{Place::From::end, 0}));
}

TEST(Offsets, OtherTimesAreRefused) {
  for (const auto* text :
       {"@", "@x", "@-1", "@-1y", "@+1h", "@1h", "@2023-11-14", "@2023-11-14T22:13:20",
        "@2023-11-14T22:13:20Z:", "@-1h:-5m", "@2023-11-14T22:13:20Z:1:2", "-1h"}) {
    const auto parsed = parse_offsets(text, kNow);
    EXPECT_FALSE(parsed.span) << text;
    EXPECT_FALSE(parsed.error.empty()) << text;
  }
}

}  // namespace
}  // namespace mq::mqctl
