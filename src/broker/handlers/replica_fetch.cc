#include "protocol/replica_fetch.h"

#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "broker/replica_session.h"

namespace mq::broker {
namespace {

using protocol::WireError;

/// Why this is no request of a broker that is registered as it says; OK otherwise.
protocol::Status check(const Core& core, const protocol::ReplicaFetchRequest& ask) {
  const auto image = core.image();
  const auto* known = image->find_broker(model::BrokerId(ask.broker));
  if (ask.broker == core.id.value())
    return core.status(WireError::invalid_request, "a broker does not follow itself");
  if (!known) {
    return core.status(WireError::stale_broker_epoch,
                       fmt::format("broker {} is not known here", ask.broker));
  }
  if (known->epoch.value() != ask.broker_epoch) {
    return core.status(WireError::stale_broker_epoch,
                       fmt::format("broker {} is known here under epoch {}, not {}", ask.broker,
                                   known->epoch, ask.broker_epoch));
  }
  return {};
}

}  // namespace

void handle_replica_fetch(Request request) {
  auto ask = protocol::decode_replica_fetch_request(request.header());
  if (!ask) return request.fail(WireError::malformed_request, "ReplicaFetch does not parse");
  if (request.connection().take_elsewhere(ask->subscribe, request)) return;
  auto& session = request.connection().replica_session();
  auto status = check(request.core(), *ask);
  if (!status.ok()) return session.refuse(std::move(request), std::move(status));
  const model::IsrMember follower{model::BrokerId(ask->broker),
                                  model::BrokerEpoch(ask->broker_epoch)};
  session.take(follower, std::move(request), *std::move(ask));
}

}  // namespace mq::broker
