#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

using testing::MqctlTest;
using testing::StringOutput;

TEST(Output, KeepsTextUntilItIsFlushedOrMuch) {
  StringOutput out;
  out.write("a");
  EXPECT_EQ(out.text, "");
  EXPECT_TRUE(out.flush());
  EXPECT_EQ(out.text, "a");
  out.write(std::string(300'000, 'x'));
  EXPECT_EQ(out.text.size(), 300'001U);
}

TEST(Output, AReaderThatWentAwayIsNoError) {
  StringOutput out;
  out.fail_with = EPIPE;
  out.write("a");
  EXPECT_FALSE(out.flush());
  EXPECT_TRUE(out.ended());
  EXPECT_EQ(out.error(), 0);
}

TEST(Output, TheFirstErrorStays) {
  StringOutput out;
  out.fail_with = ENOSPC;
  out.write("a");
  EXPECT_FALSE(out.flush());
  out.fail_with = 0;
  out.write("b");
  EXPECT_FALSE(out.flush());
  EXPECT_EQ(out.text, "") << "nothing with a hole in it";
  EXPECT_EQ(out.error(), ENOSPC);
}

using MqctlOutput = MqctlTest;

TEST_F(MqctlOutput, AFullDeviceIsReportedAndTheExitCodeIsNotZero) {
  out.fail_with = ENOSPC;
  EXPECT_EQ(run({"version"}), 1);
  EXPECT_EQ(err.text,
            "error: the output is not complete [OUTPUT_FAILED]\n"
            "  why:  standard output: No space left on device\n"
            "  try:  check the disk or the pipe behind it\n");
}

TEST_F(MqctlOutput, AClosedPipeEndsQuietly) {
  out.fail_with = EPIPE;
  EXPECT_EQ(run({"error", "list"}), 0);
  EXPECT_EQ(err.text, "");
}

}  // namespace
}  // namespace mq::mqctl
