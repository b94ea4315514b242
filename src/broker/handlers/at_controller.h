#pragma once

#include <string_view>

#include "broker/connection.h"
#include "broker/hop.h"
#include "broker/membership.h"
#include "broker/request.h"
#include "controller/controller.h"

/// Requests of brokers that the controller of this process answers. Included by the handlers of
/// such APIs.
namespace mq::broker {

template <class Ask, class Response>
using ControllerCall = asio::awaitable<Response> (controller::Controller::*)(Ask, base::TimePoint);

/// On the home runtime.
template <class Ask, class Response>
asio::awaitable<Response> ask_controller(Core& core, ControllerCall<Ask, Response> call, Ask ask,
                                         base::TimePoint deadline) {
  auto* const controller = core.membership->controller();
  if (controller) co_return co_await (controller->*call)(std::move(ask), deadline);
  Response refused;
  refused.envelope.status = core.membership->not_controller();
  co_return refused;
}

template <class Ask, class Response>
asio::awaitable<void> answer_at_controller(Request request, ControllerCall<Ask, Response> call,
                                           Ask ask, void (*send)(Request, const Response&)) {
  Core& core = request.core();
  const auto deadline = request.deadline(ask.envelope.deadline_ms);
  auto asked = ask_controller<Ask, Response>(core, call, std::move(ask), deadline);
  auto response = co_await run_on(*core.home, std::move(asked));
  if (!response.envelope.status.ok()) {
    request.fail(std::move(response.envelope.status));
    co_return;
  }
  response.envelope.status.broker = core.id.value();
  co_return send(std::move(request), response);
}

template <class Response>
void send_in_one_frame(Request request, const Response& response) {
  request.answer(protocol::encode(response));
}

/// `name` is the API's; it is kept.
template <class Ask, class Response>
void serve_at_controller(Request request, const char* name,
                         base::Result<Ask> (*decode)(base::Bytes),
                         ControllerCall<Ask, Response> call,
                         void (*send)(Request, const Response&) = send_in_one_frame<Response>) {
  auto ask = decode(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request,
                        std::string(name) + " does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn(
      name, answer_at_controller<Ask, Response>(std::move(request), call, *std::move(ask), send));
}

}  // namespace mq::broker
