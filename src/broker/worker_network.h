#pragma once

#include "broker/core.h"

namespace mq::broker {

/// How one worker connects to other brokers: the connection is made on the home runtime and goes
/// over to the worker's. Used on the worker's runtime; `core` outlives it.
class WorkerNetwork final : public base::Network {
 public:
  WorkerNetwork(Core& core, base::Runtime& runtime, std::size_t worker)
      : core_(core), runtime_(runtime), worker_(worker) {}

  asio::awaitable<base::Result<std::unique_ptr<base::Stream>>> connect(
      base::Endpoint to, base::TimePoint deadline) override;
  /// Nobody listens on a worker of its own.
  base::Result<std::unique_ptr<base::Acceptor>> listen(const base::Endpoint& at) override;

 private:
  Core& core_;
  base::Runtime& runtime_;
  std::size_t worker_;
};

}  // namespace mq::broker
