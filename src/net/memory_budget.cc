#include "net/memory_budget.h"

#include <algorithm>

#include "base/check.h"

namespace mq::net {

MemoryBudget::~MemoryBudget() {
  MQ_CHECK(waiters_.empty(), "{} requests wait for memory", waiters_.size());
  MQ_CHECK(used_ == 0, "{} bytes are still taken", used_);
}

bool MemoryBudget::try_take(std::size_t bytes) {
  if (!waiters_.empty() || used_ + bytes > limit_) return false;
  used_ += bytes;
  return true;
}

asio::awaitable<std::size_t> MemoryBudget::take(std::size_t bytes) {
  bytes = std::min(bytes, limit_);
  if (try_take(bytes)) co_return bytes;
  Waiter waiter{bytes, base::WaitList(runtime_)};
  waiters_.push_back(&waiter);
  while (!waiter.granted) co_await waiter.granted_list.wait();
  co_return bytes;
}

void MemoryBudget::release(std::size_t bytes) {
  MQ_CHECK(bytes <= used_, "{} bytes given back, {} taken", bytes, used_);
  used_ -= bytes;
  while (!waiters_.empty() && used_ + waiters_.front()->bytes <= limit_) {
    Waiter& next = *waiters_.front();
    waiters_.pop_front();
    used_ += next.bytes;
    next.granted = true;
    next.granted_list.notify_all();
  }
}

void Lease::give_back() noexcept {
  if (budget_ && bytes_ > 0) budget_->release(bytes_);
  budget_ = nullptr;
  bytes_ = 0;
}

void Lease::shrink(std::size_t bytes) noexcept {
  if (!budget_ || bytes >= bytes_) return;
  budget_->release(bytes_ - bytes);
  bytes_ = bytes;
}

}  // namespace mq::net
