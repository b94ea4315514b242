#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

/// Watching, without a broker: every look fails, which is shown and does not end it.
class Watch : public testing::MqctlTest {
 protected:
  /// Ctrl-C comes with the question after so many.
  void interrupt_after(int questions) {
    interrupted = [left = questions]() mutable { return left-- <= 0; };
  }
  std::size_t looks() const {
    std::size_t count = 0;
    for (std::size_t at = err.text.find("error: "); at != std::string::npos;
         at = err.text.find("error: ", at + 1))
      ++count;
    return count;
  }
  const std::vector<std::string> words{"topic",       "list",      "-b",  "127.0.0.1:1",
                                       "--watch=1ms", "--timeout", "20ms"};
};

TEST_F(Watch, GoesOnAfterFailuresUntilCtrlC) {
  interrupt_after(12);
  EXPECT_EQ(run(words), 130);
  EXPECT_GE(looks(), 2U);
}

TEST_F(Watch, RedrawsInPlaceAtATerminalOnly) {
  interrupt_after(3);
  EXPECT_EQ(run(words), 130);
  EXPECT_EQ(out.text.find('\x1b'), std::string::npos);
  out_is_terminal = true;
  interrupt_after(3);
  EXPECT_EQ(run(words), 130);
  EXPECT_TRUE(out.text.starts_with("\x1b[H\x1b[2J"));
}

TEST_F(Watch, OneJsonObjectHasNoEndToWaitFor) {
  auto json = words;
  json.insert(json.end(), {"-o", "json"});
  EXPECT_EQ(run(json), 2);
  EXPECT_NE(out.text.find("-o jsonl"), std::string::npos) << out.text;
}

}  // namespace
}  // namespace mq::mqctl
