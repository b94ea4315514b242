#include "protocol/alter_topics.h"

#include "broker/connection.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_alter_topics(Request request) {
  const auto ask = protocol::decode_alter_topics_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "AlterTopics does not parse");
  request.fail(protocol::WireError::unsupported_api, "topics cannot be altered yet");
}

}  // namespace mq::broker
