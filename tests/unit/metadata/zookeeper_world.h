#pragma once

#include <memory>
#include <string>

#include "metadata/zookeeper_store.h"
#include "support/tcp_relay.h"
#include "support/zookeeper_server.h"

namespace mq::testing {

/// A part of the shared ZooKeeper server for one test, behind a relay.
class ZooKeeperWorld {
 public:
  ZooKeeperWorld();

  /// Reaches the server through the relay.
  [[nodiscard]] metadata::ZooKeeperOptions options() const;
  /// Another client, which no fault of the relay touches.
  [[nodiscard]] metadata::ZooKeeperOptions direct_options() const;
  [[nodiscard]] TcpRelay& relay() { return relay_; }
  /// Until the server has ended the session by itself.
  void wait_for_end_of(std::uint64_t session) const;

 private:
  ZooKeeperServer& server_;
  TcpRelay relay_;
  const std::string chroot_;
};

}  // namespace mq::testing
