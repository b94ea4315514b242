#include "client/core/client_core.h"

#include "client/core/error.h"

namespace mq::client {

ClientCore::ClientCore(base::Runtime& core_runtime, base::Network& network,
                       const ClientConfig& client_config)
    : runtime(core_runtime),
      config(client_config),
      log(core_runtime, client_config.log),
      pool(core_runtime, network, log, client_config, core_runtime.random()),
      metadata(core_runtime, pool, client_config),
      tasks(core_runtime) {}

asio::awaitable<Result<void>> ClientCore::start() {
  protocol::MetadataRequest request;
  const base::TimePoint deadline = runtime.now() + config.connect_timeout;
  const auto answer = co_await metadata.fetch(std::move(request), deadline);
  if (!answer) co_return answer.error();
  co_return Result<void>{};
}

asio::awaitable<void> ClientCore::stop() {
  // Each waits for tasks that wait for the other's connections: tell both before waiting for
  // either.
  co_await pool.stop();
  co_await metadata.stop();
  co_await tasks.wait();
}

}  // namespace mq::client
