#pragma once

#include <string>
#include <thread>

#include "base/real/real_runtime.h"

namespace mq::base {

/// A thread that serves one runtime. The destructor stops the runtime and joins; what is still
/// queued is left where it is.
class RuntimeThread {
 public:
  /// `name` is what the system shows of it (top -H), at most 15 characters.
  explicit RuntimeThread(RealRuntime& runtime, const std::string& name = "mq-worker");
  ~RuntimeThread();
  RuntimeThread(const RuntimeThread&) = delete;
  RuntimeThread& operator=(const RuntimeThread&) = delete;

 private:
  RealRuntime& runtime_;
  std::thread thread_;
};

/// Processor cores this process may use, at least 1.
std::size_t available_cores() noexcept;

}  // namespace mq::base
