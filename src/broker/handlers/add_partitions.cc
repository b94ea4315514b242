#include "protocol/add_partitions.h"

#include "broker/change_topic.h"
#include "broker/connection.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {
namespace {

asio::awaitable<void> add(Request request, protocol::AddPartitionsRequest ask) {
  Core& core = request.core();
  const auto deadline = request.deadline_for_answer(ask.envelope.deadline_ms);
  protocol::AddPartitionsResponse response;
  for (auto& topic : ask.topics) {
    auto add_one = [&](controller::Controller& controller) {
      return controller.add_partitions(topic.name, topic.total, deadline);
    };
    auto result = co_await change_topic(core, topic.name, add_one);
    response.results.push_back(std::move(result));
  }
  auto envelope = co_await envelope_of_change(core);
  response.envelope = std::move(envelope);
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_add_partitions(Request request) {
  auto ask = protocol::decode_add_partitions_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "AddPartitions does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("add partitions", add(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
