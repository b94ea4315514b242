#pragma once

#include <functional>

#include "base/asio.h"

namespace mq::base {

/// Where blocking disk work runs (fdatasync, unlink, cold reads, recovery): a disk's own threads,
/// or the simulator.
class DiskExecutor {
 public:
  virtual ~DiskExecutor() = default;
  /// Runs `work` later on a disk thread. Any thread may call.
  virtual void submit(std::function<void()> work) = 0;
  /// Runs `work` on a disk thread and resumes the caller on its own executor when it has ended.
  /// What `work` refers to stays alive until then.
  asio::awaitable<void> run(std::function<void()> work);
};

}  // namespace mq::base
