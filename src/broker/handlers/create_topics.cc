#include "broker/change_topic.h"
#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "protocol/topics.h"

namespace mq::broker {
namespace {

asio::awaitable<void> create(Request request, protocol::CreateTopicsRequest ask) {
  Core& core = request.core();
  const auto deadline = request.deadline_for_answer(ask.envelope.deadline_ms);
  protocol::CreateTopicsResponse response;
  for (auto& topic : ask.topics) {
    auto create = [&](controller::Controller& controller) {
      return controller.create_topic(topic, ask.validate_only, deadline);
    };
    auto result = co_await change_topic(core, topic.name, create);
    response.results.push_back(std::move(result));
  }
  auto envelope = co_await envelope_of_change(core);
  response.envelope = std::move(envelope);
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_create_topics(Request request) {
  auto ask = protocol::decode_create_topics_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "CreateTopics does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("create topics", create(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
