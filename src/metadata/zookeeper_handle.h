#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/runtime.h"
#include "metadata/store.h"

namespace mq::metadata {

/// With these another handle takes a session over.
struct ZooKeeperSession {
  std::uint64_t id = 0;  ///< 0: none yet
  std::array<char, 16> password{};
  std::chrono::milliseconds timeout{0};  ///< as the server gave it
};

/// What a request came back with.
struct ZooKeeperReply {
  /// outcome_unknown: the answer is lost, whatever the request was. unavailable: it was not sent.
  Error error;
  Node node;                                ///< get
  std::vector<std::string> names;           ///< children, in no order
  std::vector<OperationResult> operations;  ///< multi, also when it was refused
};

/// One handle of the ZooKeeper C client: the only code that includes its header.
///
/// Belongs to one runtime: calls come from its thread, and everything that the client says comes
/// back there, in the client's order. The client's own threads do nothing but copy and post, and
/// never call it. It reconnects by itself; after `expired` the handle is of no more use.
class ZooKeeperHandle {
 public:
  struct Events {
    std::function<void(const ZooKeeperSession&)> connected;  ///< first and again
    std::function<void()> disconnected;
    std::function<void()> expired;
    /// A watch fired. The path is without the chroot.
    std::function<void(const std::string& path, WatchKind)> changed;
  };
  using Done = std::function<void(ZooKeeperReply)>;

  struct Settings {
    std::string servers;  ///< "10.0.0.1:2181,…", numbers only
    std::string chroot;   ///< "" or "/mq": put before every path
    std::chrono::milliseconds session_timeout{0};
    ZooKeeperSession session;  ///< to go on with; id 0: a new one
  };

  /// Null when the system lacks threads or descriptors. Never blocks on the network.
  static std::unique_ptr<ZooKeeperHandle> open(const Settings& settings, base::Runtime& runtime,
                                               Events events);
  /// Ends the handle as close() does, without waiting. Nothing is called afterwards but the Done of
  /// requests in flight, from here, with outcome_unknown.
  ~ZooKeeperHandle();
  ZooKeeperHandle(const ZooKeeperHandle&) = delete;
  ZooKeeperHandle& operator=(const ZooKeeperHandle&) = delete;

  /// Each calls `done` once, later. Requests take effect in the order made while the connection
  /// holds.
  void get(const std::string& path, Done done);
  void children(const std::string& path, Done done);
  void multi(const std::vector<Operation>& operations, Done done);
  /// One change of that kind is reported by Events::changed.
  void watch(const std::string& path, WatchKind kind, Done done);
  /// Later reads see every write that was confirmed to anybody before.
  void sync(Done done);
  /// The chroot, which is not empty, and what stands above it. already_exists is as good as done.
  void make_chroot(Done done);

  [[nodiscard]] std::size_t in_flight() const;
  /// Ends the session when connected, on a thread of its own, because the client blocks meanwhile
  /// and may do so for ever. `done` comes at the end. No other calls after this one.
  void close(std::function<void()> done);

  /// The client's newest complaint, such as "connection refused"; of all handles together.
  static std::string last_complaint();

 private:
  class Core;
  explicit ZooKeeperHandle(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;  // also of the client's threads, until they have ended
};

/// What a multi takes on the wire, about: no more than this is let through by a server with the
/// built-in jute.maxbuffer.
inline constexpr std::size_t kZooKeeperRequestBytesMax = (std::size_t{1} << 20) - 4096;
std::size_t wire_bytes(const std::vector<Operation>& operations, const std::string& chroot);

}  // namespace mq::metadata
