#include "unit/metadata/zookeeper_world.h"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <thread>

// The C client forgets one entry of its completion queue when a handle is closed while its answer
// is being handed over: a few bytes per closed session, and nothing the caller could free.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the leak checker looks for this name
extern "C" const char* __lsan_default_suppressions() { return "leak:libzookeeper_mt"; }

namespace mq::testing {
namespace {

std::string next_chroot() {
  static std::atomic<int> count{0};
  return fmt::format("/tests/{}", ++count);
}

}  // namespace

ZooKeeperWorld::ZooKeeperWorld()
    : server_(ZooKeeperServer::shared()), relay_(server_.port()), chroot_(next_chroot()) {}

metadata::ZooKeeperOptions ZooKeeperWorld::options() const {
  auto options = direct_options();
  options.servers = {base::Endpoint{"127.0.0.1", relay_.port()}};
  return options;
}

metadata::ZooKeeperOptions ZooKeeperWorld::direct_options() const {
  metadata::ZooKeeperOptions options;
  options.servers = {base::Endpoint{"127.0.0.1", server_.port()}};
  options.chroot = chroot_;
  options.session_timeout = std::chrono::milliseconds(2000);
  options.patience = std::chrono::milliseconds(2000);
  return options;
}

void ZooKeeperWorld::wait_for_end_of(std::uint64_t session) const {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (server_.has_session(session)) {
    if (std::chrono::steady_clock::now() > limit)
      throw std::runtime_error("the session does not end: " + server_.ask("dump"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace mq::testing
