#include "base/real/thread_disk_executor.h"

#include "base/real/thread_name.h"

namespace mq::base {

ThreadDiskExecutor::ThreadDiskExecutor(std::size_t threads, const std::string& name) {
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { loop(); });
    name_thread(threads_.back(), name);
  }
}

ThreadDiskExecutor::~ThreadDiskExecutor() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadDiskExecutor::submit(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void ThreadDiskExecutor::loop() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace mq::base
