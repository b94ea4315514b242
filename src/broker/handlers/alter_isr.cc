#include "protocol/alter_isr.h"

#include "broker/handlers/at_controller.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {

void handle_alter_isr(Request request) {
  serve_at_controller(std::move(request), "AlterIsr", protocol::decode_alter_isr_request,
                      &controller::Controller::alter_isr);
}

}  // namespace mq::broker
