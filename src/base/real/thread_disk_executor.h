#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/disk_executor.h"

namespace mq::base {

/// A fixed number of threads that take work in order of arrival. The destructor runs what is
/// queued, then joins. What the system shows of them (top -H) is `name`, at most 15 characters.
class ThreadDiskExecutor final : public DiskExecutor {
 public:
  explicit ThreadDiskExecutor(std::size_t threads, const std::string& name = "mq-disk");
  ~ThreadDiskExecutor() override;
  void submit(std::function<void()> work) override;

 private:
  void loop();

  std::mutex mutex_;  // guards queue_ and stopping_
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mq::base
