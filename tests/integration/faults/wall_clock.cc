// Loaded into a broker: its wall clock is as many milliseconds off as the file MQ_WALL_CLOCK_FILE
// says, 8 bytes, which may be written at any time. The monotonic clock, timers and everything else
// are as they are.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kBillion = 1'000'000'000;

const volatile std::int64_t* map_offset() {
  const char* file = std::getenv("MQ_WALL_CLOCK_FILE");
  const int fd = file == nullptr ? -1 : ::open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) std::abort();
  void* mapped = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) std::abort();
  return static_cast<const volatile std::int64_t*>(mapped);
}

std::int64_t offset_ms() {
  static const volatile std::int64_t* const offset = map_offset();
  return *offset;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  using Function = int (*)(clockid_t, timespec*);
  static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = next(clock, now);
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  const std::int64_t at =
      std::int64_t{now->tv_sec} * kBillion + now->tv_nsec + offset_ms() * kMillion;
  now->tv_sec = at / kBillion;
  now->tv_nsec = at % kBillion;
  return 0;
}

int gettimeofday(timeval* now, void*) noexcept {
  timespec precise{};
  const int result = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}

time_t time(time_t* to) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (to != nullptr) *to = precise.tv_sec;
  return precise.tv_sec;
}

}  // extern "C"
