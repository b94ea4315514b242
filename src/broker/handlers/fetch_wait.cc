#include "broker/handlers/fetch_wait.h"

namespace mq::broker {

void FetchWait::wait_for(Worker& worker, replication::Readable& partition, model::Offset wanted) {
  Node& node = nodes_[worker.index()].emplace_back(*this, worker.runtime());
  node.wanted = wanted;
  partition.add_waiter(node);
}

void FetchWait::wake_from(base::Runtime& here) {
  if (here.executor() == home_.executor()) return woken();
  home_.post([self = shared_from_this()] { self->woken(); });
}

void FetchWait::woken() {
  if (std::exchange(woken_, true)) return;
  woken_list_.notify_all();
}

asio::awaitable<void> FetchWait::until(base::TimePoint deadline) {
  while (!woken_) {
    const bool notified = co_await woken_list_.wait_until(deadline);
    if (!notified) co_return;
  }
}

void FetchWait::leave(const std::vector<std::unique_ptr<Worker>>& workers) {
  if (is_linked()) unlink();
  for (const auto& worker : workers) {
    auto& nodes = nodes_[worker->index()];
    if (worker->runtime().executor() == home_.executor()) {
      nodes.clear();
    } else {
      worker->runtime().post([self = shared_from_this(), &nodes] { nodes.clear(); });
    }
  }
}

}  // namespace mq::broker
