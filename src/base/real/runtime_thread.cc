#include "base/real/runtime_thread.h"

#include <sched.h>

#include "base/real/thread_name.h"

namespace mq::base {

RuntimeThread::RuntimeThread(RealRuntime& runtime, const std::string& name)
    : runtime_(runtime), thread_([this] { runtime_.run(); }) {
  name_thread(thread_, name);
}

RuntimeThread::~RuntimeThread() {
  runtime_.stop();
  thread_.join();
}

std::size_t available_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? static_cast<std::size_t>(count) : 1;
}

}  // namespace mq::base
