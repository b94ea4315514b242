#include "base/log.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace mq::base {
namespace {

TEST(Log, PrintableTextCannotForgeOrColourALine) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\x0ab\\x1b[31m");
  EXPECT_EQ(printable("\xc3\xa9"), "\\xc3\\xa9");
  EXPECT_EQ(printable("back\\slash"), "back\\x5cslash");
  EXPECT_EQ(printable(std::string(200, 'x'), 10), "xxxxxxxxxx...");
}

TEST(Log, LevelFilters) {
  std::string lines;
  set_log_sink([&lines](LogLevel, std::string_view module, std::string_view text) {
    lines += std::string(module) + ": " + std::string(text) + "\n";
  });
  configure_log({.level = LogLevel::warning});
  log_info("test", "not shown {}", 1);
  log_warning("test", "shown {}", 2);
  log_error("test", "shown {}", 3);
  configure_log({});
  set_log_sink({});
  EXPECT_EQ(lines, "test: shown 2\ntest: shown 3\n");
}

TEST(Log, LinesForTheJournalCarryTheirPriorityAndNoTimestamp) {
  ::testing::internal::CaptureStderr();
  configure_log({.timestamps = false});
  log_info("test", "one");
  log_warning("test", "two");
  log_error("test", "three");
  configure_log({});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "<6>test: one\n<4>test: two\n<3>test: three\n");
}

TEST(CheckDeathTest, AFailedCheckNamesConditionAndValues) {
  const int offset = 7;
  EXPECT_DEATH(MQ_CHECK(offset == 8, "offset is {}", offset), "offset == 8.*offset is 7");
}

}  // namespace
}  // namespace mq::base
