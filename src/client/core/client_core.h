#pragma once

#include <memory>

#include "client/core/connection_pool.h"
#include "client/core/log.h"
#include "client/core/metadata_cache.h"

namespace mq::client {

/// What every client object stands on: one runtime, its connections and what it knows of the
/// cluster. The producer's, the consumer's and the admin's core own one each. Nothing here blocks
/// or starts a thread, so the simulator runs the same code.
class ClientCore {
 public:
  /// `config`, `runtime` and `network` outlive the core.
  ClientCore(base::Runtime& core_runtime, base::Network& network,
             const ClientConfig& client_config);

  /// Finds the cluster within connect_timeout.
  asio::awaitable<Result<void>> start();
  /// Closes connections and waits for what runs. Once.
  asio::awaitable<void> stop();

  base::Runtime& runtime;
  const ClientConfig& config;
  Log log;
  ConnectionPool pool;
  MetadataCache metadata;
  base::TaskGroup tasks;  ///< requests side by side; waited for by stop()
};

}  // namespace mq::client
