#include "protocol/pull_image.h"

#include "broker/connection.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_pull_image(Request request) {
  if (!protocol::decode_pull_image_request(request.header()))
    return request.fail(protocol::WireError::malformed_request, "PullImage does not parse");
  request.fail(protocol::WireError::not_controller, "this broker gives out no cluster images");
}

}  // namespace mq::broker
