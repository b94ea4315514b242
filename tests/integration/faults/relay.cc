#include "integration/faults/relay.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <list>
#include <stdexcept>
#include <vector>

#include "integration/faults/loopback.h"

namespace mq::faults {
namespace {

using base::UniqueFd;

struct Link {
  UniqueFd client;
  UniqueFd server;
  bool dead = false;  // swallowed: stays open, carries nothing
};

/// Moves what is readable from one to the other; false when the link is over.
bool forward(int from, int to, bool lose = false) {
  std::array<char, 65536> block;
  const ssize_t got = ::recv(from, block.data(), block.size(), MSG_DONTWAIT);
  if (got == 0) return false;
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (lose) return true;
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t n =
        ::send(to, block.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += n;
  }
  return true;
}

}  // namespace

Relay::Relay(int target_port) : target_port_(target_port) {
  auto bound = bind_loopback();
  if (::listen(bound.fd.get(), 128) != 0) throw std::runtime_error("the relay cannot listen");
  listener_ = std::move(bound.fd);
  port_ = bound.port;
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  stop_ = true;
  thread_.join();
}

void Relay::run() {
  std::list<Link> links;
  Mode last = Mode::pass;
  while (!stop_) {
    const Mode mode = mode_;
    if (mode == Mode::swallow && last != Mode::swallow) {
      for (auto& link : links) link.dead = true;
    }
    if (mode == Mode::accept_and_close) links.clear();
    last = mode;
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
    for (const auto& link : links) {
      watched.push_back({link.dead ? -1 : link.client.get(), POLLIN, 0});
      watched.push_back({link.dead ? -1 : link.server.get(), POLLIN, 0});
    }
    if (::poll(watched.data(), watched.size(), 10) <= 0) continue;
    std::size_t at = 1;
    for (auto link = links.begin(); link != links.end(); at += 2) {
      const bool over =
          (watched[at].revents != 0 && !forward(link->client.get(), link->server.get())) ||
          (watched[at + 1].revents != 0 &&
           !forward(link->server.get(), link->client.get(), mode == Mode::drop_answers));
      link = over ? links.erase(link) : std::next(link);
    }
    if (watched[0].revents == 0) continue;
    Link link;
    link.client = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!link.client) continue;
    ++accepted_;
    if (mode == Mode::accept_and_close) continue;
    link.server = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = loopback(target_port_);
    if (::connect(link.server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
        0)
      links.push_back(std::move(link));
  }
}

}  // namespace mq::faults
