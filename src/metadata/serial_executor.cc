#include "metadata/serial_executor.h"

namespace mq::metadata {

SerialExecutor::SerialExecutor(base::DiskExecutor& below)
    : queue_(std::make_shared<Queue>(below)) {}

void SerialExecutor::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->waiting.push_back(std::move(work));
    if (queue_->running) return;
    queue_->running = true;
  }
  queue_->below.submit([queue = queue_] { run_one(queue); });
}

void SerialExecutor::run_one(const std::shared_ptr<Queue>& queue) {
  std::function<void()> work;
  {
    const std::lock_guard lock(queue->mutex);
    work = std::move(queue->waiting.front());
    queue->waiting.pop_front();
  }
  work();
  work = nullptr;
  {
    const std::lock_guard lock(queue->mutex);
    queue->running = !queue->waiting.empty();
    if (!queue->running) return;
  }
  queue->below.submit([queue] { run_one(queue); });
}

}  // namespace mq::metadata
