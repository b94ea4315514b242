#pragma once

#include <memory>

#include "broker/core.h"

namespace mq::broker {

/// Accepts connections on the home runtime and gives each to the worker with the fewest. Above the
/// limit of connections a new one is closed at once; when descriptors run out accepting pauses.
class Listener {
 public:
  Listener(Core& core, std::unique_ptr<base::Acceptor> acceptor);

  /// Until close().
  asio::awaitable<void> run();
  void close();
  [[nodiscard]] base::Endpoint local() const { return acceptor_->local(); }

 private:
  void admit(std::unique_ptr<base::Stream> stream);
  void give(Worker& worker, std::unique_ptr<base::Stream> stream);
  [[nodiscard]] std::size_t open_connections() const noexcept;

  Core& core_;
  std::unique_ptr<base::Acceptor> acceptor_;
  bool closed_ = false;
};

}  // namespace mq::broker
