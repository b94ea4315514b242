#include "base/strings.h"

#include <gtest/gtest.h>

namespace mq::base {
namespace {

TEST(Strings, NearestFindsATypingError) {
  const std::vector<std::string> keys{"data_dirs", "broker_id", "listener"};
  EXPECT_EQ(nearest("data_dir", keys), "data_dirs");
  EXPECT_EQ(nearest("brokr_id", keys), "broker_id");
  EXPECT_EQ(nearest("zzzzzz", keys), std::nullopt);
  EXPECT_EQ(nearest("listener", std::vector<std::string>{}), std::nullopt);
  EXPECT_EQ(nearest(std::string(100'000, 'a'), keys), std::nullopt);
}

TEST(Strings, SplitKeepsEmptyPieces) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Strings, TrimTakesBlanksAndTabs) {
  EXPECT_EQ(trim(" \t a b\t "), "a b");
  EXPECT_EQ(trim("   "), "");
}

TEST(Strings, NumbersAreWholeAndBounded) {
  EXPECT_EQ(parse_unsigned("18446744073709551615"), 18446744073709551615ull);
  EXPECT_EQ(parse_signed("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const char* bad : {"", " 1", "1 ", "+1", "-1", "1x", "0x10", "1e3", "18446744073709551616"})
    EXPECT_EQ(parse_unsigned(bad), std::nullopt) << bad;
  for (const char* bad : {"", "--1", "9223372036854775808", "1.0"})
    EXPECT_EQ(parse_signed(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace mq::base
