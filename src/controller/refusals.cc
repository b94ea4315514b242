#include "controller/refusals.h"

namespace mq::controller {
namespace {

/// A host that is there refuses at once.
constexpr base::Duration kAnswersWithin = std::chrono::milliseconds(500);

}  // namespace

asio::awaitable<bool> refuses_connections(base::Network& network, base::Runtime& runtime,
                                          base::Endpoint address) {
  const auto connected =
      co_await network.connect(std::move(address), runtime.now() + kAnswersWithin);
  co_return !connected && connected.error() == make_error_code(base::BaseErrc::connection_refused);
}

asio::awaitable<bool> takes_connections(base::Network& network, base::Runtime& runtime,
                                        base::Endpoint address) {
  const auto connected =
      co_await network.connect(std::move(address), runtime.now() + kAnswersWithin);
  co_return connected.has_value();
}

}  // namespace mq::controller
