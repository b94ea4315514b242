#pragma once

#include <cstdint>

#include "mqctl/verbs/local_state.h"

namespace mq::mqctl {

/// Starts the ZooKeeper of a local cluster: Debian's libzookeeper-java on loopback, by a JRE that
/// is there; returns when it serves. Throws Failed, with the package to install when one is
/// missing.
LocalProcess start_zookeeper(const Context& context, LocalProcess zookeeper);

}  // namespace mq::mqctl
