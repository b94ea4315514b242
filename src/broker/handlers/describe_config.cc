#include "protocol/describe_config.h"

#include "broker/connection.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_describe_config(Request request) {
  if (!protocol::decode_describe_config_request(request.header()))
    return request.fail(protocol::WireError::malformed_request, "DescribeConfig does not parse");
  request.release_memory();
  const Core& core = request.core();
  protocol::DescribeConfigResponse response;
  for (const auto& setting : core.settings)
    response.settings.push_back({setting.key, setting.value, setting.origin});
  response.envelope = core.envelope();
  request.answer(protocol::encode(response));
}

}  // namespace mq::broker
