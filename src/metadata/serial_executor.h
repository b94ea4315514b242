#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "base/disk_executor.h"

namespace mq::metadata {

/// Work on another executor's threads, but one piece after the other, in the order submitted.
class SerialExecutor final : public base::DiskExecutor {
 public:
  /// `below` outlives all work that was submitted.
  explicit SerialExecutor(base::DiskExecutor& below);
  void submit(std::function<void()> work) override;

 private:
  struct Queue {
    explicit Queue(base::DiskExecutor& executor) : below(executor) {}
    base::DiskExecutor& below;
    std::mutex mutex;  // guards the rest
    std::deque<std::function<void()>> waiting;
    bool running = false;
  };
  static void run_one(const std::shared_ptr<Queue>& queue);

  std::shared_ptr<Queue> queue_;  // shared with work that outlives this object
};

}  // namespace mq::metadata
