#include "replication/readable.h"

namespace mq::replication {

void FetchWaiters::wake_below(model::Offset high_watermark) {
  for (auto next = waiters_.begin(); next != waiters_.end();) {
    FetchWaiter& waiter = *next++;
    if (waiter.wanted >= high_watermark) continue;
    waiter.unlink();
    waiter.wake();
  }
}

void FetchWaiters::wake_all() {
  while (!waiters_.empty()) {
    FetchWaiter& waiter = waiters_.front();
    waiter.unlink();
    waiter.wake();
  }
}

}  // namespace mq::replication
