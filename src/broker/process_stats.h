#pragma once

#include <cstdint>

#include "base/file_system.h"

namespace mq::broker {

/// What the system says about this process; zeros where it says nothing (no /proc, the simulator).
struct ProcessStats {
  std::int64_t process_id = 0;
  std::uint64_t resident_bytes = 0;
  std::int64_t cpu_user_ms = 0;
  std::int64_t cpu_system_ms = 0;
};

/// Reads /proc/self (proc(5)) through `files`.
ProcessStats read_process_stats(base::FileSystem& files);

}  // namespace mq::broker
