// LD_PRELOADed into a broker: every MQ_SHORT_WRITES-th pwritev of several bytes writes a part of
// them, and the next one is interrupted, as the kernel may do. How many were cut short so far
// stands in the file MQ_SHORT_WRITES_FILE, 8 bytes.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

unsigned long every() {
  static const char* const text = std::getenv("MQ_SHORT_WRITES");
  return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
}

std::int64_t* map_count() {
  const char* file = std::getenv("MQ_SHORT_WRITES_FILE");
  const int fd = file == nullptr ? -1 : ::open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) std::abort();
  void* mapped = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) std::abort();
  return static_cast<std::int64_t*>(mapped);
}

void count_one() {
  static std::int64_t* const count = map_count();
  ++std::atomic_ref(*count);
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
  count_one();
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
