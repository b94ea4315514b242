// LD_PRELOADed into a broker: every MQ_SHORT_WRITES-th pwritev of several bytes writes a part of
// them, and the next one is interrupted, as the kernel may do.

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <vector>

namespace {

unsigned long every() {
  static const char* const text = std::getenv("MQ_SHORT_WRITES");
  return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
}

ssize_t real(int fd, const iovec* vectors, int count, off_t position) {
  return ::syscall(SYS_pwritev, fd, vectors, count, position, 0);
}

ssize_t write_some(int fd, const iovec* vectors, int count, off_t position) {
  static std::atomic<unsigned long> calls{0};
  const auto call = ++calls;
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) total += vectors[i].iov_len;
  if (every() == 0 || total < 2) return real(fd, vectors, count, position);
  if (call % every() == 1) {
    errno = EINTR;
    return -1;
  }
  if (call % every() != 0) return real(fd, vectors, count, position);
  std::size_t left = 1 + call * 7919 % (total - 1);
  std::vector<iovec> part;
  for (int i = 0; i < count && left > 0; ++i) {
    const auto taken = std::min(left, vectors[i].iov_len);
    part.push_back({vectors[i].iov_base, taken});
    left -= taken;
  }
  return real(fd, part.data(), static_cast<int>(part.size()), position);
}

}  // namespace

extern "C" {
ssize_t pwritev(int fd, const iovec* vectors, int count, off_t position) {
  return write_some(fd, vectors, count, position);
}
ssize_t pwritev64(int fd, const iovec* vectors, int count, off_t position) {
  return write_some(fd, vectors, count, position);
}
}
