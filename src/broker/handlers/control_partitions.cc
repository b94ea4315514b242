#include "protocol/control_partitions.h"

#include "broker/handlers/at_controller.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_control_partitions(Request request) {
  serve_at_controller(std::move(request), "ControlPartitions",
                      protocol::decode_control_partitions_request,
                      &controller::Controller::control);
}

}  // namespace mq::broker
