#pragma once

#include <netinet/in.h>

#include "base/unique_fd.h"

namespace mq::faults {

/// 127.0.0.1 with this port.
sockaddr_in loopback(int port);

/// A TCP socket of 127.0.0.1 on a port that nobody uses just now.
struct BoundSocket {
  base::UniqueFd fd;
  int port = 0;
};
BoundSocket bind_loopback();

}  // namespace mq::faults
