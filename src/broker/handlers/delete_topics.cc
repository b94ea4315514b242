#include "broker/change_topic.h"
#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "protocol/topics.h"

namespace mq::broker {
namespace {

asio::awaitable<void> remove(Request request, protocol::DeleteTopicsRequest ask) {
  Core& core = request.core();
  const auto deadline = request.deadline_for_answer(ask.envelope.deadline_ms);
  protocol::DeleteTopicsResponse response;
  for (auto& name : ask.names) {
    auto remove_topic = [&](controller::Controller& controller) {
      return controller.delete_topic(name, deadline);
    };
    auto result = co_await change_topic(core, name, remove_topic);
    response.results.push_back(std::move(result));
  }
  auto envelope = co_await envelope_of_change(core);
  response.envelope = std::move(envelope);
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_delete_topics(Request request) {
  auto ask = protocol::decode_delete_topics_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "DeleteTopics does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("delete topics", remove(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
