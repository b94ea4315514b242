#include "base/wait_list.h"

namespace mq::base {
namespace {

void resume(asio::any_completion_handler<void(bool)> handler, const asio::any_io_executor& executor,
            bool notified) {
  asio::post(executor,
             [handler = std::move(handler), notified]() mutable { std::move(handler)(notified); });
}

}  // namespace

WaitList::~WaitList() { notify_all(); }

asio::awaitable<bool> WaitList::wait_until(TimePoint deadline) {
  return asio::async_initiate<const asio::use_awaitable_t<>&, void(bool)>(
      [this, deadline](auto handler) { add(std::move(handler), deadline); }, asio::use_awaitable);
}

asio::awaitable<bool> WaitList::wait() { return wait_until(TimePoint::max()); }

void WaitList::add(asio::any_completion_handler<void(bool)> handler, TimePoint deadline) {
  waiters_.push_back(Waiter{std::move(handler)});
  if (deadline == TimePoint::max()) return;
  const auto self = std::prev(waiters_.end());
  self->timer = runtime_.start_timer(deadline, [this, self] {
    auto late = std::move(self->handler);
    waiters_.erase(self);
    resume(std::move(late), runtime_.executor(), false);
  });
}

void WaitList::notify_all() {
  std::list<Waiter> woken;
  woken.swap(waiters_);
  for (auto& waiter : woken) {
    if (waiter.timer != 0) runtime_.cancel_timer(waiter.timer);
    resume(std::move(waiter.handler), runtime_.executor(), true);
  }
}

}  // namespace mq::base
