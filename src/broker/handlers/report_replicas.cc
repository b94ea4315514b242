#include "protocol/report_replicas.h"

#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "broker/hop.h"
#include "broker/membership.h"

namespace mq::broker {
namespace {

/// On the home runtime.
asio::awaitable<protocol::ReportReplicasResponse> report_at_controller(
    Core& core, protocol::ReportReplicasRequest ask, base::TimePoint deadline) {
  auto* const controller = core.membership->controller();
  if (controller) co_return co_await controller->report(std::move(ask), deadline);
  protocol::ReportReplicasResponse refused;
  refused.envelope.status = core.membership->not_controller();
  co_return refused;
}

asio::awaitable<void> report(Request request, protocol::ReportReplicasRequest ask) {
  Core& core = request.core();
  const auto deadline = request.deadline(ask.envelope.deadline_ms);
  auto response = co_await run_on(*core.home, report_at_controller(core, std::move(ask), deadline));
  if (!response.envelope.status.ok()) {
    request.fail(std::move(response.envelope.status));
    co_return;
  }
  response.envelope.status.broker = core.id.value();
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_report_replicas(Request request) {
  auto ask = protocol::decode_report_replicas_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "ReportReplicas does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("report replicas", report(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
