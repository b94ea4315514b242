#include "protocol/replica_fetch.h"

#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_replica_fetch(Request request) {
  request.fail(protocol::WireError::unsupported_api, "ReplicaFetch");
}

}  // namespace mq::broker
