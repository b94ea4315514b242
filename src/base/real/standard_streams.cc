#include "base/real/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace mq::base {

void claim_standard_streams() noexcept {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is `fd`. The wrong direction: whoever uses it gets EBADF.
    static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace mq::base
