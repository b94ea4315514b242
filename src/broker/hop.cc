#include "broker/hop.h"

#include "base/wait_list.h"

namespace mq::broker {
namespace {

struct Ending {
  explicit Ending(base::Runtime& runtime) : ended(runtime) {}
  base::WaitList ended;
  bool done = false;
};

asio::awaitable<void> announce(std::shared_ptr<Ending> ending, asio::awaitable<void> task) {
  co_await std::move(task);
  ending->done = true;
  ending->ended.notify_all();
}

}  // namespace

asio::awaitable<bool> ends_by(base::Runtime& runtime, base::TimePoint deadline,
                              asio::awaitable<void> task) {
  const auto ending = std::make_shared<Ending>(runtime);
  runtime.spawn("bounded task", announce(ending, std::move(task)));
  while (!ending->done) {
    const bool notified = co_await ending->ended.wait_until(deadline);
    if (!notified) co_return ending->done;
  }
  co_return true;
}

}  // namespace mq::broker
