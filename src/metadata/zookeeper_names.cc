#include "metadata/zookeeper_names.h"

#include <fmt/format.h>
#include <netdb.h>

#include <set>

#include "metadata/zookeeper_thread.h"

namespace mq::metadata {
namespace {

/// Every address of one server, in a fixed order.
void add_addresses(const base::Endpoint& server, ZooKeeperAddresses& into) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(server.host.c_str(), nullptr, &hints, &found);
  if (code != 0) {
    if (!into.problem.empty()) into.problem += ", ";
    into.problem += fmt::format("{}: {}", server.host, ::gai_strerror(code));
    return;
  }
  std::set<std::string> numbers;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char host[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof host, nullptr, 0,
                      NI_NUMERICHOST) == 0)
      numbers.insert(host);
  }
  ::freeaddrinfo(found);
  // The client cuts at the last colon, so an IPv6 address stands without brackets.
  for (const auto& number : numbers)
    into.servers += fmt::format("{}{}:{}", into.servers.empty() ? "" : ",", number, server.port);
}

}  // namespace

void look_up(std::vector<base::Endpoint> servers, std::shared_ptr<Mailbox> mailbox,
             std::function<void(ZooKeeperAddresses)> done) {
  auto answer = [mailbox, done = std::move(done)](ZooKeeperAddresses addresses) {
    mailbox->post([done, addresses = std::move(addresses)] { done(addresses); });
  };
  const bool started = run_detached([servers = std::move(servers), answer] {
    ZooKeeperAddresses addresses;
    for (const auto& server : servers) add_addresses(server, addresses);
    answer(std::move(addresses));
  });
  if (!started) answer({"", "no thread to look the names up"});
}

}  // namespace mq::metadata
