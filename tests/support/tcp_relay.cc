#include "support/tcp_relay.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace mq::testing {
namespace {

constexpr int kRoundMs = 2;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

TcpRelay::TcpRelay(std::uint16_t server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("the relay cannot listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

TcpRelay::~TcpRelay() {
  stop_ = true;
  thread_.join();
  ::close(listener_);
}

void TcpRelay::cut() {
  cut_ = true;
  while (cut_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void TcpRelay::run() {
  while (!stop_) {
    std::vector<pollfd> waits{{listener_, POLLIN, 0}};
    for (const auto& link : links_) {
      waits.push_back({link->up.from, POLLIN, 0});
      waits.push_back({link->down.from, POLLIN, 0});
    }
    ::poll(waits.data(), waits.size(), kRoundMs);
    if ((waits.front().revents & POLLIN) != 0) accept_one();
    const bool cutting = cut_;
    std::erase_if(links_, [this, cutting](const auto& link) {
      const bool alive = !cutting && (hold_ || forward(*link));
      if (!alive) end(*link);
      return !alive;
    });
    if (cutting) cut_ = false;
    if (hold_) std::this_thread::sleep_for(std::chrono::milliseconds(kRoundMs));
  }
  for (const auto& link : links_) end(*link);
}

void TcpRelay::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(server_port_);
  if (refuse_ ||
      ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(client);
    ::close(server);
    return;
  }
  auto link = std::make_unique<Link>();
  link->up.from = link->down.to = client;
  link->up.to = link->down.from = server;
  links_.push_back(std::move(link));
}

/// False when the connection has ended.
bool TcpRelay::forward(Link& link) const {
  return read_way(link.up, false) && read_way(link.down, true) && write_way(link.up) &&
         write_way(link.down);
}

bool TcpRelay::read_way(Way& way, bool answers) const {
  char buffer[65536];
  const auto got = ::recv(way.from, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN;
  if (got == 0) return false;
  if (answers && lose_answers_) return true;
  const auto due = Clock::now() + std::chrono::milliseconds(delay_ms_);
  way.pieces.push_back({due, std::string(buffer, static_cast<std::size_t>(got))});
  return true;
}

bool TcpRelay::write_way(Way& way) {
  while (!way.pieces.empty() && way.pieces.front().due <= Clock::now()) {
    auto& bytes = way.pieces.front().bytes;
    const auto sent = ::send(way.to, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN;
    bytes.erase(0, static_cast<std::size_t>(sent));
    if (!bytes.empty()) return true;
    way.pieces.pop_front();
  }
  return true;
}

void TcpRelay::end(const Link& link) {
  ::close(link.up.from);
  ::close(link.up.to);
}

}  // namespace mq::testing
