#include "protocol/alter_topics.h"

#include "broker/change_topic.h"
#include "broker/connection.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {
namespace {

asio::awaitable<void> alter(Request request, protocol::AlterTopicsRequest ask) {
  Core& core = request.core();
  const auto deadline = request.deadline_for_answer(ask.envelope.deadline_ms);
  protocol::AlterTopicsResponse response;
  for (auto& topic : ask.topics) {
    auto alter_one = [&](controller::Controller& controller) {
      return controller.alter_topic(topic, deadline);
    };
    auto result = co_await change_topic(core, topic.name, alter_one);
    response.results.push_back(std::move(result));
  }
  auto envelope = co_await envelope_of_change(core);
  response.envelope = std::move(envelope);
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_alter_topics(Request request) {
  auto ask = protocol::decode_alter_topics_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "AlterTopics does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("alter topics", alter(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
