#include "controller/change_queue.h"

namespace mq::controller {

ChangeQueue::Turn::~Turn() {
  if (!queue_) return;
  ++queue_->served_;
  queue_->turns_.notify_all();
}

asio::awaitable<ChangeQueue::Turn> ChangeQueue::wait_for_turn() {
  const auto ticket = next_ticket_++;
  while (served_ != ticket) (void)co_await turns_.wait();
  co_return Turn(*this);
}

}  // namespace mq::controller
