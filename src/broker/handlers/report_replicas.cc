#include "protocol/report_replicas.h"

#include "broker/handlers/at_controller.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_report_replicas(Request request) {
  serve_at_controller(std::move(request), "ReportReplicas",
                      protocol::decode_report_replicas_request, &controller::Controller::report);
}

}  // namespace mq::broker
