#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "support/temp_dir.h"

namespace mq::testing {

/// A real ZooKeeper server on loopback, with a folder and a port of its own. Short ticks, so that
/// sessions may be as short as 400 ms. It ends with this object, and with this process at the
/// latest.
class ZooKeeperServer {
 public:
  ZooKeeperServer();
  ~ZooKeeperServer();
  ZooKeeperServer(const ZooKeeperServer&) = delete;
  ZooKeeperServer& operator=(const ZooKeeperServer&) = delete;

  /// The one of this test program, started when it is first asked for.
  static ZooKeeperServer& shared();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Returns when it serves. After stop() it has the same port and data.
  void start();
  void stop();
  /// It neither answers nor closes anything in between.
  void pause() const;
  void resume() const;
  /// The answer to a four-letter word, such as "dump".
  [[nodiscard]] std::string ask(const std::string& word) const;
  [[nodiscard]] bool has_session(std::uint64_t session) const;

 private:
  TempDir folder_;
  std::uint16_t port_ = 0;
  ::pid_t pid_ = 0;
};

}  // namespace mq::testing
