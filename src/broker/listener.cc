#include "broker/listener.h"

#include "broker/worker.h"

namespace mq::broker {
namespace {

constexpr auto kPause = std::chrono::milliseconds(100);

}  // namespace

Listener::Listener(Core& core, std::unique_ptr<base::Acceptor> acceptor)
    : core_(core), acceptor_(std::move(acceptor)) {}

asio::awaitable<void> Listener::run() {
  while (!closed_) {
    auto stream = co_await acceptor_->accept();
    if (closed_) break;
    if (stream) {
      admit(*std::move(stream));
      continue;
    }
    core_.peer_warnings.warn(
        core_.home->now(), "accept",
        fmt::format("a connection cannot be accepted: {}; trying again", stream.error().message()));
    co_await core_.home->sleep_for(kPause);
  }
}

void Listener::admit(std::unique_ptr<base::Stream> stream) {
  if (open_connections() >= core_.limits.connections) {
    core_.hot.connections_refused.add();
    core_.peer_warnings.warn(core_.home->now(), "connections",
                             fmt::format("{}: closed, {} connections are open (limits.connections)",
                                         stream->peer(), core_.limits.connections));
    stream->close();
    return;
  }
  const auto least = std::min_element(core_.workers.begin(), core_.workers.end(),
                                      [](const auto& left, const auto& right) {
                                        return left->open_connections() < right->open_connections();
                                      });
  give(**least, std::move(stream));
}

void Listener::give(Worker& worker, std::unique_ptr<base::Stream> stream) {
  if (&worker.runtime() == core_.home) return worker.adopt(std::move(stream));
  auto moved = core_.move_stream(std::move(stream), worker.index());
  if (!moved) return;  // it broke meanwhile
  // A function that is posted has to be copyable.
  const auto carried = std::make_shared<std::unique_ptr<base::Stream>>(*std::move(moved));
  worker.runtime().post([&worker, carried] { worker.adopt(std::move(*carried)); });
}

void Listener::close() {
  closed_ = true;
  acceptor_->close();
}

std::size_t Listener::open_connections() const noexcept {
  std::size_t count = 0;
  for (const auto& worker : core_.workers) count += worker->open_connections();
  return count;
}

}  // namespace mq::broker
