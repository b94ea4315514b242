#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "broker/long_answer.h"
#include "broker/partition_facts.h"
#include "protocol/parts.h"

namespace mq::broker {
namespace {

using Facts = std::map<model::PartitionId, PartitionFacts>;

/// What this broker leads of the topic; whoever asks adds up what the brokers say.
protocol::TopicSummary summary_of(const Core& core, const metadata::TopicInfo& topic,
                                  const Facts& facts) {
  protocol::TopicSummary summary;
  summary.name = topic.name;
  summary.id = topic.id;
  summary.partitions = static_cast<std::int32_t>(topic.visible().size());
  for (const auto& assignment : topic.visible()) {
    summary.replicas =
        std::max(summary.replicas, static_cast<std::int32_t>(assignment.replicas.size()));
    if (assignment.leader != core.id) continue;
    ++summary.partitions_led;
    const auto found = facts.find(assignment.id);
    if (found == facts.end() || !found->second.failure.empty()) {
      ++summary.partitions_not_serving;
      continue;
    }
    const PartitionFacts& fact = found->second;
    summary.bytes += fact.bytes;
    summary.records +=
        static_cast<std::uint64_t>(fact.high_watermark.value() - fact.log_start_offset.value());
  }
  return summary;
}

asio::awaitable<void> list(Request request) {
  Core& core = request.core();
  const auto facts = co_await gather_partition_facts(core);
  const auto image = core.image();
  protocol::ListTopicsResponse response;
  for (const auto& [name, topic] : image->topics()) {
    if (!topic->visible().empty()) response.topics.push_back(summary_of(core, *topic, facts));
  }
  response.envelope = core.envelope();
  answer_in_frames(std::move(request), protocol::encode_in_parts(response));
}

}  // namespace

void handle_list_topics(Request request) {
  if (!protocol::decode_list_topics_request(request.header()))
    return request.fail(protocol::WireError::malformed_request, "ListTopics does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("list topics", list(std::move(request)));
}

}  // namespace mq::broker
