#include "integration/faults/loopback.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>

namespace mq::faults {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

BoundSocket bind_loopback() {
  BoundSocket bound{base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  auto address = loopback(0);
  socklen_t length = sizeof address;
  if (::bind(bound.fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(bound.fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("no free port");
  bound.port = ntohs(address.sin_port);
  return bound;
}

}  // namespace mq::faults
