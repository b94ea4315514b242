#include "broker/rate_limited_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mq::broker {
namespace {

using ::testing::ElementsAre;

TEST(RateLimitedLog, OneLineForEachKindAndInterval) {
  std::vector<std::string> lines;
  base::set_log_sink(
      [&](base::LogLevel, std::string_view, std::string_view text) { lines.emplace_back(text); });
  RateLimitedLog log(std::chrono::seconds(10));
  const base::TimePoint start{std::chrono::hours(1)};
  log.warn(start, "tls", "a");
  log.warn(start, "tls", "b");
  log.warn(start, "http", "c");
  log.warn(start + std::chrono::seconds(9), "tls", "d");
  log.warn(start + std::chrono::seconds(10), "tls", "e");
  log.warn(start + std::chrono::seconds(20), "tls", "f");
  base::set_log_sink({});
  EXPECT_THAT(lines, ElementsAre("a", "c", "e (2 more like it since the last line)", "f"));
}

}  // namespace
}  // namespace mq::broker
