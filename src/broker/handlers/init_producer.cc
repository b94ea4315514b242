#include "protocol/init_producer.h"

#include "broker/connection.h"
#include "broker/error_map.h"
#include "broker/handlers/handlers.h"
#include "broker/hop.h"
#include "broker/membership.h"

namespace mq::broker {
namespace {

asio::awaitable<void> init_producer(Request request) {
  Core& core = request.core();
  const auto id = co_await run_on(*core.home, core.membership->next_producer_id());
  if (!id) {
    request.fail(to_wire(id.error()),
                 fmt::format("no producer id can be given out: {}", id.error().message()));
    co_return;
  }
  protocol::InitProducerResponse response;
  response.envelope = core.envelope();
  response.producer_id = *id;
  response.producer_epoch = 0;
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_init_producer(Request request) {
  if (!protocol::decode_init_producer_request(request.header()))
    return request.fail(protocol::WireError::malformed_request, "InitProducer does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("init producer", init_producer(std::move(request)));
}

}  // namespace mq::broker
