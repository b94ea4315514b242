#pragma once

#include <list>
#include <memory>

#include "base/network.h"
#include "base/real/real_runtime.h"

namespace mq::base {

/// TCP for one RealRuntime.
class AsioNetwork final : public Network {
 public:
  explicit AsioNetwork(RealRuntime& runtime) : runtime_(runtime) {}
  asio::awaitable<Result<std::unique_ptr<Stream>>> connect(Endpoint to,
                                                           TimePoint deadline) override;
  void cancel_connects() override;
  Result<std::unique_ptr<Acceptor>> listen(const Endpoint& at) override;

 private:
  struct Attempt;
  std::list<std::weak_ptr<Attempt>> attempts_;  // connects in progress
  RealRuntime& runtime_;
};

/// Gives a stream of AsioNetwork to another runtime: its next calls run there. Nothing may be in
/// progress on it. Used once per connection, when the broker hands it to a worker.
Result<std::unique_ptr<Stream>> move_stream(std::unique_ptr<Stream> stream, RealRuntime& to);

}  // namespace mq::base
