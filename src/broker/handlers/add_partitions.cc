#include "protocol/add_partitions.h"

#include "broker/connection.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_add_partitions(Request request) {
  const auto ask = protocol::decode_add_partitions_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "AddPartitions does not parse");
  request.fail(protocol::WireError::unsupported_api, "partitions cannot be added yet");
}

}  // namespace mq::broker
