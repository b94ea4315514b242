#include "base/units.h"

#include <gtest/gtest.h>

namespace mq::base {
namespace {

using std::chrono::milliseconds;

TEST(Units, SizesNeedAUnit) {
  EXPECT_EQ(parse_bytes("100B"), 100u);
  EXPECT_EQ(parse_bytes("512KiB"), 512u << 10);
  EXPECT_EQ(parse_bytes("64MiB"), 64u << 20);
  EXPECT_EQ(parse_bytes("10GB"), 10'000'000'000u);
  EXPECT_EQ(parse_bytes("1TiB"), 1ull << 40);
  EXPECT_EQ(parse_bytes("0B"), 0u);
  for (const char* bad : {"", "1", "-1B", "1.5GB", "1 GB", "GB", "1gb", "1kB", "1MiBs",
                          "99999999999999999999B", "9999999999TiB"})
    EXPECT_EQ(parse_bytes(bad), std::nullopt) << bad;
}

TEST(Units, TimesNeedAUnit) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("30s"), milliseconds(30'000));
  EXPECT_EQ(parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(parse_duration("2h"), milliseconds(7'200'000));
  EXPECT_EQ(parse_duration("14d"), milliseconds(1'209'600'000));
  EXPECT_EQ(parse_duration("1w"), milliseconds(604'800'000));
  for (const char* bad : {"", "10", "-1s", "1.5h", "1 d", "d", "1S", "1min", "99999999999999w"})
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
}

TEST(Units, ExactFormsReadBackEqual) {
  for (const std::uint64_t bytes : {0ull, 1ull, 1000ull, 1024ull, 67'108'864ull, 10'000'000'000ull,
                                    1'234'567'891ull, 1ull << 41})
    EXPECT_EQ(parse_bytes(format_bytes_exact(bytes)), bytes) << format_bytes_exact(bytes);
  EXPECT_EQ(format_bytes_exact(67'108'864), "64MiB");
  for (const std::int64_t ms : {0ll, 1ll, 1'000ll, 90'000ll, 1'209'600'000ll, 604'800'000ll})
    EXPECT_EQ(parse_duration(format_duration_exact(milliseconds(ms))), milliseconds(ms));
}

TEST(Units, RoundedForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
}

}  // namespace
}  // namespace mq::base
