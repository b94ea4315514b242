#include "broker/worker_network.h"

#include "base/run_on.h"

namespace mq::broker {
namespace {

using Opened = base::Result<std::unique_ptr<base::Stream>>;

asio::awaitable<Opened> connect_at_home(Core& core, std::size_t worker, base::Endpoint to,
                                        base::TimePoint deadline) {
  auto stream = co_await core.network->connect(std::move(to), deadline);
  if (!stream) co_return stream.error();
  co_return core.move_stream(*std::move(stream), worker);
}

}  // namespace

asio::awaitable<Opened> WorkerNetwork::connect(base::Endpoint to, base::TimePoint deadline) {
  if (&runtime_ == core_.home) co_return co_await core_.network->connect(std::move(to), deadline);
  auto connecting = connect_at_home(core_, worker_, std::move(to), deadline);
  co_return co_await base::run_on(*core_.home, std::move(connecting));
}

base::Result<std::unique_ptr<base::Acceptor>> WorkerNetwork::listen(const base::Endpoint&) {
  return make_error_code(base::BaseErrc::not_permitted);
}

}  // namespace mq::broker
