#include "protocol/pull_image.h"

#include "broker/connection.h"
#include "broker/handlers/at_controller.h"
#include "broker/handlers/handlers.h"
#include "broker/long_answer.h"
#include "protocol/parts.h"

namespace mq::broker {
namespace {

void send_in_frames(Request request, const protocol::PullImageResponse& response) {
  answer_in_frames(std::move(request), protocol::encode_in_parts(response));
}

}  // namespace

void handle_pull_image(Request request) {
  if (const auto pull = protocol::decode_pull_image_request(request.header()))
    request.connection().speaks_for(
        {model::BrokerId(pull->broker), model::BrokerEpoch(pull->broker_epoch)});
  serve_at_controller(std::move(request), "PullImage", protocol::decode_pull_image_request,
                      &controller::Controller::pull, send_in_frames);
}

}  // namespace mq::broker
