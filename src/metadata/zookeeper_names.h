#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/network.h"
#include "metadata/mailbox.h"

namespace mq::metadata {

/// What the names of an ensemble mean just now.
struct ZooKeeperAddresses {
  std::string servers;  ///< "10.0.0.1:2181,10.0.0.2:2181", numbers only; empty: no name is known
  std::string problem;  ///< about the names that are not known
};

/// Looks the names up on a thread of its own and posts the answer. The C client gets numbers only:
/// it would ask for names in its loop, where a slow answer holds its heartbeats up, and go on with
/// an undefined socket after a failed one.
void look_up(std::vector<base::Endpoint> servers, std::shared_ptr<Mailbox> mailbox,
             std::function<void(ZooKeeperAddresses)> done);

}  // namespace mq::metadata
