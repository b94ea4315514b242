#include "protocol/leave_broker.h"

#include "broker/handlers/at_controller.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_leave_broker(Request request) {
  serve_at_controller(std::move(request), "LeaveBroker", protocol::decode_leave_broker_request,
                      &controller::Controller::leave);
}

}  // namespace mq::broker
