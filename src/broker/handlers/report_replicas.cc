#include "protocol/report_replicas.h"

#include "broker/connection.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_report_replicas(Request request) {
  if (!protocol::decode_report_replicas_request(request.header()))
    return request.fail(protocol::WireError::malformed_request, "ReportReplicas does not parse");
  request.fail(protocol::WireError::not_controller, "this broker takes no reports");
}

}  // namespace mq::broker
