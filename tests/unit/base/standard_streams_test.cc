#include "base/real/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace mq::base {
namespace {

/// In a child, whose standard streams may go: 0 when closed ones are filled and cannot be used.
[[noreturn]] void use_closed_streams() {
  for (int fd = 0; fd <= 2; ++fd) ::close(fd);
  claim_standard_streams();
  const int file = ::open("/dev/null", O_RDWR);
  const bool refused =
      ::write(1, "x", 1) == -1 && errno == EBADF && ::write(2, "x", 1) == -1 && errno == EBADF;
  ::_exit(file == 3 && refused ? 0 : 1);
}

TEST(StandardStreamsDeathTest, ClosedOnesAreFilledSoThatNoFileGetsTheirNumber) {
  EXPECT_EXIT(
      {
        for (int fd = 3; fd < 1024; ++fd) ::close(fd);
        use_closed_streams();
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(StandardStreamsDeathTest, OpenOnesStayAsTheyAre) {
  EXPECT_EXIT(
      {
        claim_standard_streams();
        ::_exit(::write(2, "kept", 4) == 4 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "kept");
}

}  // namespace
}  // namespace mq::base
