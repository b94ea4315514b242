#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/network.h"
#include "base/runtime.h"
#include "metadata/store.h"

namespace mq::metadata {

struct ZooKeeperOptions {
  std::vector<base::Endpoint> servers;
  std::string chroot;  ///< "" or an absolute path, such as "/mq"; made when it is not there
  /// Asked for; the server may give more or less. Without an answer for two thirds of it the client
  /// tries another server.
  std::chrono::milliseconds session_timeout{6000};
  /// How long open() waits for a session; renew() waits as long as `patience`.
  std::chrono::milliseconds connect_timeout{30000};
  /// How long a call waits for the connection to come back before it is refused as unavailable,
  /// counted from its loss: while ZooKeeper is away for longer, refusals come at once.
  std::chrono::milliseconds patience{3000};
  /// How long close() waits for answers that are due, and then for the client to end.
  std::chrono::milliseconds drain_timeout{500};
  std::chrono::milliseconds close_timeout{4000};
};

/// "ZooKeeper zk1:2181,zk2:2181 under /mq", for people.
std::string describe(const ZooKeeperOptions& options);

/// Opens a store in ZooKeeper: one session, waited for.
///
/// A call whose answer was lost with its connection returns outcome_unknown when it was a write; a
/// read is asked again. After every connect and every lost answer the next read is behind a sync,
/// so that it shows what became of the write, and every watch fires. A session that the ensemble
/// has ended is reported as session_lost until renew().
/// Errors: unavailable (what is wrong is in `trouble`, as a sentence), not_permitted.
asio::awaitable<Result<std::unique_ptr<MetadataStore>>> open_zookeeper_store(
    ZooKeeperOptions options, base::Runtime& runtime, std::string& trouble);

}  // namespace mq::metadata
