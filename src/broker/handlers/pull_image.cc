#include "protocol/pull_image.h"

#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "broker/hop.h"
#include "broker/long_answer.h"
#include "broker/membership.h"
#include "protocol/parts.h"

namespace mq::broker {
namespace {

/// On the home runtime.
asio::awaitable<protocol::PullImageResponse> pull_at_controller(Core& core,
                                                                protocol::PullImageRequest ask,
                                                                base::TimePoint deadline) {
  auto* const controller = core.membership->controller();
  if (controller) co_return co_await controller->pull(std::move(ask), deadline);
  protocol::PullImageResponse refused;
  refused.envelope.status = core.membership->not_controller();
  co_return refused;
}

asio::awaitable<void> pull(Request request, protocol::PullImageRequest ask) {
  Core& core = request.core();
  const auto deadline = request.deadline(ask.envelope.deadline_ms);
  auto response = co_await run_on(*core.home, pull_at_controller(core, std::move(ask), deadline));
  if (!response.envelope.status.ok()) {
    request.fail(std::move(response.envelope.status));
    co_return;
  }
  response.envelope.status.broker = core.id.value();
  answer_in_frames(std::move(request), protocol::encode_in_parts(response));
}

}  // namespace

void handle_pull_image(Request request) {
  auto ask = protocol::decode_pull_image_request(request.header());
  if (!ask) return request.fail(protocol::WireError::malformed_request, "PullImage does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("pull image", pull(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
